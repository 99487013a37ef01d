"""The report of config."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from cudaredist.cli.options import SettingOrigin
from cudaredist.cli.text import columns
from cudaredist.formats.plain_report import PlainAnswer, PlainEntry
from cudaredist.words import printable


class Setting(PlainEntry):
    """A setting with its value and origin."""

    name: Annotated[str, Field(description="As in the configuration file")]
    value: Annotated[
        str | int | float | bool | list[str] | None,
        Field(description="Null: the default depends on the command"),
    ]
    origin: SettingOrigin


class ConfigReport(PlainAnswer):
    """The result of config."""

    command: Literal["config"] = "config"
    path: Annotated[str | None, Field(description="The configuration file. Null: none")]
    ignored: Annotated[
        tuple[str, ...], Field(description="Further configuration files, which are not read")
    ] = ()
    settings: tuple[Setting, ...]
    sets: Annotated[tuple[str, ...], Field(description="The declared package sets")] = ()
    shipped_data: Annotated[str, Field(description="The folder of the shipped data and policy")]


def config_text(report: ConfigReport) -> Iterator[str]:
    """Yield the settings with their values and origins."""
    rows = [("setting", "value", "origin")]
    rows += [(one.name, _value(one), _origin(report, one)) for one in report.settings]
    if report.path is None:
        yield "no configuration file: neither this folder nor a parent has one"
    else:
        yield f"configuration file: {printable(report.path)}"
    yield from (f"ignored, because it is not the first: {printable(x)}" for x in report.ignored)
    yield ""
    yield from columns(rows)
    if report.sets:
        yield ""
        yield "declared package sets:"
        yield from (f"  {text}" for text in report.sets)
    yield ""
    yield f"The shipped data and policy are in {printable(report.shipped_data)}."


def _value(setting: Setting) -> str:
    value = setting.value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None else " ".join(value) if isinstance(value, list) else str(value)


def _origin(report: ConfigReport, setting: Setting) -> str:
    if setting.origin == "environment":
        return f"CUDAREDIST_{setting.name.replace('-', '_').upper()}"
    return str(report.path) if setting.origin == "file" else setting.origin
