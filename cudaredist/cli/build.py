"""build: package sets from the data files."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.cli.options import (
    ChannelName,
    CoverageName,
    Options,
    Write,
    complete_platform,
    data_dir_option,
    host_option,
    output_option,
    place_option,
    read_channel_option,
    safety_option,
    select_option,
    shipped_data_option,
)
from cudaredist.cli.session import CHECK_OR_DRY_RUN, Refusal, Session, command
from cudaredist.errors import EXIT_OK, ReadError, UsageError
from cudaredist.redists import CUDA

if TYPE_CHECKING:
    from cudaredist.packagesets.spec import Request
    from cudaredist.schema.base import Channel
    from cudaredist.store.data_folder import Store


class BuildOptions(Options):
    """The options of build."""

    cuda: list[str] | None = select_option(
        "CUDA release held, or a minor for its newest patch; repeatable. Default: the newest "
        "patch of every minor held that is published for the platform; all: every patch of them.",
        metavar="LABEL|all",
    )
    platform: str | None = select_option(
        "Platform of NVIDIA's manifests, such as linux-x86_64. Default: every one that "
        "the release is published for.",
        metavar="NAME",
        autocompletion=complete_platform,
    )
    system: str | None = select_option(
        "Nix system, such as aarch64-linux, instead of the platform; with the "
        "capabilities it says which of the two for ARM is meant.",
        metavar="SYSTEM",
    )
    capability: list[str] | None = select_option(
        "Compute capability to build for; repeatable. Default: those of the release, and on "
        "linux-aarch64 those of Jetsons.",
        metavar="X.Y[a|f]|sm_XY",
    )
    forward_compat: bool | None = select_option(
        "Embed code that later GPUs take. Default: where a capability without a letter "
        "is asked for.",
        names="--forward-compat/--no-forward-compat",
    )
    redist: list[str] | None = select_option(
        "Release of a redistributable; repeatable. Default: auto, the newest that is "
        "published for the set.",
        metavar="auto|NAME=LABEL",
    )
    redist_map: Path | None = select_option(
        "JSON object of such releases by name; that of cuda stands for --cuda.", metavar="FILE"
    )
    also: list[str] | None = select_option(
        "A further release beside the chosen one: cudnn=8.9.7 gives cudnn_8_9; repeatable.",
        metavar="NAME=LABEL",
    )
    channel: ChannelName | None = read_channel_option()
    default_gcc: int | None = host_option(
        "The distribution's GCC; it is kept where nvcc accepts it.", metavar="MAJOR", min=1
    )
    available_gcc: str | None = host_option(
        "GCCs to choose from otherwise. Default: any.", metavar="MAJOR,..."
    )
    wheel_base: str | None = output_option(
        "Address that the paths of the wheel channel are relative to, for the archives' "
        "addresses; without it they are unknown.",
        metavar="URL",
    )
    output: Path | None = output_option(
        "Where the documents go: PLATFORM/cuda-LABEL.json below a folder with an "
        "index.json, or one set in one file. Default: build.",
        names="--output -o",
        metavar="FOLDER|FILE.json",
    )
    overlay: list[Path] | None = place_option(
        "Folder with manifests/, features/ and policy/ of your own, which go before the "
        "data folder's; repeatable, the last one wins.",
        metavar="FOLDER",
    )
    data_dir: Path | None = data_dir_option()
    shipped_data: bool = shipped_data_option()
    allow_missing_features: bool = safety_option(
        "Go on where archives were not examined: outputs and libraries are unknown then."
    )
    allow_hollow: bool = safety_option("Make a set even where it would have no nvcc or no cudart.")
    require_coverage: CoverageName | None = select_option(
        "Take the newest release of each library with this coverage of every capability: native "
        "code, or at least PTX. Default: the newest release.",
        metavar="native|ptx",
    )
    strict: bool = safety_option(
        "Refuse sets with a warning, such as a broken package, but for what the two "
        "options above allow."
    )
    write: Write = field(default_factory=Write)


REFUSED: tuple[Refusal[BuildOptions], ...] = (
    CHECK_OR_DRY_RUN,
    (lambda o: o.platform and o.system, "--platform cannot be combined with --system", None),
)


@command(BuildOptions, REFUSED)
def build(options: BuildOptions, session: Session) -> int:
    """Assemble package sets, one document for each CUDA release and platform, from the data files.

    Reads manifests, features, tables and policy, and nothing else: the same data gives the same
    bytes. Every known package has an entry, and each that is not available says why. With --json
    one set goes to standard output.

    Examples:

        cudaredist build --cuda 12.9 --platform linux-x86_64

        cudaredist build --cuda 13.0 --system aarch64-linux --capability 11.0

    Examples that need the network:

        cudaredist build --cuda 13.0 --platform linux-sbsa --redist cudnn=9.13.0 --json

        cudaredist build --cuda 12.9 --platform linux-x86_64 --require-coverage native
    """
    from cudaredist.pipeline.read_data import require_manifests
    from cudaredist.pipeline.sets.build_sets import (
        build_one,
        make_sets,
        set_bytes,
        skipped_releases,
        specs_for,
        write_sets,
    )
    from cudaredist.pipeline.sets.load import read_set_data
    from cudaredist.render.set_text import build_text

    store = session.read_store(options.data_dir, options.channel, use_shipped=options.shipped_data)
    if options.wheel_base and store.channel != "wheels":
        raise UsageError(
            "--wheel-base requires --channel wheels",
            hint="the addresses of NVIDIA's own archives are known",
        )
    overlays = [_overlay(path, store.channel) for path in options.overlay or ()]
    if not any(CUDA in overlay.redists() for overlay in overlays):
        require_manifests(store, [CUDA])
    data = read_set_data(store, overlays)
    specs = specs_for(_request(options), data, options.cuda or ())
    if options.json and options.output is None and options.write.is_allowed:
        if len(specs) != 1:
            raise UsageError(
                f"--json needs exactly one set, but {len(specs)} match",
                hint="name --cuda and --platform, or an --output folder",
            )
        package_set = build_one(specs[0], data, strict=options.strict)
        session.console.result(set_bytes(package_set).decode())
        return EXIT_OK
    place = options.output or Path("build")
    if place.suffix == ".json" and len(specs) != 1:
        raise UsageError(f"{place} needs exactly one set, but {len(specs)} match")
    progress = session.progress("building")
    made = make_sets(specs, data, strict=options.strict, progress=progress)
    skipped = skipped_releases(data, options.cuda or ())
    report = write_sets(made, place, skipped=skipped, may_write=options.write.is_allowed)
    return session.finish(report, build_text, dry_run=options.write.dry_run)


def _request(options: BuildOptions) -> "Request":
    from cudaredist.packagesets.spec import Request

    return Request(
        platform=options.platform,
        system=options.system,
        capabilities=tuple(options.capability or ()),
        forward_compat=options.forward_compat,
        pins=_pins(options.redist, options.redist_map),
        also=tuple(_pair(text, "--also") for text in options.also or ()),
        default_gcc=options.default_gcc,
        available_gcc=_majors(options.available_gcc),
        wheel_base=options.wheel_base,
        allow_missing_features=options.allow_missing_features,
        allow_hollow=options.allow_hollow,
        require_coverage=options.require_coverage,
    )


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
