"""update-symbols: the tables of exported symbols, from the facts of all archives.

What the cache knows of an archive is enough. A release that fails keeps what the tables have of
it, and the others continue.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from cudaredist.errors import (
    EXIT_FINDINGS,
    CudaRedistError,
    InvalidFileError,
    ReadError,
    worst_exit_code,
)
from cudaredist.features.library_symbols import LibraryBinary, libraries_of
from cudaredist.manifests.manifest_values import Archive
from cudaredist.pipeline.archives import ArchiveService
from cudaredist.pipeline.features.targets import LocalManifest, LocalManifests
from cudaredist.pipeline.read_data import examined_archives, load_features
from cudaredist.pipeline.tasks import run_tasks
from cudaredist.reports.report import ErrorReport, ManifestStatus
from cudaredist.reports.symbol_reports import BrokenManifest, SymbolArchive, SymbolReport
from cudaredist.store.data_folder import Store
from cudaredist.store.symbol_folder import SymbolFolder, can_be_stored
from cudaredist.tables.symbols.symbol_table import (
    KEY_SIZE,
    Column,
    Import,
    Provider,
    SymbolColumns,
)

_Place: TypeAlias = tuple[Provider, str]
"""The provider and the label of an archive. The provider is never marked as a stub."""


@dataclass(kw_only=True)
class SymbolRun:
    """One run of update-symbols."""

    manifests: LocalManifests
    service: ArchiveService
    store: Store
    write: bool = True
    fail_fast: bool = False
    _tables: dict[str, SymbolColumns] = field(default_factory=dict)
    _read: dict[_Place, tuple[str, list[LibraryBinary]]] = field(default_factory=dict)
    """Of each archive that was read, the beginning of its hash, and its libraries."""
    _outcomes: list[SymbolArchive] = field(default_factory=list)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> SymbolReport:
        """Bring the tables up to the releases of the run.

        Raises `InvalidFileError` for a broken table.
        """
        folder = SymbolFolder(self.store.symbol_path)
        self._tables = {
            soname: SymbolColumns.of(document)
            for soname in folder.sonames()
            if (document := folder.document(soname))
        }
        plans = list(self._plans())
        service = self.service
        service.expect([0 if service.known(a.sha256) else a.size for _, a in plans])
        run_tasks([partial(self._archive, *plan) for plan in plans], service.jobs, service.stop)
        unnamed = self._add_columns()
        changed = folder.changed(self._tables)
        if self.write and changed:
            folder.sweep()
            folder.write(changed)
        return self._report(changed, unnamed, len(plans))

    # -- the archives

    def _plans(self) -> Iterator[tuple[LocalManifest, Archive]]:
        """Yield the archives to read. Other archives of a release leave the tables."""
        known: dict[_Place, set[str]] = defaultdict(set)
        for table in self._tables.values():
            for column in (*table.columns, *table.unread):
                known[_place_of(column)].add(column.archive)
        releases = {(m.target.redist.name, str(m.label)) for m in self.manifests.readable}
        current: set[tuple[_Place, str]] = set()
        for manifest in self.manifests.readable:
            bare = _archives_without_libraries(self.store, manifest)
            for archive in manifest.manifest.archives:
                place, key = self._place(manifest, archive), (archive.sha256 or "")[:KEY_SIZE]
                current.add((place, key))
                if archive.sha256 and known.get(place) != {key} and archive.sha256 not in bare:
                    yield manifest, archive
        for table in self._tables.values():
            table.drop(
                lambda column: (
                    column.provider.channel == self.store.channel
                    and (column.provider.redist, column.label) in releases
                    and (_place_of(column), column.archive) not in current
                )
            )

    def _archive(self, manifest: LocalManifest, archive: Archive) -> None:
        """Read the libraries of an archive. A failure becomes its outcome."""
        outcome = partial(SymbolArchive.of, manifest.target.redist.name, manifest.label, archive)
        try:
            examined = self.service.examine(manifest.request(archive))
            libraries = libraries_of(examined.facts)
        except CudaRedistError as error:
            if self.fail_fast:
                self.service.stop.set()
            done = outcome(status="failed", error=ErrorReport.of(error))
        else:
            key = str(archive.sha256)[:KEY_SIZE]
            with self._mutex:
                self._read[self._place(manifest, archive)] = key, libraries
            done = outcome(
                status="read" if examined.is_read else "cached",
                libraries=len(libraries),
                unread=tuple(library.path for library in libraries if not library.has_symbols),
            )
        with self._mutex:
            self._outcomes.append(done)

    def _place(self, manifest: LocalManifest, archive: Archive) -> _Place:
        names = manifest.target.redist.name, archive.package, archive.platform
        provider = Provider(self.store.channel, *names, archive.variant or "", is_stub=False)
        return provider, str(manifest.label)

    # -- the tables

    def _add_columns(self) -> tuple[str, ...]:
        """Add what was read to the tables, and return the libraries that can have none."""
        for table in self._tables.values():
            table.drop(lambda column: _place_of(column) in self._read)
        unnamed: set[str] = set()
        added: list[tuple[Column, LibraryBinary]] = []
        for (place, label), (key, libraries) in sorted(self._read.items()):
            for library in libraries:
                if not can_be_stored(library.soname):
                    unnamed.add(library.soname)
                    continue
                column = Column(place._replace(is_stub=library.is_stub), label, key)
                table = self._tables.setdefault(library.soname, SymbolColumns(library.soname))
                if not library.has_symbols:
                    table.unread.add(column)
                    continue
                added.append((column, library))
                table.add(column, library.exports())
        owners = _Owners(self._tables)
        for column, library in added:
            self._tables[library.soname].add_imports(column, owners.imports_of(library))
        return tuple(sorted(unnamed))

    def _report(
        self, changed: Mapping[str, bytes | None], unnamed: tuple[str, ...], planned: int
    ) -> SymbolReport:
        outcomes = sorted(self._outcomes, key=_order)
        codes = [outcome.error.exit_code for outcome in outcomes if outcome.error is not None]
        broken = [
            BrokenManifest(redist=one.redist, label=one.release, error=one.error)
            for one in self.manifests.broken
            if one.error is not None
        ]
        codes += [one.error.exit_code for one in broken]
        if changed and not self.write:
            codes.append(EXIT_FINDINGS)
        archives = sum(len(list(m.manifest.archives)) for m in self.manifests.readable)
        new_status: ManifestStatus = "written" if self.write else "would-write"
        return SymbolReport(
            status=new_status if changed else "unchanged",
            tables=sum(bool(table.columns or table.unread) for table in self._tables.values()),
            changed=tuple(soname for soname, data in changed.items() if data is not None),
            removed=tuple(soname for soname, data in changed.items() if data is None),
            unnamed=unnamed,
            releases=len(self.manifests.readable),
            known=archives - planned,
            archives=tuple(outcomes),
            manifests=tuple(broken),
            archives_read=self.service.opened,
            fetched_bytes=self.service.fetched,
            exit_code=worst_exit_code(codes),
        )


class _Owners:
    """The libraries that symbols are taken from, as far as they have a table."""

    def __init__(self, tables: Mapping[str, SymbolColumns]) -> None:
        self._names = {soname: {e.name for e in table.exports} for soname, table in tables.items()}
        self._dlls = {soname.lower(): soname for soname in tables}

    def imports_of(self, library: LibraryBinary) -> Iterator[Import]:
        """Yield a library's imports from others, except the system's symbols."""
        if library.binary.kind == "pe":
            for one in library.imports():
                owner = self._dlls.get(one.library.lower())
                if owner is not None:
                    yield one._replace(library=owner)
            return
        needed = [soname for soname in library.binary.needed if soname in self._names]
        for one in library.imports():
            if one.library in self._names:
                yield one
            elif not one.library:
                owner = next((s for s in needed if one.name in self._names[s]), None)
                if owner is not None:
                    yield one._replace(library=owner)


def _archives_without_libraries(store: Store, manifest: LocalManifest) -> set[str]:
    """Return the hashes of a release's archives that have no libraries, by its feature file."""
    try:
        features = load_features(store, manifest.target.redist.name, manifest.label)
    except (InvalidFileError, ReadError):
        return set()
    return {
        archive.sha256 or "" for *_, archive in examined_archives(features) if not archive.libraries
    }


def _place_of(column: Column) -> _Place:
    return column.provider._replace(is_stub=False), column.label


def _order(outcome: SymbolArchive) -> tuple[str, ...]:
    return outcome.redist, outcome.release, outcome.package, outcome.platform, outcome.variant or ""
