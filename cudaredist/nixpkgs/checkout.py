"""A checkout of nixpkgs: its tables, and the files that change."""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from cudaredist.errors import ContentError
from cudaredist.exporters.export_format import Files
from cudaredist.grouping import grouped
from cudaredist.nixpkgs.differences import Comparison, Differences
from cudaredist.nixpkgs.evaluate import evaluate_tables
from cudaredist.nixpkgs.merge_tables import merged_files
from cudaredist.nixpkgs.our_tables import OurTables
from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, TABLES, VERSIONS_PATH, TableName
from cudaredist.nixpkgs.records import Records
from cudaredist.nixpkgs.releases import IN_NIXPKGS, find_choice
from cudaredist.nixpkgs.tables import NixpkgsTables, TableUpdate, minors_of
from cudaredist.nixpkgs.target import Target, target_versions
from cudaredist.primitives import natural_order
from cudaredist.redists import CUDA
from cudaredist.store.files import read_file, write_file
from cudaredist.store.temporary_folders import temporary_folder
from cudaredist.words import listed


class _SkippedRelease(NamedTuple):
    """An older release, for one or more machines."""

    attribute: str
    redist: str
    old: str
    new: str


def is_checkout(folder: Path) -> bool:
    """Check if a folder is a checkout of nixpkgs, or an earlier export."""
    return os.path.lexists(folder / "pkgs")


@dataclass(frozen=True)
class Checkout:
    """A checkout of nixpkgs, and the package sets and tables for it."""

    folder: Path
    ours: OurTables
    lines: frozenset[str]
    """The CUDA minor releases of the package sets."""
    only: frozenset[str] = frozenset()
    """The parts to update: tables, package sets and redistributables. Empty: all."""
    allow_downgrade: bool = False

    @property
    def parts(self) -> frozenset[TableName]:
        """The tables to update."""
        if not self.only:
            return frozenset(TABLES)
        parts: set[TableName] = {table for table in TABLES if table in self.only}
        if self.only - parts:
            # The name of a package set or redistributable selects its releases.
            parts.add("releases")
        return frozenset(parts)

    @cached_property
    def fresh_files(self) -> Files:
        """The files of an export to a new folder."""
        update = self._update_of(NixpkgsTables())
        return merged_files(replace(update, minors=frozenset()), lambda _: None)

    @property
    def is_fresh(self) -> bool:
        """Whether the folder is the same export."""
        files = self.fresh_files.items()
        return all(read_file(self.folder / path) == data for path, data in files)

    @cached_property
    def differences(self) -> Differences:
        """The cells that would change, and those that only nixpkgs has.

        Raises `ContentError` if the folder's files have an unknown format.
        """
        return Comparison(self.folder, self._update, self.ours).differences

    def merged_files(self) -> Files:
        """Return the changed files. Raises the errors of `differences`."""
        files = merged_files(self._update, self._read)
        rest = self._differences_after(files)
        kept = {cell.cell for cell in rest.kept}
        unchanged = [cell.cell for cell in rest.cells]
        lost = [cell.cell for cell in self.differences.kept if cell.cell not in kept]
        if unchanged or lost:
            problem = f"cannot change {listed(unchanged + lost)}: its files have an unknown format"
            raise ContentError(f"{self.folder}: {problem}", hint="edit them by hand")
        return files

    def pin_warnings(self) -> list[str]:
        """Return the cells without the pinned release, and those with a broken one."""
        is_known = is_checkout(self.folder) and not self.is_fresh
        update = self._update if is_known else self._update_of(NixpkgsTables())
        return [warning.text for warning in update.target.pin_warnings]

    def skipped_reasons(self) -> list[str]:
        """Return the releases that are older than nixpkgs', with reasons."""
        reasons = {cell.cell: cell.reason for cell in self.differences.kept}
        cells = grouped(
            (_SkippedRelease(cell.attribute, cell.redist, old, new), cell)
            for cell, old, new in self._update.target.skipped
        )
        return [
            f"{release.attribute}.{release.redist} {release.new} "
            f"({', '.join(cell.machine for cell in skipped)}): nixpkgs has {release.old}; "
            + reasons.get(".".join(skipped[0]), "")
            for release, skipped in cells.items()
        ]

    @property
    def skips_pin(self) -> bool:
        """Whether nixpkgs has a newer release than a pinned one."""
        choices = (
            find_choice(self.ours.sets, skipped.cell) for skipped in self._update.target.skipped
        )
        return any(
            choice is not None and choice.mode == "pinned" and skipped.cell.redist != CUDA
            for choice, skipped in zip(choices, self._update.target.skipped, strict=True)
        )

    @cached_property
    def _records(self) -> Records:
        """The records in the tables of the checkout."""
        return Records(self._read)

    @cached_property
    def _theirs(self) -> NixpkgsTables:
        """The tables of the checkout."""
        paths = {"compilers": NVCC_PATH, "capabilities": CAPABILITY_PATH}
        required = [paths[part] for part in TABLES if part in self.parts and part in paths]
        if "releases" in self.parts and (self.ours.sets or not required):
            required.append(VERSIONS_PATH)
        for path in required:
            if self._read(path) is None:
                raise _missing_table(self.folder, path)
        return evaluate_tables(self.folder)

    @cached_property
    def _update(self) -> TableUpdate:
        """The update of the checkout's tables."""
        return self._update_of(self._theirs, self._records)

    def _update_of(self, theirs: NixpkgsTables, records: Records | None = None) -> TableUpdate:
        """Return the update of tables with records. The default is a new folder, without any."""
        records = records or Records()
        target = Target({})
        if "releases" in self.parts:
            names = frozenset[str]() if "releases" in self.only else self.only - set(TABLES)
            target = target_versions(
                self.ours.sets,
                self.ours.others,
                theirs.releases,
                only_sets=names - IN_NIXPKGS,
                only_redists=names & IN_NIXPKGS,
                allow_downgrade=self.allow_downgrade,
                records=records,
            )
        # Package sets older than the oldest one are not added, so they need no rows.
        oldest = min(map(natural_order, theirs.minors), default=natural_order(""))
        lines = {line for line in self.lines if natural_order(line) >= oldest}
        if "releases" not in self.parts and theirs.minors:
            # Without a new package set, its release needs no rows.
            lines = set()
        return TableUpdate(
            tables=self.ours.tables,
            sets=self.ours.sets,
            target=target,
            minors=theirs.minors | lines | minors_of(target.versions),
            parts=self.parts,
            theirs=theirs,
            records=records,
        )

    def _differences_after(self, files: Files) -> Differences:
        """Evaluate the changed files, and return the remaining differences."""
        with temporary_folder() as folder:
            for path, data in files.items():
                write_file(folder / path, data, durable=False)
            for path in (NVCC_PATH, CAPABILITY_PATH, VERSIONS_PATH):
                current = None if path in files else read_file(self.folder / path)
                if current is not None:
                    write_file(folder / path, current, durable=False)
            update = self._update_of(evaluate_tables(folder, self.folder), self._records)
            return Comparison(folder, update, self.ours).differences

    def _read(self, path: str) -> bytes | None:
        """Return a file of the checkout, or None if it is missing.

        Raises `ContentError` for a link to a missing file, or to one outside of the checkout.
        """
        file = self.folder / path
        data = read_file(file)
        if data is None and os.path.lexists(file):
            raise ContentError(f"{file} is a link to a missing file", hint="remove it")
        if data is not None and not file.resolve().is_relative_to(self.folder.resolve()):
            hint = f"replace it with a copy of {file.resolve()}"
            raise ContentError(f"{file} is a link to a file outside of {self.folder}", hint=hint)
        return data


def _missing_table(folder: Path, path: str) -> ContentError:
    message = f"{folder} contains pkgs/, but not {path}, so its tables are unknown"
    hint = f"check out {path}, or write to a new folder and copy the files by hand"
    return ContentError(message, hint=hint)
