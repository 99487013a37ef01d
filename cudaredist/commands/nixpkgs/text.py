"""The results of nixpkgs as text."""

import json
from collections.abc import Iterator, Sequence

from cudaredist.cli.text import columns
from cudaredist.formats.report import ExportedFile
from cudaredist.grouping import grouped
from cudaredist.nixpkgs.differences import Differences
from cudaredist.words import plural


def files_text(files: Sequence[ExportedFile]) -> Iterator[str]:
    """Yield a line for each file."""
    yield from columns([(file.path, file.status, f"{file.size:,} bytes") for file in files])


def differences_text(differences: Differences) -> Iterator[str]:
    """Yield each different cell with the reason for cudaredist's value."""
    for table, cells in grouped((cell.table, cell) for cell in differences.cells).items():
        yield table
        for cell in cells:
            mark = " (downgrade)" if cell.is_downgrade else ""
            yield f"  {cell.cell}: {_cell(cell.nixpkgs)} -> {_cell(cell.cudaredist)}{mark}"
            yield f"      {cell.reason}"
    if differences.kept:
        yield "kept"
    for cell in differences.kept:
        yield f"  {cell.cell}: {_cell(cell.nixpkgs)}"
        yield f"      {cell.reason}"
    downgrades = sum(cell.is_downgrade for cell in differences.cells)
    more = f"; downgrades: {downgrades}" if downgrades else ""
    more += f"; kept: {len(differences.kept)}" if differences.kept else ""
    yield f"{differences.checkout}: {plural(len(differences.cells), 'cell')} to change{more}"


def _cell(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
