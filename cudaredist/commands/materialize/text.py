"""The report of materialize as text."""

from collections.abc import Iterator

from cudaredist.commands.materialize.report import LibraryCode, ToolkitReport
from cudaredist.errors import listed, plural, shortened
from cudaredist.hints import again

_FOREIGN_SHOWN = 20
_LIBRARIES_SHOWN = 3


def toolkit_text(report: ToolkitReport) -> Iterator[str]:
    """Yield a toolkit root's problems and status."""
    yield from report.problems
    if report.status != "written":
        yield from (
            f"not installed by cudaredist: {path}"
            for path in shortened(report.foreign, _FOREIGN_SHOWN)
        )
    about = "remains of an interrupted run"
    if report.cuda is not None:
        target = f" with target {report.target}" if report.target else ""
        packages = plural(len(report.packages), "package")
        files = f"{plural(report.files, 'file')}, {report.size:,} bytes"
        about = f"CUDA {report.cuda} for {report.platform}{target}, {packages}, {files}"
    yield f"{report.root}: {report.status}; {about}"
    if report.full_size is not None:
        names = ", ".join(report.libraries)
        yield f"{report.full_size:,} bytes in the whole packages; libraries: {names}"
    if report.device_code is not None:
        yield _code_text(report.device_code)
    if report.optional_libraries:
        names = ", ".join(report.optional_libraries)
        yield f"not installed, although these libraries may open them: {names}"
    if report.changed_files:
        yield f"run paths added with patchelf: {', '.join(report.changed_files)}"
    yield from _missing_text(report)
    if report.image is not None:
        yield f"layer {report.image.layer}, manifest {report.image.manifest}"
    if report.status == "altered":
        yield "to restore it, repeat the command that created it with --replace"
    if report.fetched_bytes:
        yield f"{report.fetched_bytes:,} bytes downloaded"


def _missing_text(report: ToolkitReport) -> Iterator[str]:
    """Describe the libraries without run paths to other libraries of the root."""
    missing = report.missing_run_paths
    lines = []
    for path, gap in missing.items():
        uses = [f"needs {listed(gap.needs, _LIBRARIES_SHOWN)}"] if gap.needs else []
        uses += [f"may open {listed(gap.opens, _LIBRARIES_SHOWN)}"] if gap.opens else []
        folders = " or ".join(gap.folders)
        lines.append(f"{path} has no run path to {folders}, and {' and '.join(uses)}")
    yield from shortened(lines, _FOREIGN_SHOWN)
    # An image sets LD_LIBRARY_PATH.
    if missing and report.image is None:
        # After --verify, the components of the root are unknown.
        is_verified = report.status in {"verified", "altered"}
        add = "repeat the command that created it with --run-paths"
        add = add if is_verified else f"run `{again('--run-paths')}`"
        yield f"to find them, set LD_LIBRARY_PATH with `cudaredist export env`, or {add}"


def _code_text(code: LibraryCode) -> str:
    """Describe the device code of libraries: size, unused bytes, unknown libraries."""
    text = f"{code.size:,} bytes of device code"
    if code.unused_size:
        names = ", ".join(code.capabilities)
        text += f", of which GPUs of capability {names} do not use {code.unused_size:,}"
    unknown = listed(code.unknown, _FOREIGN_SHOWN)
    return f"{text}; unknown for {unknown}" if unknown else text
