"""The results of nixpkgs as text."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from cudaredist.cli.text import columns
from cudaredist.formats.report import ExportedFile
from cudaredist.grouping import grouped
from cudaredist.nixpkgs.cells import TableCell
from cudaredist.nixpkgs.differences import Differences
from cudaredist.nixpkgs.machines import MACHINES
from cudaredist.words import plural


def files_text(files: Sequence[ExportedFile]) -> Iterator[str]:
    """Yield a line for each file."""
    yield from columns([(file.path, file.status, f"{file.size:,} bytes") for file in files])


def differences_text(differences: Differences) -> Iterator[str]:
    """Yield each different cell with the reason for cudaredist's value."""
    for table, cells in grouped((cell.table, cell) for cell in differences.cells).items():
        yield table
        for (name, change), reasons in _by_answer(cells, _change_of):
            yield f"  {name}: {change}"
            yield from (f"      {reason}" for reason in reasons)
    if differences.kept:
        yield "kept"
    for (name, change), reasons in _by_answer(differences.kept, _kept):
        yield f"  {name}: {change}"
        yield from (f"      {reason}" for reason in reasons)
    downgrades = sum(cell.is_downgrade for cell in differences.cells)
    more = f"; downgrades: {downgrades}" if downgrades else ""
    more += f"; kept: {len(differences.kept)}" if differences.kept else ""
    yield f"{differences.checkout}: {plural(len(differences.cells), 'cell')} to change{more}"


class _Answer(NamedTuple):
    """The values of a cell, or of the cells of several machines."""

    name: str
    change: str


def _by_answer(
    cells: Iterable[TableCell], change_of: Callable[[TableCell], str]
) -> Iterator[tuple[_Answer, Iterable[str]]]:
    """Yield each answer with its reasons. Machines with the same answer are together."""
    answers = grouped((_answer_of(cell, change_of), cell) for cell in cells)
    for (row, change), same in answers.items():
        cells_of_row = {cell.cell for cell in same}
        machines = [machine for machine in MACHINES if f"{row}.{machine}" in cells_of_row]
        name = f"{row} ({', '.join(machines)})" if machines else row
        yield _Answer(name, change), dict.fromkeys(cell.reason for cell in same)


def _answer_of(cell: TableCell, change_of: Callable[[TableCell], str]) -> _Answer:
    """Return the row of a cell, without the machine of a release, and its values."""
    row = cell.cell
    if cell.table == "releases":
        row = row.rpartition(".")[0]
    return _Answer(row, change_of(cell))


def _change_of(cell: TableCell) -> str:
    """Describe the values of a cell that changes."""
    mark = " (downgrade)" if cell.is_downgrade else ""
    return f"{_cell(cell.nixpkgs)} -> {_cell(cell.cudaredist)}{mark}"


def _kept(cell: TableCell) -> str:
    """Describe the values of a cell that stays."""
    if cell.cudaredist is None:
        return _cell(cell.nixpkgs)
    older = "the older " if cell.is_downgrade else ""
    return f"{_cell(cell.nixpkgs)}, not {older}{_cell(cell.cudaredist)}"


def _cell(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
