"""The report of export as text."""

import json
from collections.abc import Iterator

from cudaredist.cli.text import columns
from cudaredist.commands.export.report import ExportReport, TableDiffReport
from cudaredist.grouping import grouped
from cudaredist.words import plural


def export_text(report: ExportReport) -> Iterator[str]:
    """Yield a line for each file of an export."""
    yield from columns([(file.path, file.status, f"{file.size:,} bytes") for file in report.files])


def table_diff_text(report: TableDiffReport) -> Iterator[str]:
    """Yield each different cell with the reason for cudaredist's value."""
    for table, cells in grouped((cell.table, cell) for cell in report.cells).items():
        yield table
        for cell in cells:
            mark = " (downgrade)" if cell.is_downgrade else ""
            yield f"  {cell.cell}: {_cell(cell.nixpkgs)} -> {_cell(cell.cudaredist)}{mark}"
            yield f"      {cell.reason}"
    if report.kept:
        yield "kept"
    for cell in report.kept:
        yield f"  {cell.cell}: {_cell(cell.nixpkgs)}"
        yield f"      {cell.reason}"
    downgrades = sum(cell.is_downgrade for cell in report.cells)
    more = f"; downgrades: {downgrades}" if downgrades else ""
    more += f"; kept: {len(report.kept)}" if report.kept else ""
    yield f"{report.checkout}: {plural(len(report.cells), 'cell')} to change{more}"


def _cell(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
