"""Reports on package sets, exports and toolkit roots as text."""

import json
from collections import Counter
from collections.abc import Iterator

from cudaredist.errors import shortened
from cudaredist.packagesets.assemble import OLDER_RELEASE
from cudaredist.render.common import columns, counted
from cudaredist.reports.archive_reports import ToolkitReport
from cudaredist.reports.set_reports import BuildReport, ExportReport, SetSummary, TableDiffReport
from cudaredist.tables.gpus.coverage import describe_coverage

_FOREIGN_SHOWN = 20


def build_text(report: BuildReport) -> Iterator[str]:
    """Yield each package set, followed by its diagnostics."""
    for release in report.skipped:
        yield f"cuda {release.cuda:<8} {'':<14} {'skipped':<11} {release.reason}"
    for outcome in report.sets:
        name = f"cuda {outcome.cuda:<8} {outcome.platform:<14} {outcome.status:<11}"
        if outcome.error is not None:
            yield f"{name} {outcome.error.message}"
            if outcome.error.hint:
                yield f"    hint: {outcome.error.hint}"
            continue
        yield f"{name} {counted(outcome.counts)}"
        for entry in outcome.diagnostics:
            if entry.level != "note" or entry.code == OLDER_RELEASE:
                yield f"    {entry.level}: {entry.subject}: {entry.text}"
    statuses = Counter(outcome.status for outcome in report.sets)
    total = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    if report.skipped:
        total += f"; {len(report.skipped)} releases skipped"
    index = f"; {report.index} index.json" if report.index == "would-write" else ""
    yield f"package sets: {total or 'none'}{index}; in {report.output}"


def set_text(summary: SetSummary) -> Iterator[str]:
    """Yield a set's packages, output sizes and missing packages."""
    yield (
        f"{summary.attribute}: CUDA {summary.cuda} for {summary.platform} "
        f"({summary.channel} channel), {counted(summary.counts)}"
    )
    yield f"capabilities: {' '.join(summary.capabilities)}"
    gcc, clang = summary.host_compiler.gcc, summary.host_compiler.clang
    ranges = [
        f"{name} {'any' if accepted.min is None else accepted.min} to "
        f"{'any' if accepted.max is None else accepted.max}"
        for name, accepted in (("GCC", gcc), ("Clang", clang))
        if accepted is not None
    ]
    selection = f"; GCC {gcc.selected} is selected" if gcc is not None and gcc.selected else ""
    yield f"host compiler: {', '.join(ranges)}{selection}"
    if summary.driver is not None:
        published, lowest = summary.driver.published, summary.driver.lowest
        texts = [f"{published.version} is published with it"] if published else []
        texts += [f"{lowest.version} is the lowest for its major"] if lowest else []
        yield f"driver: {', '.join(texts) or 'unknown'}"
    yield ""
    rows = [("package", "version", "outputs, MB unpacked")]
    for package in summary.packages:
        sizes = [f"{name} {_megabytes(size)}" for name, size in package.size.items()]
        rows.append((package.package, package.version, ", ".join(sizes or package.outputs)))
    yield from columns(rows)
    yield from _coverage_text(summary)
    if summary.totals:
        yield ""
        yield from columns(
            [
                ("output", "files", "MB"),
                *((t.output, f"{t.files:,}", _megabytes(t.size)) for t in summary.totals),
            ]
        )
    if summary.library_bytes:
        share = 100 * summary.library_lib_bytes / summary.library_bytes
        yield (
            f"at run time, programs need {_megabytes(summary.library_lib_bytes)} MB (lib) of the "
            f"libraries' {_megabytes(summary.library_bytes)} MB, {share:.0f} %"
        )
    yield ""
    rows = [("missing", "status", "reason")]
    yield from columns([*rows, *((m.package, m.status, m.reason) for m in summary.missing)])


def _coverage_text(summary: SetSummary) -> Iterator[str]:
    """Yield the coverage of packages with device code."""
    covered = [p for p in summary.packages if any(c.all_files for c in p.coverage.values())]
    if not covered:
        return
    yield ""
    rows = [("coverage", *summary.capabilities)]
    for package in covered:
        cells = (package.coverage.get(name) for name in summary.capabilities)
        rows.append((package.package, *(c.value if c else "unknown" for c in cells)))
    yield from columns(rows)
    for package in covered:
        for name, coverage in package.coverage.items():
            if coverage.value in {"partial", "none"}:
                yield f"{package.package} on {name}: {describe_coverage(coverage)}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"


def export_text(report: ExportReport) -> Iterator[str]:
    """Yield a line for each file of an export."""
    yield from columns([(file.path, file.status, f"{file.size:,} bytes") for file in report.files])


def table_diff_text(report: TableDiffReport) -> Iterator[str]:
    """Yield each different cell with the reason for cudaredist's value."""
    table = ""
    for cell in report.cells:
        if cell.table != table:
            table = cell.table
            yield table
        yield f"  {cell.cell}: {_cell(cell.nixpkgs)} -> {_cell(cell.cudaredist)}"
        yield f"      {cell.reason}"
    count = len(report.cells)
    yield f"{report.checkout}: {count} cell{'' if count == 1 else 's'} to change"


def _cell(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


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
        about = (
            f"CUDA {report.cuda} for {report.platform}, {len(report.packages)} packages, "
            f"{report.files:,} files, {report.size:,} bytes"
        )
    yield f"{report.root}: {report.status}; {about}"
    if report.status == "altered":
        yield f"to restore it, run `cudaredist materialize SET --root {report.root} --replace`"
    if report.fetched_bytes:
        yield f"{report.fetched_bytes:,} bytes downloaded"
