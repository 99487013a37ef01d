"""The report of materialize as text."""

from collections.abc import Iterator, Sequence

from cudaredist.cli.text import columns, megabytes
from cudaredist.commands.materialize.report import LibraryCode, ToolkitReport
from cudaredist.hints import again
from cudaredist.words import listed, plural, shortened

_FOREIGN_SHOWN = 20
_LIBRARIES_SHOWN = 3


def toolkit_text(report: ToolkitReport) -> Iterator[str]:
    """Yield a toolkit root's problems and status, or the sizes of one that may be created."""
    yield from _size_text(report) if report.sizes else _root_text(report)


def _root_text(report: ToolkitReport) -> Iterator[str]:
    yield from report.problems
    if report.status != "written":
        yield from (
            f"not installed by cudaredist: {path}"
            for path in shortened(report.foreign, _FOREIGN_SHOWN)
        )
    about = "remains of an interrupted run"
    if report.cuda is not None:
        files = f"{plural(report.files, 'file')}, {report.size:,} bytes"
        about = f"{_contents(report)}, {files}"
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


def _contents(report: ToolkitReport) -> str:
    """Return the release, the platforms and the number of packages of a root."""
    target = f" with target {report.target}" if report.target else ""
    packages = plural(len(report.packages), "package")
    return f"CUDA {report.cuda} for {report.platform}{target}, {packages}"


def _size_text(report: ToolkitReport) -> Iterator[str]:
    """Yield the sizes of the packages that would be installed, the largest first."""
    sizes = sorted(report.sizes.items(), key=lambda item: -(item[1].unpacked or 0))
    unpacked = [size.unpacked for _, size in sizes]
    archives = [size.archive for _, size in sizes]
    most = "at most " if report.libraries else ""
    text = f"{report.root}: {report.status}; {_contents(report)}, {most}{_total(unpacked)} unpacked"
    yield f"{text}, {_total(archives)} to download"
    if report.libraries:
        yield f"libraries: {', '.join(report.libraries)}"
    head = ("package", "unpacked", "download")
    rows = [(name, _bytes(size.unpacked), _bytes(size.archive)) for name, size in sizes]
    yield from columns([head, *rows])


def _total(sizes: Sequence[int | None]) -> str:
    """Return the sum of sizes, and the number of unknown ones."""
    unknown = sizes.count(None)
    if unknown == len(sizes):
        return "an unknown size"
    text = _bytes(sum(size or 0 for size in sizes))
    return f"{text} and {unknown} of unknown size" if unknown else text


def _bytes(size: int | None) -> str:
    return "unknown" if size is None else megabytes(size)


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
