"""The command that turns package sets into the files of their consumers."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated

import typer

from cudaredist.cli.options import (
    OUTPUT,
    PLACES,
    CheckOption,
    ColorChoice,
    ColorOption,
    JsonOption,
    LogLevelOption,
    QuietOption,
    VerboseOption,
)
from cudaredist.cli.running import exits, make_console
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from cudaredist.exporters.export_format import Exporter
    from cudaredist.reports.set_reports import ExportReport
    from cudaredist.schema.packageset import PackageSet


def complete_format(incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a format, for shells."""
    from cudaredist.exporters import EXPORTERS

    return [(e.name, e.title) for e in EXPORTERS.values() if e.name.startswith(incomplete)]


@exits
def export(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT", help="One of those above.", autocompletion=complete_format
        ),
    ],
    package_set: Annotated[
        Path, typer.Argument(metavar="SET", help="Package set that build made, *.json.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="Where it goes. Default: standard output, for what is one file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Toolkit root that env and cmake refer to, as materialize lays it out. Default: "
            "they name none.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    wheel_base: Annotated[
        str | None,
        typer.Option(
            "--wheel-base",
            metavar="URL",
            help="Address that the paths of the wheel channel are relative to, for sets that were "
            "built without one.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    check: CheckOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Turn a package set into the files of a consumer.

    **nix**: the set's document, and a default.nix that reads it. **redistrib**: NVIDIA's own
    manifests, for one platform. **bazel**: components and toolkit of rules_cuda. **cyclonedx**,
    **spdx**: bills of materials. **urls**, **sha256sums**: lists for fetching and proving.
    **outputs**, **ignore-missing**: tables that nixpkgs keeps by hand. **env**, **cmake**: a
    toolkit's root, architectures and host compiler.

    Examples:

        cudaredist export nix build/linux-x86_64/cuda-12.9.1.json -o cuda

        cudaredist export urls SET | wget -i -

        cudaredist export cmake SET --root /opt/cuda -o cuda-toolchain.cmake
    """
    from cudaredist import pipeline, render
    from cudaredist.exporters import find_exporter
    from cudaredist.exporters.export_format import ExportedSet

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    exporter = find_exporter(form)
    _refuse(exporter, output, root, check=check, json=json)
    value = pipeline.read_package_set(package_set).value
    if wheel_base is not None:
        value = _with_addresses(value, wheel_base)
    exported = ExportedSet(value, root)
    files = exporter.files(exported)
    if exporter.reads_features and exported.unexamined:
        console.warning(
            f"{len(exported.unexamined)} packages were not examined, and nothing is said of them"
        )
    if output is None:
        (content,) = files.values()
        console.result(content.decode())
        return EXIT_OK
    report = _write(exporter, files, output, may_write=not check)
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.export_text(report))
    return report.exit_code


def _refuse(
    exporter: "Exporter", output: Path | None, root: str | None, *, check: bool, json: bool
) -> None:
    if output is None:
        if exporter.file is None:
            raise UsageError(
                f"{exporter.name} is several files", hint="name the folder for them: -o FOLDER"
            )
        if check or json:
            raise UsageError(
                f"{'--check' if check else '--json'} is about files that are written",
                hint="name the file: -o FILE",
            )
    if root is not None:
        if not exporter.takes_root:
            raise UsageError(
                f"{exporter.name} refers to no toolkit root", hint="--root goes with env and cmake"
            )
        if not (PurePosixPath(root).is_absolute() or PureWindowsPath(root).is_absolute()):
            raise UsageError(f"--root {root}: expected a whole path", hint="--root /opt/cuda")


def _with_addresses(package_set: "PackageSet", base: str) -> "PackageSet":
    from cudaredist.exporters.export_format import with_addresses

    if package_set.channel != "wheels":
        raise UsageError(
            "--wheel-base goes with sets of the wheel channel",
            hint="the addresses of NVIDIA's own archives are known",
        )
    return with_addresses(package_set, base)


def _write(
    exporter: "Exporter", files: Mapping[str, bytes], output: Path, *, may_write: bool
) -> "ExportReport":
    from cudaredist.primitives import sha256_of
    from cudaredist.reports.set_reports import ExportedFile, ExportReport
    from cudaredist.store.files import read_file, write_output

    written = []
    for name, content in files.items():
        is_named = exporter.file is not None and not output.is_dir()
        path = output if is_named else output / name
        is_same = read_file(path) == content
        if may_write and not is_same:
            write_output(path, content)
        written.append(
            ExportedFile(
                path=str(path),
                status="unchanged" if is_same else "written" if may_write else "would-write",
                bytes=len(content),
                sha256=sha256_of(content),
            )
        )
    is_stale = any(file.status == "would-write" for file in written)
    return ExportReport(
        format=exporter.name,
        files=tuple(written),
        exit_code=EXIT_FINDINGS if is_stale else EXIT_OK,
    )
