"""The command that makes package sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudaredist.cli.options import (
    OUTPUT,
    PLACES,
    SAFETY,
    SELECT,
    CheckOption,
    ColorChoice,
    ColorOption,
    DataDirOption,
    DryRunOption,
    JsonOption,
    LogLevelOption,
    QuietOption,
    ReadChannelOption,
    VerboseOption,
    complete_platform,
)
from cudaredist.cli.running import exits, make_console, may_write, read_store
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, ReadError, UsageError

if TYPE_CHECKING:
    from cudaredist.schema.base import Channel
    from cudaredist.store.data_folder import Store

HOST = "Host compiler"


@exits
def build(
    cuda: Annotated[
        list[str] | None,
        typer.Option(
            "--cuda",
            metavar="LABEL|all",
            help="CUDA release held, or a minor for its newest patch; repeatable. Default: the "
            "newest patch of every minor held that is published for the platform; all: every "
            "patch of them.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(
            "--platform",
            metavar="NAME",
            help="Platform of NVIDIA's manifests, such as linux-x86_64. Default: every one that "
            "the release is published for.",
            rich_help_panel=SELECT,
            autocompletion=complete_platform,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            metavar="SYSTEM",
            help="Nix system, such as aarch64-linux, instead of the platform; with the "
            "capabilities it says which of the two for ARM is meant.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(
            "--capability",
            metavar="X.Y[a|f]",
            help="Compute capability to build for; repeatable. Default: those of the release.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    forward_compat: Annotated[
        bool | None,
        typer.Option(
            "--forward-compat/--no-forward-compat",
            help="Embed code that later GPUs take. Default: where a capability without a letter "
            "is asked for.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    redist: Annotated[
        list[str] | None,
        typer.Option(
            "--redist",
            metavar="auto|NAME=LABEL",
            help="Release of a redistributable; repeatable. Default: auto, the newest that is "
            "published for the set.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    redist_map: Annotated[
        Path | None,
        typer.Option(
            "--redist-map",
            metavar="FILE",
            help="JSON object of such releases by name; that of cuda stands for --cuda.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="NAME=LABEL",
            help="A further release beside the chosen one: cudnn=8.9.7 gives cudnn_8_9; "
            "repeatable.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    channel: ReadChannelOption = None,
    default_gcc: Annotated[
        int | None,
        typer.Option(
            "--default-gcc",
            metavar="MAJOR",
            min=1,
            help="The distribution's GCC; it is kept where nvcc accepts it.",
            rich_help_panel=HOST,
        ),
    ] = None,
    available_gcc: Annotated[
        str | None,
        typer.Option(
            "--available-gcc",
            metavar="MAJOR,...",
            help="GCCs to choose from otherwise. Default: any.",
            rich_help_panel=HOST,
        ),
    ] = None,
    wheel_base: Annotated[
        str | None,
        typer.Option(
            "--wheel-base",
            metavar="URL",
            help="Address that the paths of the wheel channel are relative to, for the archives' "
            "addresses; without it they are unknown.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER|FILE.json",
            help="Where the documents go: PLATFORM/cuda-LABEL.json below a folder with an "
            "index.json, or one set in one file. Default: build.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    overlay: Annotated[
        list[Path] | None,
        typer.Option(
            "--overlay",
            metavar="FOLDER",
            help="Folder with manifests/, features/ and policy/ of your own, which go before the "
            "data folder's; repeatable, the last one wins.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    data_dir: DataDirOption = None,
    allow_missing_features: Annotated[
        bool,
        typer.Option(
            "--allow-missing-features",
            help="Go on where archives were not examined: outputs and libraries are unknown then.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    allow_hollow: Annotated[
        bool,
        typer.Option(
            "--allow-hollow",
            help="Make a set even where it would have no nvcc or no cudart.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse sets with a warning, such as a broken package, but for what the two "
            "options above allow.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    check: CheckOption = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Assemble package sets, one document for each CUDA release and platform, from the data files.

    Reads manifests, features, tables and policy, and nothing else: the same data gives the same
    bytes. Every known package has an entry, and each that is not available says why. With --json
    one set goes to standard output.

    Examples:

        cudaredist build --cuda 12.9 --platform linux-x86_64

        cudaredist build --cuda 12.6.3 --system aarch64-linux --capability 8.7

        cudaredist build --cuda 13.0 --platform linux-sbsa --redist cudnn=9.13.0 --json
    """
    from cudaredist import pipeline, render
    from cudaredist.packagesets.spec import Request

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    writes = may_write(check=check, dry_run=dry_run)
    if platform and system:
        raise UsageError("--platform and --system exclude each other")
    store = read_store(console, data_dir, channel)
    if wheel_base and store.channel != "wheels":
        raise UsageError(
            "--wheel-base goes with --channel wheels",
            hint="the addresses of NVIDIA's own archives are known",
        )
    data = pipeline.read_set_data(store, [_overlay(path, store.channel) for path in overlay or ()])
    request = Request(
        platform=platform,
        system=system,
        capabilities=tuple(capability or ()),
        forward_compat=forward_compat,
        pins=_pins(redist, redist_map),
        also=tuple(_pair(text, "--also") for text in also or ()),
        default_gcc=default_gcc,
        available_gcc=_majors(available_gcc),
        wheel_base=wheel_base,
        allow_missing_features=allow_missing_features,
        allow_hollow=allow_hollow,
    )
    specs = pipeline.specs_for(request, data, cuda or ())
    if json and output is None and writes:
        if len(specs) != 1:
            raise UsageError(
                f"--json prints one set, and {len(specs)} are meant",
                hint="name --cuda and --platform, or an --output folder",
            )
        package_set = pipeline.build_one(specs[0], data, strict=strict)
        console.result(pipeline.set_bytes(package_set).decode())
        return EXIT_OK
    place = output or Path("build")
    if place.suffix == ".json" and len(specs) != 1:
        raise UsageError(f"{place} holds one set, and {len(specs)} are meant")
    with console.progress("building") as progress:
        made = pipeline.make_sets(specs, data, strict=strict, progress=progress)
        report = pipeline.write_sets(made, place, may_write=writes)
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.build_text(report))
    is_only_stale = report.exit_code == EXIT_FINDINGS
    return EXIT_OK if dry_run and is_only_stale else report.exit_code


def _overlay(path: Path, channel: "Channel") -> "Store":
    from cudaredist.store.data_folder import Store

    if not path.is_dir():
        raise UsageError(f"{path}: no such folder", hint="name a folder in --overlay")
    return Store(path, channel)


def _pins(texts: list[str] | None, file: Path | None) -> dict[str, str]:
    """Return the releases named, those of the command line before the file's."""
    named: dict[str, str] = {}
    for name, label in (_pair(text, "--redist") for text in texts or () if text != "auto"):
        if name == "cuda":
            raise UsageError("the release of cuda is named by --cuda")
        if named.setdefault(name, label) != label:
            raise UsageError(
                f"--redist names {name} {named[name]} and {name} {label}",
                hint="a set has one of them; --also adds others under versioned names",
            )
    return (_read_map(file) if file else {}) | named


def _read_map(file: Path) -> dict[str, str]:
    from cudaredist.schema.registry import parse_own_json
    from cudaredist.store.files import read_file

    data = read_file(file)
    if data is None:
        raise ReadError(file, FileNotFoundError("no such file"))
    document = parse_own_json(data, f"map of releases ({file})")
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise UsageError(
            f"{file}: expected an object of labels by name", hint='{"cudnn": "9.13.0"}'
        )
    return document


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, label = text.partition("=")
    if not (name and equals and label):
        raise UsageError(f"{option} {text}: expected NAME=LABEL", hint=f"{option} cudnn=9.13.0")
    return name, label


def _majors(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--available-gcc {text}: expected majors, such as 12,13,14") from None
