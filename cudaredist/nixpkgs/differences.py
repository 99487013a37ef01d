"""Compare the tables of nixpkgs with ours, cell by cell."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from cudaredist.errors import EXIT_FINDINGS, EXIT_OK
from cudaredist.nixpkgs.cells import ReportedTable, TableCell
from cudaredist.nixpkgs.merge_tables import is_same_manifest, manifest_files
from cudaredist.nixpkgs.our_tables import OurTables
from cudaredist.nixpkgs.paths import TableName
from cudaredist.nixpkgs.records import Records
from cudaredist.nixpkgs.releases import (
    Cell,
    cells_of,
    find_choice,
    find_set,
    is_downgrade,
    set_versions,
)
from cudaredist.nixpkgs.tables import TableUpdate, capability_fields, flat_cells, nvcc_bounds
from cudaredist.primitives import sha256_of
from cudaredist.redists import REDISTS
from cudaredist.store.files import read_file

_Cells: TypeAlias = Mapping[tuple[str, ...], Any]
"""Values by their path in a table."""
_Value: TypeAlias = str | bool | None
_RECORDED = "a comment keeps it"


class Differences(NamedTuple):
    """The differences between a checkout and our tables."""

    checkout: str
    cells: tuple[TableCell, ...]
    """The cells to change."""
    kept: tuple[TableCell, ...]
    """The cells that only nixpkgs has, and those with a newer release."""

    @property
    def exit_code(self) -> int:
        """The exit code of a comparison."""
        return EXIT_FINDINGS if self.cells else EXIT_OK


@dataclass(frozen=True)
class Comparison:
    """The tables of a folder, and the update of them."""

    folder: Path
    update: TableUpdate
    ours: OurTables

    @property
    def differences(self) -> Differences:
        """The cells to change, and those that stay."""
        tables = list(self._tables_of_rows())
        changed = [cell for table in tables for cell in table.changed()]
        kept = [cell for table in tables for cell in (*table.recorded(), *table.kept())]
        kept_releases = [
            *self._recorded_releases(),
            *self._skipped_releases(),
            *self._kept_releases(),
        ]
        return Differences(
            str(self.folder),
            cells=(*changed, *self._changed_releases(), *self._changed_manifests()),
            kept=(*kept, *kept_releases, *self._recorded_manifests()),
        )

    def _tables_of_rows(self) -> "Iterator[_TableOfRows]":
        """Yield the tables of compilers and capabilities that are updated."""
        update, theirs, tables = self.update, self.update.theirs, self.update.tables
        if "compilers" in update.parts:
            yield _TableOfRows(
                "compilers",
                old=flat_cells(theirs.compilers),
                new=flat_cells(update.compilers),
                ours=flat_cells(nvcc_bounds(tables.compat)),
                reason=self.ours.bound_reason,
                keeps=partial(update.keeps, "compilers"),
            )
        if "capabilities" in update.parts:
            yield _TableOfRows(
                "capabilities",
                old=flat_cells(theirs.capabilities),
                new=flat_cells(update.capabilities),
                ours=flat_cells(capability_fields(tables.gpus)),
                reason=self.ours.capability_reason,
                keeps=partial(update.keeps, "capabilities"),
            )

    def _changed_releases(self) -> Iterator[TableCell]:
        """Yield the labels to change."""
        for cell, label in cells_of(self.update.target.versions):
            old = self._old_label(cell)
            if label != old:
                reason = self.ours.release_reason(cell, old, label)
                is_lower = is_downgrade(label, old, find_choice(self.update.sets, cell))
                yield _cell("releases", cell, old, label, reason, is_downgrade=is_lower)

    def _recorded_releases(self) -> Iterator[TableCell]:
        """Yield the labels that stay because of a record."""
        for cell, old, new in self.update.target.recorded:
            reason = f"{_RECORDED}; {self.ours.release_reason(cell, old, new)}"
            is_lower = is_downgrade(new, old, find_choice(self.update.sets, cell))
            yield _cell("releases", cell, old, new, reason, is_downgrade=is_lower)

    def _skipped_releases(self) -> Iterator[TableCell]:
        """Yield the labels that are newer than ours, which the update skips."""
        for cell, old, new in self.update.target.skipped:
            reason = self.ours.release_reason(cell, old, old)
            yield _cell("releases", cell, old, new, reason, is_downgrade=True)

    def _kept_releases(self) -> Iterator[TableCell]:
        """Yield the labels of redistributables that our set for a machine does not have."""
        ours = set_versions(self.update.sets)
        for attribute, rows in self.update.target.versions.items():
            for machine, sets in self.update.theirs.releases.items():
                if find_set(self.update.sets, attribute, machine) is None:
                    continue
                for redist, old in sets.get(attribute, {}).items():
                    # Other rows are not updated.
                    if redist in rows and redist not in ours.get(attribute, {}):
                        cell = Cell(attribute, redist, machine)
                        new = self.update.target.label(cell)
                        reason = self.ours.release_reason(cell, old, new)
                        yield _cell("releases", cell, old, None, reason)

    def _read(self, path: str) -> bytes | None:
        """Return a file of the folder, or None if it is missing."""
        return read_file(self.folder / path)

    def _old_label(self, cell: Cell) -> str | None:
        """Return the label in nixpkgs, or None."""
        sets = self.update.theirs.releases.get(cell.machine, {})
        label: str | None = sets.get(cell.attribute, {}).get(cell.redist)
        return label

    def _changed_manifests(self) -> Iterator[TableCell]:
        """Yield missing or different manifests."""
        for path, data in manifest_files(self.update, self._read).items():
            yield from self._different_manifest(path, data)

    def _recorded_manifests(self) -> Iterator[TableCell]:
        """Yield the different manifests that stay because of a record."""
        without_records = replace(self.update, records=Records())
        for path, data in manifest_files(without_records, self._read).items():
            if self.update.records.keeps_file(path):
                for cell in self._different_manifest(path, data):
                    reason = f"{_RECORDED}; {cell.reason}"
                    yield cell.model_copy(update={"reason": reason})

    def _different_manifest(self, path: str, data: bytes) -> Iterator[TableCell]:
        """Yield a manifest, unless the folder has the same."""
        current = self._read(path)
        if current is not None and is_same_manifest(path, current, data):
            return
        redist = REDISTS[PurePosixPath(path).parts[-2]]
        kind = "handwritten" if redist.handwritten else "published"
        reason = f"the {kind} manifest of a release in the table of releases"
        old = None if current is None else sha256_of(current)
        yield _cell("manifests", (path,), old, sha256_of(data), reason)


class _TableOfRows(NamedTuple):
    """A table of compilers or capabilities."""

    name: TableName
    old: _Cells
    """The values in nixpkgs."""
    new: _Cells
    """The values after the update, of the rows that are updated."""
    ours: _Cells
    """Our values of all rows."""
    reason: Callable[..., str]
    keeps: Callable[..., bool]
    """Check if a record keeps a cell."""

    def changed(self) -> Iterator[TableCell]:
        """Yield the cells with a different new value."""
        for cell, value in self.new.items():
            old = self.old.get(cell)
            if value is not None and value != old and not self.keeps(*cell):
                yield _cell(self.name, cell, old, value, self.reason(*cell))

    def recorded(self) -> Iterator[TableCell]:
        """Yield the cells with a different new value that stay because of a record."""
        for cell, value in self.new.items():
            old = self.old.get(cell)
            if value is not None and value != old and self.keeps(*cell):
                reason = f"{_RECORDED}; {self.reason(*cell)}"
                yield _cell(self.name, cell, old, value, reason)

    def kept(self) -> Iterator[TableCell]:
        """Yield the cells of nixpkgs that differ from ours and stay."""
        for cell, value in self.old.items():
            stays = self.new.get(cell) in {None, value}
            if stays and value is not None and self.ours.get(cell) != value:
                yield _cell(self.name, cell, value, None, self.reason(*cell))


def _cell(
    table: ReportedTable,
    cell: tuple[str, ...],
    old: _Value,
    new: _Value,
    reason: str,
    *,
    is_downgrade: bool = False,
) -> TableCell:
    return TableCell(
        table=table,
        cell=".".join(cell),
        nixpkgs=old,
        cudaredist=new,
        is_downgrade=is_downgrade,
        reason=reason,
    )
