"""config: print the settings of this folder with their origins."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudaredist.cli.options import (
    ChannelName,
    Options,
    Requests,
    archive_jobs_option,
    base_url_option,
    cache_dir_option,
    read_data_dir_option,
    select_option,
)
from cudaredist.cli.session import Session, command
from cudaredist.errors import EXIT_OK

if TYPE_CHECKING:
    from cudaredist.formats.settings import DeclaredSet


class ConfigOptions(Options):
    """Options of config, one for each setting."""

    typical = ("json",)

    data_dir: Path | None = read_data_dir_option()
    cache_dir: Path | None = cache_dir_option()
    channel: ChannelName | None = select_option("NVIDIA's archives or wheels.")
    base_url: list[str] | None = base_url_option()
    jobs: int | None = archive_jobs_option()
    requests: Requests = field(default_factory=Requests)


@command(ConfigOptions)
def config(options: ConfigOptions, session: Session) -> int:
    """Print the settings of this folder with their origins.

    Examples:

        cudaredist config
        cudaredist config --jobs 4 --json

    Settings are read from `cudaredist.toml`, or from the table `tool.cudaredist` of
    `pyproject.toml`, in this folder or the closest parent that has one. An option takes precedence
    over its environment variable, and the variable over the file.
    """
    from cudaredist.cli.configuration import ignored_configurations, read_configuration
    from cudaredist.commands.config.report import ConfigReport, Setting, config_text
    from cudaredist.formats.settings import IgnoredFinding
    from cudaredist.store.data_folder import shipped_data

    file = read_configuration()
    values, origins = vars(options) | vars(options.requests), dict(options.origins)
    settings = [
        Setting(
            name=name.replace("_", "-"),
            value=_shown(values[name]),
            origin=origins[name],
        )
        for name in ("data_dir", "cache_dir", "channel", "base_url", "jobs", "retries", "timeout")
    ]
    if file.declared is not None and file.declared.alias_fallback:
        settings.append(Setting(name="alias-fallback", value=True, origin="file"))
    settings += [
        Setting(name=f"audit.{name.replace('_', '-')}", value=value, origin="file")
        for name, value in file.audit.items()
        if name != "ignore"
    ]
    ignored = [str(IgnoredFinding(**one)) for one in file.audit.get("ignore", ())]
    settings += [Setting(name="audit.ignore", value=one, origin="file") for one in ignored]
    path = None if file.path is None else str(file.path)
    declared = () if file.declared is None else file.declared.sets
    report = ConfigReport(
        path=path,
        ignored=tuple(map(str, ignored_configurations())),
        settings=tuple(settings),
        sets=tuple(map(_set_text, declared)),
        shipped_data=str(shipped_data()),
    )
    session.show(report, config_text)
    return EXIT_OK


def _set_text(declared: "DeclaredSet") -> str:
    """Return the settings of a declared set as in the file, without defaults."""
    values = declared.model_dump(exclude_unset=True, by_alias=True)
    return ", ".join(f"{name} = {_set_value(value)}" for name, value in values.items())


def _set_value(value: Any) -> str:  # noqa: ANN401 - the value of any setting
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{key}={text}" for key, text in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> Any:  # noqa: ANN401 - the value of any setting
    """Return a setting's value without credentials, paths as text."""
    from cudaredist.hints import redacted

    if isinstance(value, list):
        return [redacted(item) for item in value]
    return str(value) if isinstance(value, Path) else value
