"""The options that commands share, and how a dataclass of options becomes typer's parameters.

A command's options are the fields of an `OptionGroup`. A field whose type is another one is a group
of options.
"""

import dataclasses
import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
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
    TypeVar,
    dataclass_transform,
)

import typer

from cudaredist.console import Color
from cudaredist.errors import UsageError
from cudaredist.redists import NVIDIA_BASE, REDISTS

if TYPE_CHECKING:
    from cudaredist.pipeline.selection import Selection

_Group = TypeVar("_Group", bound="OptionGroup")

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 1 << (10 * power) for power, unit in enumerate("kmgt", 1)}

LogLevel: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
ChannelName: TypeAlias = Literal["redist", "wheels"]
"""The origin of archives: NVIDIA's own, or wheels."""
CoverageName: TypeAlias = Literal["native", "ptx"]
"""The coverage that a release must have."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class OptionGroup:
    """The base of all options: its subclasses are dataclasses whose fields are options or groups.

    They share one `__init__`: to compile one for each would cost a tenth of the start-up time.
    """

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, eq=False, repr=False)(cls)

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - the fields' types
        for field in _fields(type(self)):
            default = field.default if field.default_factory is MISSING else field.default_factory()
            vars(self)[field.name] = values.get(field.name, default)


def parameters_of(kind: type[OptionGroup]) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a command, those of every command last."""
    general = inspect.get_annotations(Options)
    for field in sorted(_fields(kind), key=lambda field: field.name in general):
        if field.metadata:
            yield _parameter(field)
        elif _is_group(field.type):
            yield from parameters_of(field.type)


def collect(kind: type[_Group], values: Mapping[str, Any]) -> _Group:
    """Return an option group with the values that typer parsed."""
    types = {field.name: field.type for field in _fields(kind)}
    return kind(
        **{
            name: collect(of, values) if _is_group(of) else values[name]
            for name, of in types.items()
        }
    )


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:  # noqa: ANN401 - mypy knows no fields of a transform
    return dataclasses.fields(kind)


def _is_group(annotation: object) -> TypeGuard[type[OptionGroup]]:
    return isinstance(annotation, type) and issubclass(annotation, OptionGroup)


@cache
def _parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
    settings = dict(field.metadata)
    settings["default"] = ... if field.default is MISSING else field.default
    if "rich_help_panel" in settings:
        names = settings.pop("names", f"--{field.name.replace('_', '-')}")
        default = typer.Option(settings.pop("default"), *names.split(), **settings)
    else:
        default = typer.Argument(**settings)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)


def argument(text: str, *, default: object = None, **settings: object) -> Any:  # noqa: ANN401 - as dataclasses.field
    """Return a field that is an argument; it is required if the default is `...`."""
    metadata = {"help": text, **settings}
    return dataclasses.field(default=MISSING if default is ... else default, metadata=metadata)


def _option(panel: str, text: str, **settings: object) -> Any:  # noqa: ANN401 - likewise
    """Return a field that is an option in a panel of the help, by default with the field's name."""
    return argument(text, rich_help_panel=panel, **settings)


select_option = partial(_option, "Selection")
host_option = partial(_option, "Host compiler")
network_option = partial(_option, "Network")
safety_option = partial(_option, "Safety", default=False)
output_option = partial(_option, "Output")
place_option = partial(_option, "Places")


def complete_redist(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a redistributable, for shells."""
    return [(r.name, r.title) for r in REDISTS.values() if r.name.startswith(incomplete)]


def complete_platform(incomplete: str) -> list[str]:
    """Complete the name of a platform, for shells."""
    from cudaredist.primitives import KNOWN_PLATFORMS

    return sorted(name for name in KNOWN_PLATFORMS if name.startswith(incomplete))


def parse_size(text: str) -> int:
    """Read a number of bytes as people write it: `500MB`, `1.5 GiB`, `1000`."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]i?)?b?", text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is no size", hint="write it like 500MB, 5GB or 1.5GiB")
    return int(float(match[1]) * _UNITS[match[2] or ""])


redist_option = partial(
    select_option,
    "Redistributable, such as cuda or cudnn; repeatable.",
    metavar="NAME",
    autocompletion=complete_redist,
)
channel_option = partial(
    select_option,
    "NVIDIA's redistributable archives, or the same components as wheels, from pip's indexes.",
    default="redist",
)
read_channel_option = partial(
    select_option,
    "NVIDIA's redistributable archives, or the same components as wheels. Default: "
    "redist, or wheels where the data holds nothing else, as the shipped data does.",
)
_jobs_option = partial(network_option, names="--jobs -j", min=1, max=256, envvar="CUDAREDIST_JOBS")
jobs_option = partial(_jobs_option, "Downloads at the same time.", default=16)
archive_jobs_option = partial(
    _jobs_option, "Archives at the same time. Default: the number of cores."
)
parallel_option = partial(
    network_option, "--no-parallel is --jobs 1.", names="--parallel/--no-parallel", default=True
)
data_dir_option = partial(
    place_option,
    "Folder with manifests/, features/ and tables. Default: ./data; to read, if it has no "
    "data, the data shipped with cudaredist.",
    metavar="DIR",
    envvar="CUDAREDIST_DATA_DIR",
)
shipped_data_option = partial(
    place_option,
    "Complete the data folder with the data shipped with cudaredist, or do not. The folder's own "
    "entries win.",
    names="--shipped-data/--no-shipped-data",
    default=True,
)
cache_dir_option = partial(
    place_option,
    "Folder for what makes later runs cheaper; may be deleted at any time.",
    metavar="DIR",
    envvar="CUDAREDIST_CACHE_DIR",
)
check_option = partial(safety_option, "Write nothing; exit 1 if something would be written.")
keep_going_option = partial(
    safety_option,
    "After a failure, go on with the others, or stop.",
    names="--keep-going/--fail-fast",
    default=True,
)
strict_option = partial(safety_option, "Refuse manifests with anything unknown or odd.")


class Options(OptionGroup):
    """The options of every command."""

    json: bool = output_option("Print the result as JSON.", default=False)
    quiet: bool = output_option(
        "No progress, notes or warnings.", names="--quiet -q", default=False
    )
    verbose: int = output_option(
        "Say more; twice: every request.", names="--verbose -v", count=True, default=0
    )
    log_level: LogLevel | None = output_option("What to log.", case_sensitive=False)
    color: Color = output_option("Colour messages.", default="auto")
    typed: frozenset[str] = frozenset()
    """The parameters given on the command line, and not by a variable."""


class Network(OptionGroup):
    """How sources are connected to."""

    base_url: list[str] | None = network_option(
        "What holds compute/NAME/redist/: https://, file:// or a folder; repeatable, "
        f"tried in order (in the variable, with blanks between). Default: {NVIDIA_BASE}.",
        metavar="URL|FOLDER",
        envvar="CUDAREDIST_BASE_URL",
    )
    retries: int = network_option(
        "Further attempts after a failure that may pass.",
        min=0,
        max=20,
        envvar="CUDAREDIST_RETRIES",
        default=3,
    )
    timeout: float = network_option(
        "Longest time for one listing or manifest, and longest silence in an archive.",
        min=0.1,
        max=3600,
        metavar="SECONDS",
        envvar="CUDAREDIST_TIMEOUT",
        default=30.0,
    )
    allow_http: bool = network_option(
        "Allow plain http to other machines.", envvar="CUDAREDIST_ALLOW_HTTP", default=False
    )
    offline: bool = network_option("Use no network.", envvar="CUDAREDIST_OFFLINE", default=False)


class ArchiveJobs(OptionGroup):
    """How many archives are read at the same time."""

    jobs: int | None = archive_jobs_option()
    parallel: bool = parallel_option()

    @property
    def count(self) -> int:
        """The number of jobs, by default one for each core."""
        return (self.jobs or os.cpu_count() or 1) if self.parallel else 1


class Releases(OptionGroup):
    """Releases upstream, by default the latest."""

    version: list[str] | None = select_option(
        "Release to take; repeatable. Default: latest, or all within the bounds given.",
        metavar="LABEL|latest|all",
    )
    min_version: str | None = select_option("Oldest release to take.", metavar="LABEL")
    max_version: str | None = select_option(
        "Newest release to take; 12.9 includes every 12.9.x.", metavar="LABEL"
    )
    default: ClassVar[Sequence[str]] = ()

    @property
    def selection(self) -> "Selection":
        """The releases selected. Raises `UsageError`."""
        from cudaredist.pipeline.selection import Selection

        has_bounds = self.min_version is not None or self.max_version is not None
        versions = self.version or (() if has_bounds else self.default)
        return Selection.parse(versions, self.min_version, self.max_version)


class HeldReleases(Releases):
    """Releases in the data folder, by default all."""

    version: list[str] | None = select_option(
        "Release to work on, of those held; repeatable. Default: all, or all within the "
        "bounds given.",
        metavar="LABEL|latest|all",
    )
    default: ClassVar[Sequence[str]] = ("all",)


class Write(OptionGroup):
    """Whether files are written."""

    check: bool = check_option()
    dry_run: bool = safety_option("Write nothing; say what would be.")

    @property
    def is_allowed(self) -> bool:
        """Whether the command may write."""
        return not (self.check or self.dry_run)


class Places(OptionGroup):
    """The folders of the data and of the cache."""

    data_dir: Path | None = data_dir_option()
    cache_dir: Path | None = cache_dir_option()
