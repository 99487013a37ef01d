"""build: assemble package sets from the data files."""

import shlex
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.cli.options import (
    CoverageName,
    Data,
    Options,
    capability_option,
    check_option,
    cuda_option,
    folder_option,
    gpu_option,
    host_option,
    output_flag,
    output_option,
    output_path_option,
    pin_option,
    platform_option,
    safety_option,
    select_option,
)
from cudaredist.cli.session import PUBLIC_WHEEL_BASE, Refusal, Session, command
from cudaredist.errors import EXIT_OK, UsageError
from cudaredist.hints import again, quoted
from cudaredist.redists import CUDA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudaredist.cli.configuration import DeclaredSets
    from cudaredist.formats.names import Channel
    from cudaredist.sets.inputs import SetData
    from cudaredist.sets.spec import Request
    from cudaredist.store.data_folder import Store


class BuildOptions(Options):
    """Options of build."""

    typical = ("cuda", "platform", "gpu", "redist", "output")

    cuda: list[str] | None = cuda_option(
        "Release, prefix or all; repeatable. Default: newest patches."
    )
    platform: str | None = platform_option(
        "Platform, such as linux-x86_64. Default: all of the release."
    )
    system: str | None = select_option(
        "Nix system, such as aarch64-linux, instead of --platform.", metavar="SYSTEM"
    )
    target: str | None = platform_option("Also build the set of this platform for a cross toolkit.")
    gpu: list[str] | None = gpu_option(
        "Capability, GPU or all. Repeatable. Default: by release.", metavar="X.Y[a|f]|GPU"
    )
    forward_compat: bool | None = capability_option(
        "Also embed PTX for newer GPUs. Default: on, unless only a/f capabilities are requested.",
        names="--forward-compat/--no-forward-compat",
    )
    redist: list[str] | None = pin_option(
        "Release, such as cudnn=9.13. Repeatable. Default: newest."
    )
    redist_map: Path | None = select_option(
        'JSON file, such as {"cuda": "12.9", "cudnn": "9.13.0"}.'
    )
    also: list[str] | None = pin_option(
        "Additional release: cudnn=8.9.7 adds cudnn_8_9. Repeatable."
    )
    default_gcc: int | None = host_option(
        "Preferred GCC, used if nvcc accepts it.", metavar="MAJOR", min=1
    )
    available_gcc: str | None = host_option(
        "Other GCCs to choose from. Default: any.", metavar="MAJOR,..."
    )
    wheel_base: str | None = output_option(
        "Base URL of wheels. Default: their addresses stay unknown.", metavar="URL"
    )
    output: Path | None = output_path_option(
        "Folder, or FILE.json for one set. Default: build.", metavar="PATH"
    )
    files: bool = output_flag("Also list the files of each package by output.")
    overlay: list[Path] | None = folder_option(
        "Folder that overrides the data. Repeatable.", metavar="FOLDER"
    )
    data: Data = field(default_factory=Data)
    allow: list[str] | None = safety_option(
        "Use a release that policy calls broken. Repeatable.", metavar="NAME", default=None
    )
    allow_missing_features: bool = safety_option(
        "Accept archives with unknown outputs and libraries."
    )
    allow_hollow: bool = safety_option("Accept a set without nvcc or cudart.")
    require_coverage: CoverageName | None = capability_option(
        "Use the newest libraries with code for every capability."
    )
    strict: bool = safety_option("Reject sets with warnings, except about default capabilities.")
    check: bool = check_option()


REFUSED: tuple[Refusal[BuildOptions], ...] = (
    PUBLIC_WHEEL_BASE,
    (
        lambda o: o.platform and o.system,
        "--platform cannot be combined with --system",
        ["--platform"],
    ),
    (lambda o: o.target and not o.platform, "--target requires --platform", ["--target"]),
    (
        lambda o: o.gpu and "all" in o.gpu and (o.forward_compat or len(o.gpu) > 1),
        "--gpu all cannot be combined with other capabilities or --forward-compat",
        ["--gpu"],
    ),
)


_SELECTION = frozenset(
    {
        *("cuda", "platform", "system", "target", "gpu", "forward_compat", "redist"),
        *("redist_map", "also", "default_gcc", "available_gcc", "overlay"),
    }
)
"""The options that select other sets than the declared ones."""


@command(BuildOptions, REFUSED)
def build(options: BuildOptions, session: Session) -> int:
    """Assemble package sets from the data files.

    Examples:

        cudaredist build --cuda 12.9 --platform linux-x86_64
        cudaredist build --cuda 13.0 --system aarch64-linux --gpu 11.0
        cudaredist build --cuda 13.0 --platform linux-sbsa --redist cudnn=9.13 --json

    A set describes one CUDA release on one platform. Sets are written to
    build/PLATFORM/cuda-LABEL.json, and build/index.json lists them. With --json, a single set is
    written to standard output. --target writes a pair of sets for a cross toolkit.

    Without options that select sets, these are the sets that the configuration file declares. If it
    declares none, --cuda selects the newest patch of every local minor. `--cuda all` selects every
    patch. A prefix such as 13 selects the newest local 13.x.y. The default capabilities are those
    of the release, or on linux-aarch64 those of Jetsons. `--gpu all` builds a set for each
    capability, as in nixpkgs' pkgsForCudaArch. An overlay is a folder with its own
    manifests/, features/ and policy/, which override the data's. The last of several wins.

    The same data always gives the same bytes. Every known package has an entry, with a reason if it
    is not available.
    """
    from cudaredist.cli.configuration import declared_sets
    from cudaredist.commands.build.build_sets import (
        build_one,
        make_sets,
        skipped_releases,
        specs_for,
        write_sets,
    )
    from cudaredist.commands.build.text import build_text

    store = session.read_store(options.data)
    if options.wheel_base and store.channel != "wheels":
        hint = f"run `{again(channel='wheels')}`"
        raise UsageError("--wheel-base requires --channel wheels", hint=hint)
    declared = None if options.typed & _SELECTION else declared_sets()
    if declared is not None:
        return _build_declared(declared, options, store, session)
    data = _read_data(store, options)
    specs = specs_for(_request(options), data, options.cuda or ())
    if options.json and options.output is None and not options.check:
        _require_one(specs, "--json")
        package_set = build_one(specs[0], data, strict=options.strict)
        session.console.result(package_set.canonical().decode())
        return EXIT_OK
    output = options.output or Path("build")
    if output.suffix == ".json":
        _require_one(specs, str(output))
    progress = session.progress("building")
    results = make_sets(specs, data, strict=options.strict, progress=progress)
    skipped = skipped_releases(data, options.cuda or ())
    report = write_sets(results, output, skipped=skipped, may_write=not options.check)
    shown = partial(build_text, is_quiet=options.quiet, with_notes=options.verbose > 0)
    code = session.finish(report, shown)
    paths = [outcome.path for outcome in report.sets if outcome.path and not outcome.error]
    if paths and not options.check:
        path = quoted(paths[0])
        calls = ("explain set {}", "materialize {} --output cuda", "export requirements {}")
        session.suggest(f"cudaredist {call.format(path)}" for call in calls)
    return code


def _read_data(store: "Store", options: BuildOptions) -> "SetData":
    """Return the data with the overlays of the options. Raises `UsageError` without CUDA."""
    from cudaredist.sets.load import read_set_data
    from cudaredist.store.local_manifests import refuse_other_channel, require_manifests

    overlays = [_overlay(path, store.channel) for path in options.overlay or ()]
    if not any(CUDA in overlay.redists() for overlay in overlays):
        require_manifests(store, [CUDA])
        for text in options.cuda or ():
            refuse_other_channel(store, CUDA, text)
    return read_set_data(store, overlays, "--overlay")


def _build_declared(
    declared: "DeclaredSets", options: BuildOptions, store: "Store", session: Session
) -> int:
    """Build the sets of the configuration file."""
    from cudaredist.commands.build.build_sets import write_sets
    from cudaredist.commands.build.declared_sets import declared_groups, make_groups
    from cudaredist.commands.build.text import build_text

    groups = declared_groups(declared, store, _request(options))
    progress = session.progress("building")
    attempts = make_groups(groups, strict=options.strict, progress=progress)
    output = options.output or declared.folder
    if output.suffix == ".json":
        specs = [spec for group in groups for spec in group.specs]
        _require_one(specs, str(output))
    report = write_sets(attempts, output, may_write=not options.check, is_complete=True)
    shown = partial(build_text, is_quiet=options.quiet, with_notes=options.verbose > 0)
    return session.finish(report, shown)


def _require_one(matches: "Sequence[object]", target: str) -> None:
    if len(matches) != 1:
        call = again(without=["--json"], output="build")
        hint = f"select one with --cuda and --platform, or write all: `{call}`"
        raise UsageError(f"{target} needs exactly one set, but {len(matches)} match", hint=hint)


def _request(options: BuildOptions) -> "Request":
    from cudaredist.cli.configuration import read_configuration
    from cudaredist.commands.build.build_sets import BUILD_OPTIONS
    from cudaredist.formats.packageset import Cross
    from cudaredist.sets.spec import Request

    declared = read_configuration().declared
    pair = None
    if options.platform is not None and options.target is not None:
        pair = Cross(host=options.platform, target=options.target)
    return Request(
        platform=options.platform,
        cross=pair,
        system=options.system,
        capabilities=tuple(options.gpu or ()),
        forward_compat=options.forward_compat,
        pins=_pins(options.redist, options.redist_map),
        also=tuple(_pair(text, "--also") for text in options.also or ()),
        default_gcc=options.default_gcc,
        available_gcc=_majors(options.available_gcc),
        wheel_base=options.wheel_base,
        allow=frozenset(options.allow or ()),
        allow_missing_features=options.allow_missing_features,
        allow_hollow=options.allow_hollow,
        require_coverage=options.require_coverage,
        with_files=options.files,
        alias_fallback=declared is not None and declared.alias_fallback,
        options=BUILD_OPTIONS,
    )


def _overlay(path: Path, channel: "Channel") -> "Store":
    from cudaredist.store.data_folder import Store
    from cudaredist.store.files import folder_problem

    problem = folder_problem(path)
    if problem is not None:
        raise UsageError(f"{path}: {problem}", hint=f"run `{again(without=['--overlay'])}`")
    return Store(path, channel)


def _pins(texts: list[str] | None, file: Path | None) -> dict[str, str]:
    """Return the pinned releases. The command line overrides the file."""
    pins: dict[str, str] = {}
    for text in texts or ():
        if text == "auto":
            continue
        name, label = _pair(text, "--redist")
        if name == "cuda":
            hint = f"run `{again(without=['--redist'], cuda=label)}`"
            raise UsageError("--redist cannot pin cuda", hint=hint)
        if pins.setdefault(name, label) != label:
            pinned = [f"--redist {shlex.quote(f'{redist}={pin}')}" for redist, pin in pins.items()]
            call = again(*pinned, f"--also {name}={shlex.quote(label)}", without=["--redist"])
            hint = f"to add the other release under a versioned name, run `{call}`"
            raise UsageError(f"--redist pins {name} to {pins[name]} and {label}", hint=hint)
    if file is None:
        return pins
    return _read_map(file) | pins


def _read_map(file: Path) -> dict[str, str]:
    from cudaredist.formats.registry import parse_own_json
    from cudaredist.store.files import require_file

    document = parse_own_json(require_file(file), f"map of releases ({file})")
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        message = f"{file}: expected an object with a label for each name"
        raise UsageError(message, hint='write it as {"cudnn": "9.13.0"}')
    return document


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, label = text.partition("=")
    if not (name and equals and label):
        hint = f"run `{again(f'{option} cudnn=9.10', without=[option])}`"
        raise UsageError(f"{option} {text}: expected NAME=LABEL", hint=hint)
    return name, label


def _majors(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        hint = f"run `{again(available_gcc='12,13,14')}`"
        raise UsageError(f"--available-gcc {text}: expected major versions", hint=hint) from None
