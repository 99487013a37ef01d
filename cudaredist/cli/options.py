"""The options, each declared once, with its help, its variable and its panel."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cudaredist.redists import NVIDIA_BASE, REDISTS


class ColorChoice(StrEnum):
    """When to colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class LogLevel(StrEnum):
    """How much to log."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class CheckFormat(StrEnum):
    """Forms of check's result."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    GITHUB = "github"


def complete_redist(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a redistributable, for shells."""
    return [(r.name, r.title) for r in REDISTS.values() if r.name.startswith(incomplete)]


def complete_schema(incomplete: str) -> list[str]:
    """Complete the name of a kind of data file, for shells."""
    from cudaredist.schema.registry import FILE_KINDS

    return [name for name in FILE_KINDS if name.startswith(incomplete)]


class ChannelChoice(StrEnum):
    """Where archives come from."""

    REDIST = "redist"
    WHEELS = "wheels"


class EngineChoice(StrEnum):
    """Where archives are worked on."""

    LOCAL = "local"
    DASK = "dask"


def complete_platform(incomplete: str) -> list[str]:
    """Complete the name of a platform, for shells."""
    from cudaredist.primitives import KNOWN_PLATFORMS

    return sorted(name for name in KNOWN_PLATFORMS if name.startswith(incomplete))


SELECT, NETWORK, SAFETY, OUTPUT, PLACES = (
    "Selection",
    "Network",
    "Safety",
    "Output",
    "Places",
)

RedistOption = Annotated[
    list[str] | None,
    typer.Option(
        "--redist",
        metavar="NAME",
        help="Redistributable, such as cuda or cudnn; repeatable.",
        rich_help_panel=SELECT,
        autocompletion=complete_redist,
    ),
]
ChannelOption = Annotated[
    ChannelChoice,
    typer.Option(
        "--channel",
        help="NVIDIA's redistributable archives, or the same components as wheels, through pip.",
        rich_help_panel=SELECT,
    ),
]
ReadChannelOption = Annotated[
    ChannelChoice | None,
    typer.Option(
        "--channel",
        help="NVIDIA's redistributable archives, or the same components as wheels. Default: "
        "redist, or wheels where the data holds nothing else, as the shipped data does.",
        rich_help_panel=SELECT,
    ),
]
VersionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--version",
        metavar="LABEL|latest|all",
        help="Release to take; repeatable. Default: latest, or all within the bounds given.",
        rich_help_panel=SELECT,
    ),
]
HeldVersionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--version",
        metavar="LABEL|latest|all",
        help="Release to work on, of those held; repeatable. Default: all, or all within the "
        "bounds given.",
        rich_help_panel=SELECT,
    ),
]
MinVersionOption = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="Oldest release to take.", rich_help_panel=SELECT),
]
MaxVersionOption = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="Newest release to take; 12.9 includes every 12.9.x.",
        rich_help_panel=SELECT,
    ),
]
BaseUrlOption = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        metavar="URL|FOLDER",
        envvar="CUDAREDIST_BASE_URL",
        help="What holds compute/NAME/redist/: https://, file:// or a folder; repeatable, "
        f"tried in order (in the variable, with blanks between). Default: {NVIDIA_BASE}.",
        rich_help_panel=NETWORK,
    ),
]
JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        max=256,
        envvar="CUDAREDIST_JOBS",
        help="Downloads at the same time.",
        rich_help_panel=NETWORK,
    ),
]
ArchiveJobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        max=256,
        envvar="CUDAREDIST_JOBS",
        help="Archives at the same time. Default: the number of cores.",
        rich_help_panel=NETWORK,
    ),
]
RetriesOption = Annotated[
    int,
    typer.Option(
        min=0,
        max=20,
        envvar="CUDAREDIST_RETRIES",
        help="Further attempts after a failure that may pass.",
        rich_help_panel=NETWORK,
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=3600,
        metavar="SECONDS",
        envvar="CUDAREDIST_TIMEOUT",
        help="Longest time for one listing or manifest, and longest silence in an archive.",
        rich_help_panel=NETWORK,
    ),
]
AllowHttpOption = Annotated[
    bool,
    typer.Option(
        "--allow-http",
        envvar="CUDAREDIST_ALLOW_HTTP",
        help="Allow plain http to other machines.",
        rich_help_panel=NETWORK,
    ),
]
OfflineOption = Annotated[
    bool,
    typer.Option(
        "--offline",
        envvar="CUDAREDIST_OFFLINE",
        help="Use no network.",
        rich_help_panel=NETWORK,
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        envvar="CUDAREDIST_DATA_DIR",
        help="Folder with manifests/, features/ and tables. Default: ./data; to read, where there "
        "is none, the data shipped with cudaredist.",
        rich_help_panel=PLACES,
    ),
]
CacheDirOption = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        envvar="CUDAREDIST_CACHE_DIR",
        help="Folder for what makes later runs cheaper; may be deleted at any time.",
        rich_help_panel=PLACES,
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse manifests with anything unknown or odd.",
        rich_help_panel=SAFETY,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT)
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress, notes or warnings.", rich_help_panel=OUTPUT),
]
VerboseOption = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        help="Say more; twice: every request.",
        rich_help_panel=OUTPUT,
    ),
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", case_sensitive=False, help="What to log.", rich_help_panel=OUTPUT),
]
ColorOption = Annotated[
    ColorChoice,
    typer.Option("--color", help="Colour messages.", rich_help_panel=OUTPUT),
]
CheckOption = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Write nothing; exit 1 if something would be written.",
        rich_help_panel=SAFETY,
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Write nothing; say what would be.", rich_help_panel=SAFETY),
]
KeepGoingOption = Annotated[
    bool,
    typer.Option(
        "--keep-going/--fail-fast",
        help="After a failure, go on with the others, or stop.",
        rich_help_panel=SAFETY,
    ),
]
ParallelOption = Annotated[
    bool,
    typer.Option(
        "--parallel/--no-parallel", help="--no-parallel is --jobs 1.", rich_help_panel=NETWORK
    ),
]
