"""Compare the tables of a nixpkgs checkout with ours, with reasons."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    ContentError,
    UnknownNameError,
)
from cudaredist.exporters.export_format import Files
from cudaredist.formats.tables import GpuPolicy, NvccPolicy
from cudaredist.hints import command_line
from cudaredist.nixpkgs.cells import ReportedTable, TableCell
from cudaredist.nixpkgs.evaluate import evaluate_tables
from cudaredist.nixpkgs.releases import SetReleases, Versions, is_downgrade, is_older, set_versions
from cudaredist.nixpkgs.tables import (
    CAPABILITY_PATH,
    NVCC_PATH,
    TABLES,
    VERSIONS_PATH,
    NixpkgsTables,
    Rows,
    SharedTables,
    TableName,
    TableUpdate,
    capability_fields,
    flat_cells,
    is_same_manifest,
    manifest_files,
    merged_files,
    minors_of,
    nvcc_bounds,
)
from cudaredist.nixpkgs.target import Target, target_versions
from cudaredist.primitives import natural_order, sha256_of
from cudaredist.redists import CUDA, REDISTS
from cudaredist.store.files import read_file, write_file
from cudaredist.store.temporary_folders import temporary_folder
from cudaredist.tables.explain_gpu import explain_gpu
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Fact, Topic
from cudaredist.words import listed

_Cells: TypeAlias = Mapping[tuple[str, ...], Any]
_Value: TypeAlias = str | bool | None
_FACTS = {
    "archName": "family",
    "isJetson": "jetson",
    "minCudaMajorMinorVersion": "first_cuda",
    "maxCudaMajorMinorVersion": "last_cuda",
    "dontDefaultAfterCudaMajorMinorVersion": "dont_default_after",
}
_BOUNDS = {"maxMajorVersion": "max", "minMajorVersion": "min"}


def is_checkout(folder: Path) -> bool:
    """Check if a folder is a checkout of nixpkgs, or an earlier export."""
    return os.path.lexists(folder / "pkgs")


class Differences(NamedTuple):
    """The differences between a checkout and our tables."""

    checkout: str
    cells: tuple[TableCell, ...]
    """The cells to change."""
    kept: tuple[TableCell, ...]
    """The cells that only nixpkgs has."""

    @property
    def exit_code(self) -> int:
        """The exit code of a comparison."""
        return EXIT_FINDINGS if self.cells else EXIT_OK


@dataclass(frozen=True)
class Checkout:
    """A checkout of nixpkgs, and the package sets and tables for it."""

    folder: Path
    sets: tuple[SetReleases, ...]
    others: tuple[SetReleases, ...]
    """Sets that are built for the comparison."""
    tables: SharedTables
    nvcc_policy: NvccPolicy
    gpu_policy: GpuPolicy
    lines: frozenset[str]
    """The CUDA minor releases of the package sets."""
    only: str | None = None
    """The part to compare: a table or a package set."""
    allow_downgrade: bool = False

    @property
    def parts(self) -> frozenset[TableName]:
        """The tables to compare."""
        if self.only is None:
            return frozenset(TABLES)
        for table in TABLES:
            if table == self.only:
                return frozenset({table})
        # The name of a package set selects its releases.
        return frozenset({"releases"})

    @cached_property
    def _theirs(self) -> NixpkgsTables:
        paths = {"compilers": NVCC_PATH, "capabilities": CAPABILITY_PATH}
        required = [paths[part] for part in TABLES if part in self.parts and part in paths]
        if "releases" in self.parts and (self.sets or not required):
            required.append(VERSIONS_PATH)
        for path in required:
            if self._read(path) is None:
                raise _missing_table(self.folder, path)
        return evaluate_tables(self.folder)

    @cached_property
    def target(self) -> Target:
        """The releases that nixpkgs' table gets."""
        return self._target(self._theirs)

    def _target(self, theirs: NixpkgsTables) -> Target:
        if "releases" not in self.parts:
            return Target({})
        only = None if self.only in TABLES else self.only
        return target_versions(
            self.sets, self.others, theirs.releases, only=only, allow_downgrade=self.allow_downgrade
        )

    def _update(self, theirs: NixpkgsTables, target: Target) -> TableUpdate:
        oldest = min(map(natural_order, theirs.minors), default=natural_order(""))
        lines = {line for line in self.lines if natural_order(line) >= oldest}
        minors = theirs.minors | lines | minors_of(target.versions)
        return TableUpdate(self.tables, self.sets, target, minors, self.parts, theirs)

    @cached_property
    def fresh_files(self) -> Files:
        """The files of an export to a new folder."""
        theirs = NixpkgsTables()
        update = self._update(theirs, self._target(theirs))
        return merged_files(replace(update, minors=frozenset()), lambda _: None)

    @property
    def is_fresh(self) -> bool:
        """Whether the folder is the same export."""
        return all(read_file(self.folder / p) == data for p, data in self.fresh_files.items())

    @cached_property
    def differences(self) -> Differences:
        """The cells that would change, and those that only nixpkgs has.

        Raises `ContentError` if the folder's files have an unknown format.
        """
        return self._compare(self.folder, self._theirs)

    def merged_files(self) -> Files:
        """Return the changed files. Raises the errors of `differences`."""
        update = self._update(self._theirs, self.target)
        files = merged_files(update, self._read)
        with temporary_folder() as folder:
            for path, data in files.items():
                write_file(folder / path, data, durable=False)
            for path in (NVCC_PATH, CAPABILITY_PATH, VERSIONS_PATH):
                current = None if path in files else read_file(self.folder / path)
                if current is not None:
                    write_file(folder / path, current, durable=False)
            rest = self._compare(folder, evaluate_tables(folder, self.folder))
        kept = {cell.cell for cell in rest.kept}
        skipped = {(s.attribute, s.redist, s.machine) for s in self.target.skipped}
        lost = [cell.cell for cell in self.differences.kept if cell.cell not in kept]
        names = {".".join(cell) for cell in skipped}
        wrong = [cell.cell for cell in rest.cells if cell.cell not in names] + lost
        if wrong:
            problem = f"cannot change {listed(wrong)}: its files have an unknown format"
            raise ContentError(f"{self.folder}: {problem}", hint="edit them by hand")
        return files

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

    def _compare(self, folder: Path, theirs: NixpkgsTables) -> Differences:
        target = self.target if folder == self.folder else self._target(theirs)
        update = self._update(theirs, target)
        versions = target.versions
        releases = _existing_releases(theirs.releases, versions)
        reason = partial(self._release_reason, releases, target)
        requested = {name: {r: dict(m) for r, m in rows.items()} for name, rows in versions.items()}
        for skip in target.skipped:
            requested[skip.attribute][skip.redist][skip.machine] = skip.new
        compilers, capabilities = flat_cells(theirs.compilers), flat_cells(theirs.capabilities)
        own = set_versions(self.sets)
        for_sets = {(s.attribute, machine) for s in self.sets for machine in s.machines}
        new_compilers = flat_cells(update.compilers)
        new_capabilities = flat_cells(update.capabilities)
        changes = (
            *_changed("compilers", compilers, new_compilers, self._bound_reason),
            *_changed("capabilities", capabilities, new_capabilities, self._capability_reason),
            *self._releases(releases, flat_cells(requested), reason),
            *self._manifest_cells(folder, versions),
        )
        kept: list[TableCell] = []
        if "compilers" in self.parts:
            ours = flat_cells(nvcc_bounds(self.tables.compat))
            kept += _kept("compilers", compilers, new_compilers, ours, self._bound_reason)
        if "capabilities" in self.parts:
            ours = flat_cells(capability_fields(self.tables.gpus))
            kept += _kept(
                "capabilities", capabilities, new_capabilities, ours, self._capability_reason
            )
        kept += (
            _cell("releases", cell, label, None, reason(*cell))
            for cell, label in releases.items()
            if (cell[0], cell[2]) in for_sets and cell[1] not in own.get(cell[0], {})
        )
        return Differences(str(folder), cells=changes, kept=tuple(kept))

    def _releases(
        self, old: _Cells, new: _Cells, reason: Callable[..., str]
    ) -> Iterator[TableCell]:
        own = {(s.attribute, m): s.redists for s in self.sets for m in s.machines}
        for cell in _changed("releases", old, new, reason):
            attribute, redist, machine = cell.cell.split(".")
            choice = own.get((attribute, machine), {}).get(redist)
            lower = is_downgrade(cell.cudaredist, cell.nixpkgs, choice)
            yield cell.model_copy(update={"is_downgrade": lower})

    def _manifest_cells(self, folder: Path, versions: Versions) -> Iterator[TableCell]:
        """Yield missing or different manifests."""
        for path, data in manifest_files(versions, self.tables).items():
            current = read_file(folder / path)
            if current is not None and is_same_manifest(path, current, data):
                continue
            redist = REDISTS[PurePosixPath(path).parts[-2]]
            kind = "handwritten" if redist.handwritten else "published"
            reason = f"the {kind} manifest of a release in the table of releases"
            old = None if current is None else sha256_of(current)
            yield _cell("manifests", (path,), old, sha256_of(data), reason)

    # -- reasons

    def _bound_reason(self, minor: str, compiler: str, bound: str) -> str:
        try:
            topic = explain_nvcc(minor, self.tables.compat, self.nvcc_policy)
        except UnknownNameError:
            return "nvcc_compat.json does not have this CUDA release"
        return _in_words(_fact(topic, f"{compiler}.{_BOUNDS.get(bound)}"))

    def _capability_reason(self, name: str, field: str) -> str:
        if name not in self.tables.gpus.capabilities:
            return "gpus.json does not have this capability"
        if field not in _FACTS:
            return f"computed from the name {name}"
        topic = explain_gpu(name, self.tables.gpus, self.gpu_policy)
        fact = _fact(topic, _FACTS[field])
        value = capability_fields(self.tables.gpus)[name][field]
        if fact is None or fact.value == value:
            return _in_words(fact)
        for claim in fact.otherwise:
            if claim.value == value:
                because = f"; {claim.reason}" if claim.reason else ""
                words = f"{fact.statement} ({fact.basis}: {fact.source})"
                return f"{value} (policy: {claim.source}{because}); otherwise {words}"
        return _in_words(fact)

    def _release_reason(
        self, existing: _Cells, target: Target, attribute: str, redist: str, machine: str
    ) -> str:
        own = {(s.attribute, m): s for s in self.sets for m in s.machines}
        others = {(s.attribute, m): s for s in self.others for m in s.machines}
        package_set = own.get((attribute, machine))  # the last one of several patches
        old = existing.get((attribute, redist, machine))
        if package_set is None:
            label = target.versions.get(attribute, {}).get(redist, {}).get(machine)
            words = f"there is no package set for {machine}: it follows another machine"
            package_set = others.get((attribute, machine))
            choice = package_set.redists.get(redist) if package_set else None
            if choice is None or choice.release != label or not choice.newer_rejected:
                return words
            words = f"the newest local release that fits {machine}"
            rejected = [f"not {newer.release}: {newer.reason}" for newer in choice.newer_rejected]
            return "; ".join([words, *rejected])
        release = package_set.redists.get(redist)
        if release is None:
            return "the package set does not have this redistributable"
        if release.release is None:
            words = "no local release is published for this set"
        elif redist == CUDA:
            words = "the CUDA release of the set"
        elif release.mode == "pinned":
            words = "pinned with --redist or --redist-map"
        else:
            words = "the newest local release that fits the set"
        rejected = [f"not {newer.release}: {newer.reason}" for newer in release.newer_rejected]
        # Every newer local release has a reason.
        is_known = release.mode == "pinned" or old in {x.release for x in release.newer_rejected}
        if is_older(release.release, old) and not is_known:
            download = command_line("download-manifests", redist=redist, version=old)
            rejected.append(f"{old} was not local when the set was built: `{download}`")
        return "; ".join([words, *rejected])

    def skipped_reasons(self) -> list[str]:
        """Return the releases that are older than nixpkgs', with reasons."""
        reasons = {cell.cell: cell.reason for cell in self.differences.cells}
        texts: dict[tuple[str, ...], list[str]] = {}
        for skip in self.target.skipped:
            key = (skip.attribute, skip.redist, skip.old, skip.new)
            texts.setdefault(key, []).append(skip.machine)
        return [
            f"{attribute}.{redist} {new} ({', '.join(machines)}): nixpkgs has {old}; "
            + reasons.get(f"{attribute}.{redist}.{machines[0]}", "")
            for (attribute, redist, old, new), machines in texts.items()
        ]


def _fact(topic: Topic, name: str) -> Fact | None:
    return next((fact for fact in topic.facts if fact.name == name), None)


def _in_words(fact: Fact | None) -> str:
    if fact is None:
        return "the data folder has no source of this value"
    because = f"; {fact.reason}" if fact.reason else ""
    claims = "".join(f"; otherwise {claim.value}: {claim.source}" for claim in fact.otherwise)
    return f"{fact.statement} ({fact.basis}: {fact.source}{because}{claims})"


def _missing_table(folder: Path, path: str) -> ContentError:
    message = f"{folder} contains pkgs/, but not {path}, so its tables are unknown"
    hint = f"check out {path}, or write to a new folder and copy the files by hand"
    return ContentError(message, hint=hint)


def _changed(
    table: ReportedTable, old: _Cells, new: _Cells, reason: Callable[..., str]
) -> Iterator[TableCell]:
    """Yield the cells with a different new value."""
    for cell, value in new.items():
        if value is not None and value != old.get(cell):
            yield _cell(table, cell, old.get(cell), value, reason(*cell))


def _kept(
    table: ReportedTable, old: _Cells, new: _Cells, ours: _Cells, reason: Callable[..., str]
) -> Iterator[TableCell]:
    """Yield the cells of nixpkgs that differ from ours and stay."""
    for cell, value in old.items():
        stays = new.get(cell) is None or new.get(cell) == value
        if stays and value is not None and ours.get(cell) != value:
            yield _cell(table, cell, value, None, reason(*cell))


def _cell(
    table: ReportedTable, cell: tuple[str, ...], old: _Value, new: _Value, reason: str
) -> TableCell:
    return TableCell(
        table=table,
        cell=".".join(cell),
        nixpkgs=old,
        cudaredist=new,
        reason=reason,
    )


def _existing_releases(theirs: Mapping[str, Rows], ours: Versions) -> dict[tuple[str, ...], str]:
    """Return nixpkgs' releases of our sets."""
    return {
        (attribute, redist, machine): label
        for attribute in ours
        for machine, sets in theirs.items()
        for redist, label in sets.get(attribute, {}).items()
    }
