"""Shared options, and the conversion of option dataclasses to typer parameters.

A command's options are the fields of an `OptionGroup`. If a field's type is another `OptionGroup`,
that group's options belong to the command, too.
"""

import dataclasses
import inspect
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING
from functools import cache, partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeGuard,
    dataclass_transform,
    get_args,
    get_origin,
)

import typer

from cudaredist.cli.completion import (
    complete_component,
    complete_cuda,
    complete_gpu,
    complete_label,
    complete_package,
    complete_pin,
)
from cudaredist.cli.console import Color
from cudaredist.errors import UsageError
from cudaredist.hints import correction_line
from cudaredist.redists import REDISTS

if TYPE_CHECKING:
    from cudaredist.store.selection import Selection
    from cudaredist.store.targets import Filter

_METAVARS = {str: "NAME", int: "N", float: "SECONDS", Path: "FILE"}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 1 << (10 * power) for power, unit in enumerate("kmgt", 1)}

LogLevel: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
ChannelName: TypeAlias = Literal["redist", "wheels"]
"""The origin of archives: NVIDIA's own, or wheels."""
SettingOrigin: TypeAlias = Literal["command line", "environment", "file", "default"]
"""The origin of an option's value."""
CoverageName: TypeAlias = Literal["native", "ptx"]
"""The required coverage of a release."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class OptionGroup:
    """Base class of option dataclasses.

    All subclasses share one `__init__`: generating one for each would cost a tenth of the start-up
    time.
    """

    typical: ClassVar[tuple[str, ...]] = ()
    """The names of the options that most people need. They come first in the help."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, eq=False, repr=False)(cls)

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - the fields' types
        """Set the fields, and those of groups, to values by name."""
        for field in _fields(type(self)):
            value = values.get(field.name, field.default)
            if _is_group(field.type) and not isinstance(value, field.type):
                value = field.type(**values)
            vars(self)[field.name] = value


def parameters_of(kind: type[OptionGroup]) -> Iterator[inspect.Parameter]:
    """Yield a command's parameters: typical ones first, general ones last."""
    general, typical = inspect.get_annotations(Options), kind.typical

    def place(field: dataclasses.Field[Any]) -> tuple[int, bool]:
        is_typical = field.name in typical
        return typical.index(field.name) if is_typical else len(typical), field.name in general

    for field in sorted(_option_fields(kind), key=place):
        yield _parameter(field, is_typical=field.name in kind.typical)


def _option_fields(kind: type[OptionGroup]) -> Iterator[dataclasses.Field[Any]]:
    for field in _fields(kind):
        if field.metadata:
            yield field
        elif _is_group(field.type):
            yield from _option_fields(field.type)


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:  # noqa: ANN401 - mypy knows no fields of a transform
    return dataclasses.fields(kind)


def _is_group(annotation: object) -> TypeGuard[type[OptionGroup]]:
    return isinstance(annotation, type) and issubclass(annotation, OptionGroup)


@cache
def _parameter(field: dataclasses.Field[Any], *, is_typical: bool) -> inspect.Parameter:
    settings = dict(field.metadata)
    settings["default"] = ... if field.default is MISSING else field.default
    if "rich_help_panel" in settings:
        settings |= {"show_envvar": False, "show_default": False}
        if bool in (field.type, *get_args(field.type)):
            settings["metavar"] = ""
        else:
            settings.setdefault("metavar", _metavar(field.type))
            if field.default and field.default is not MISSING:
                settings["help"] += f" Default: {field.default}."
        if is_typical:
            settings["rich_help_panel"] = "Options"
        names = settings.pop("names", f"--{field.name.replace('_', '-')}")
        default = typer.Option(settings.pop("default"), *names.split(), **settings)
    else:
        default = typer.Argument(**settings)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)


def _metavar(kind: Any) -> str:  # noqa: ANN401 - any type of an option
    """Return the placeholder for a value: its choices, or a noun for its type."""
    choices = get_args(kind)
    if get_origin(kind) is Literal:
        return "|".join(choices)
    return _metavar(choices[0]) if choices else _METAVARS[kind]


def argument(text: str, *, default: object = None, **settings: object) -> Any:  # noqa: ANN401 - as dataclasses.field
    """Return a field for an argument, required if the default is `...`."""
    metadata = {"help": text, **settings}
    return dataclasses.field(default=MISSING if default is ... else default, metadata=metadata)


def _option(panel: str, text: str, **settings: object) -> Any:  # noqa: ANN401 - likewise
    """Return a field for an option in a panel of the help.

    The option's name is the field's, unless `names` is set.
    """
    return argument(text, rich_help_panel=panel, **settings)


select_option = partial(_option, "Selection")
capability_option = partial(_option, "Capabilities")
host_option = partial(_option, "Host compiler")
network_option = partial(_option, "Network")
work_option = partial(_option, "Parallel work")
safety_option = partial(_option, "Safety", default=False)
output_option = partial(_option, "Output")
folder_option = partial(_option, "Folders")


def complete_redist(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a redistributable in a shell."""
    return [
        (redist.name, redist.title)
        for redist in REDISTS.values()
        if redist.name.startswith(incomplete)
    ]


def complete_platform(incomplete: str) -> list[str]:
    """Complete the name of a platform in a shell."""
    from cudaredist.primitives import KNOWN_PLATFORMS

    return sorted(name for name in KNOWN_PLATFORMS if name.startswith(incomplete))


def none_for_standard_output(path: Path | None) -> Path | None:
    """Return the path of an output, None for standard output (`-`)."""
    return None if str(path) == "-" else path


def refuse_standard_output(path: Path | None) -> Path | None:
    """Return the path of an output. Raises an error for standard output (`-`)."""
    if str(path) == "-":
        raise typer.BadParameter("this command cannot write its output to standard output")
    return path


label_option = partial(select_option, metavar="LABEL", autocompletion=complete_label)
cuda_option = partial(select_option, metavar="LABEL", autocompletion=complete_cuda)
gpu_option = partial(select_option, autocompletion=complete_gpu)
pin_option = partial(select_option, metavar="NAME=LABEL", autocompletion=complete_pin)
component_option = partial(select_option, autocompletion=complete_component)
package_option = partial(select_option, autocompletion=complete_package)
platform_option = partial(select_option, autocompletion=complete_platform)
format_option = partial(output_option, metavar="FORMAT", default="text")
output_path_option = partial(output_option, names="--output -o", callback=refuse_standard_output)
output_flag = partial(output_option, default=False)


def parse_size(text: str | None) -> int | None:
    """Parse a number of bytes, such as `500MB`, `1.5 GiB` or `1000`. None stays None."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]i?)?b?", text.strip().lower())
    if match is None:
        hint = correction_line("use a size such as 500MB, 5GB or 1.5GiB", text, ["5GB"])
        raise UsageError(f"invalid size: {text!r}", hint=hint)
    return int(float(match[1]) * _UNITS[match[2] or ""])


redist_option = partial(
    select_option,
    "Redistributable, such as cuda or cudnn. Repeatable.",
    autocompletion=complete_redist,
)
channel_option = partial(select_option, "NVIDIA's archives or NVIDIA's wheels.", default="redist")
_jobs_option = partial(work_option, names="--jobs -j", min=1, max=256, envvar="CUDAREDIST_JOBS")
jobs_option = partial(_jobs_option, "Simultaneous downloads.", default=16)
archive_jobs_option = partial(_jobs_option, "Simultaneous archives. Default: one per core.")
max_archive_option = partial(
    safety_option,
    "Limit of an archive of unknown size. Default: 16GiB.",
    metavar="SIZE",
    default=None,
)
_data_dir_option = partial(folder_option, metavar="DIR", envvar="CUDAREDIST_DATA_DIR")
data_dir_option = partial(_data_dir_option, "Data folder. Default: ./data.")
read_data_dir_option = partial(_data_dir_option, "Data folder. Default: ./data or shipped data.")
shipped_data_option = partial(
    folder_option,
    "Fill gaps from shipped data. Default: on.",
    names="--shipped-data/--no-shipped-data",
    default=True,
)
cache_dir_option = partial(
    folder_option,
    "Cache folder. Can be deleted at any time.",
    metavar="DIR",
    envvar="CUDAREDIST_CACHE_DIR",
)
check_option = partial(safety_option, "Write nothing. Exit 1 if files would change.")
between_option = partial(
    output_option,
    "Replace only the lines between two marker lines of the file.",
    metavar="BEGIN END",
    default=None,
)
pre_option = partial(select_option, "Include early-access releases.")
nvidia_channel_option = partial(
    select_option, "Include a channel of packages.nvidia.com. Repeatable."
)


def nvidia_channels_of(*, pre: bool, names: Sequence[str] | None) -> frozenset[str]:
    """Return the selected channels of NVIDIA's second server. Raises `UsageError`."""
    from cudaredist.primitives import NVIDIA_CHANNEL_PATTERN, PREVIEW

    for name in names or ():
        if not re.fullmatch(NVIDIA_CHANNEL_PATTERN, name):
            hint = correction_line("use the name of a channel, such as preview", name, [PREVIEW])
            raise UsageError(f"{name!r} is not the name of a channel", hint=hint)
    return frozenset(names or ()) | ({PREVIEW} if pre else frozenset())


strict_option = partial(safety_option, "Reject manifests with warnings.")


class Options(OptionGroup):
    """General options of every command."""

    json: bool = output_flag("Print the result as JSON.")
    quiet: bool = output_flag("Hide progress, notes and warnings.", names="--quiet -q")
    verbose: int = output_option(
        "Log more. Use -vv to log every request.",
        names="--verbose -v",
        count=True,
        metavar="",
        default=0,
    )
    color: Color = output_option(
        "Color of words: auto, always or never.", metavar="WHEN", default="auto"
    )
    pager: bool = output_option(
        "Show long text in a pager on a terminal. Default: on.",
        names="--pager/--no-pager",
        default=True,
    )
    typed: frozenset[str] = frozenset()
    """The parameters from the command line, without those from environment variables."""
    origins: frozenset[tuple[str, SettingOrigin]] = frozenset()
    """The origin of each parameter's value."""


base_url_option = partial(
    network_option,
    "Server or folder to use. Repeatable. Default: NVIDIA's.",
    metavar="URL|FOLDER",
    envvar="CUDAREDIST_BASE_URL",
)


class Requests(OptionGroup):
    """Options for requests to servers."""

    retries: int = network_option(
        "Retries after a transient failure.", min=0, max=20, envvar="CUDAREDIST_RETRIES", default=3
    )
    timeout: float = network_option(
        "Seconds until a request times out.",
        min=0.1,
        max=3600,
        envvar="CUDAREDIST_TIMEOUT",
        default=30,
    )


class RecordOptions(Options):
    """Options of commands that record the hashes of files."""

    replace: bool
    requests: Requests = dataclasses.field(default_factory=Requests)
    data_dir: Path | None = data_dir_option()
    cache_dir: Path | None = cache_dir_option()


class Network(Requests):
    """Options for the connections to sources."""

    base_url: list[str] | None = base_url_option()
    allow_http: bool = network_option(
        "Allow plain HTTP to other machines.", envvar="CUDAREDIST_ALLOW_HTTP", default=False
    )
    offline: bool = network_option(
        "Disable the network.", envvar="CUDAREDIST_OFFLINE", default=False
    )


class ArchiveJobs(OptionGroup):
    """Options for the number of simultaneous archives and their size."""

    jobs: int | None = archive_jobs_option()
    max_archive: str | None = max_archive_option()

    @property
    def count(self) -> int:
        """The number of jobs, by default one per core."""
        return self.jobs or os.cpu_count() or 1

    @property
    def max_size(self) -> int:
        """The limit of bytes of an archive of unknown size. Raises `UsageError`."""
        from cudaredist.sources.protocol import MAX_ARCHIVE

        size = parse_size(self.max_archive)
        return MAX_ARCHIVE if size is None else size


class Releases(OptionGroup):
    """Releases upstream, by default the latest."""

    version: list[str] | None = label_option(
        "Release, prefix, latest or all. Repeatable. Default: latest."
    )
    min_version: str | None = label_option("Oldest release.")
    max_version: str | None = label_option("Newest release. 12.9 includes every 12.9.x.")
    pre: bool = pre_option()
    default: ClassVar[Sequence[str]] = ()

    @property
    def nvidia_channels(self) -> frozenset[str]:
        """The selected channels of NVIDIA's second server."""
        return nvidia_channels_of(pre=self.pre, names=None)

    @property
    def selection(self) -> "Selection":
        """The selected releases. Raises `UsageError`."""
        from cudaredist.store.selection import Selection

        has_bounds = self.min_version is not None or self.max_version is not None
        versions = self.version or (() if has_bounds else self.default)
        low, high = self.min_version, self.max_version
        return Selection.parse(versions, low, high, nvidia_channels=self.nvidia_channels)


class NvidiaChannels(OptionGroup):
    """Channels of NVIDIA's second server, by default none."""

    pre: bool = pre_option()
    nvidia_channel: list[str] | None = nvidia_channel_option()

    @property
    def names(self) -> frozenset[str]:
        """The selected NVIDIA channels."""
        return nvidia_channels_of(pre=self.pre, names=self.nvidia_channel)


class UpstreamReleases(Releases):
    """Releases upstream, also those of other NVIDIA channels."""

    nvidia_channel: list[str] | None = nvidia_channel_option()

    @property
    def nvidia_channels(self) -> frozenset[str]:
        """The selected channels of NVIDIA's second server."""
        return nvidia_channels_of(pre=self.pre, names=self.nvidia_channel)


class LocalReleases(Releases):
    """Releases in the data folder, by default all."""

    version: list[str] | None = label_option("Local release, prefix, latest or all. Default: all.")
    default: ClassVar[Sequence[str]] = ("all",)


class Archives(OptionGroup):
    """Archives of the releases, by default all."""

    package: list[str] | None = package_option(
        "Package, such as cuda_cudart. Repeatable. Default: all."
    )
    platform: list[str] | None = platform_option(
        "Platform, such as linux-x86_64. Repeatable. Default: all."
    )
    variant: list[str] | None = select_option("Variant, such as cuda12. Repeatable. Default: all.")

    @property
    def filter(self) -> "Filter":
        """The filter for these archives."""
        from cudaredist.store.targets import Filter

        names = {"package": self.package, "platform": self.platform, "variant": self.variant}
        return Filter(names={field: frozenset(values or ()) for field, values in names.items()})


class Folders(OptionGroup):
    """The data folder and the cache folder."""

    data_dir: Path | None = data_dir_option()
    cache_dir: Path | None = cache_dir_option()


class ManifestOptions(Options):
    """Options of commands that change the data of local manifests."""

    log_level: LogLevel | None = output_option(
        "Other name of the nixpkgs manual: debug, info, warning, error or critical.",
        metavar="LEVEL",
        case_sensitive=False,
        hidden=True,
    )
    channel: ChannelName = channel_option()
    network: Network = dataclasses.field(default_factory=Network)
    check: bool = check_option()
    keep_going: bool = safety_option(
        "Continue after a failure. Default: on.", names="--keep-going/--fail-fast", default=True
    )
    strict: bool = strict_option()
    folders: Folders = dataclasses.field(default_factory=Folders)


class Data(OptionGroup):
    """The data of a command that does not change it."""

    channel: ChannelName | None = select_option(
        "NVIDIA's archives or wheels. Default: that of the local CUDA."
    )
    data_dir: Path | None = read_data_dir_option()
    shipped_data: bool = shipped_data_option()
