"""update-symbols: the tables of exported symbols, from the facts of all archives.

What the cache knows of an archive is enough. A release that fails keeps what the tables have of
it, and the others continue.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from cudaredist.commands.update.report import SymbolArchive, SymbolReport
from cudaredist.commands.update.table_run import TableRun, archive_order
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, InvalidFileError, ReadError
from cudaredist.features.library_symbols import LibraryBinary, libraries_of
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.report import exit_code_of
from cudaredist.manifests.manifest_values import Archive
from cudaredist.store.data_folder import Store
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.read_data import load_features
from cudaredist.store.symbol_folder import SymbolFolder, can_be_stored, table_name
from cudaredist.store.targets import LocalManifest
from cudaredist.tables.symbols.label_ranges import KEY_SIZE
from cudaredist.tables.symbols.symbol_table import Column, Import, Provider, SymbolColumns
from cudaredist.tasks import each

_Plan: TypeAlias = tuple[LocalManifest, Archive]
_Place: TypeAlias = tuple[Provider, str]
"""The provider and the label of an archive. The provider is never marked as a stub."""


class _ReadArchive(NamedTuple):
    key: str
    """The beginning of the archive's hash."""
    libraries: list[LibraryBinary]


@dataclass
class SymbolRun(TableRun):
    """One run of update-symbols."""

    _tables: dict[str, SymbolColumns] = field(default_factory=dict)
    _read: dict[_Place, _ReadArchive] = field(default_factory=dict)
    """The archives that were read."""

    def run(self) -> SymbolReport:
        """Bring the tables up to the releases of the run.

        Raises `InvalidFileError` for a broken table.
        """
        folder = SymbolFolder(self.store.symbol_path)
        for soname in folder.names():
            document = folder.document(soname)
            if document is not None:
                self._tables[soname] = SymbolColumns.of(document)
        plans = list(self._plans())
        self._drop_removed_archives()
        service = self.service
        service.expect([0 if service.known(a.sha256) else a.size for _, a in plans])
        results = each(plans, self._examine, service.jobs, service.stop, fail_fast=self.fail_fast)
        archives = [
            result
            if isinstance(result, SymbolArchive)
            else _outcome(plan, status="failed", error=ErrorReport.of(result))
            for plan, result in zip(plans, results, strict=True)
        ]
        unnamed = self._add_columns()
        changed = folder.changed(self._tables)
        if self.write and changed:
            folder.sweep()
            folder.write(changed)
        return self._report(changed, unnamed, archives)

    # -- the archives

    def _plans(self) -> Iterator[_Plan]:
        """Yield the archives that the tables do not have, or not completely.

        A run that was killed may have written some tables of an archive only.
        """
        keys: dict[_Place, set[str]] = defaultdict(set)
        sonames: dict[tuple[_Place, str], set[str]] = defaultdict(set)
        for soname, table in self._tables.items():
            for column in (*table.columns, *table.unread):
                keys[_place_of(column)].add(column.archive)
                sonames[_place_of(column), column.archive].add(soname)
        for manifest in self.manifests.readable:
            libraries = _libraries_by_archive(self.store, manifest)
            for archive in manifest.manifest.archives:
                expected = libraries.get(archive.sha256)
                has_none = expected is not None and not expected
                if not archive.sha256 or has_none:
                    continue
                place, key = self._place(manifest, archive), _key_of(archive)
                is_only_key = keys[place] == {key}
                is_complete = expected is None or expected <= sonames[place, key]
                if not (is_only_key and is_complete):
                    yield manifest, archive

    def _drop_removed_archives(self) -> None:
        """Drop the columns of archives that are no longer in the releases of the run."""
        releases: set[tuple[str, str]] = set()
        current: set[tuple[_Place, str]] = set()
        for manifest in self.manifests.readable:
            releases.add((manifest.target.redist.name, str(manifest.label)))
            for archive in manifest.manifest.archives:
                current.add((self._place(manifest, archive), _key_of(archive)))

        def is_removed(column: Column) -> bool:
            is_of_run = (
                column.provider.channel == self.store.channel
                and (column.provider.redist, column.label) in releases
            )
            return is_of_run and (_place_of(column), column.archive) not in current

        for table in self._tables.values():
            table.drop(is_removed)

    def _examine(self, plan: _Plan) -> SymbolArchive:
        """Read the libraries of an archive."""
        manifest, archive = plan
        examined = self.service.examine(manifest.request(archive))
        libraries = libraries_of(examined.facts)
        place = self._place(manifest, archive)
        self._read[place] = _ReadArchive(_key_of(archive), libraries)
        status = "read" if examined.is_read else "cached"
        unread = tuple(library.path for library in libraries if not library.has_symbols)
        return _outcome(plan, status=status, libraries=len(libraries), unread=unread)

    def _place(self, manifest: LocalManifest, archive: Archive) -> _Place:
        names = manifest.target.redist.name, archive.package, archive.platform
        provider = Provider(self.store.channel, *names, archive.variant or "", stub=False)
        return provider, str(manifest.label)

    # -- the tables

    def _add_columns(self) -> tuple[str, ...]:
        """Add what was read to the tables, and return the libraries that can have none."""
        for table in self._tables.values():
            table.drop(lambda column: _place_of(column) in self._read)
        unnamed: set[str] = set()
        added: list[tuple[Column, LibraryBinary]] = []
        for place in sorted(self._read):
            provider, label = place
            archive = self._read[place]
            for library in archive.libraries:
                if not can_be_stored(library.soname):
                    unnamed.add(library.soname)
                    continue
                column = Column(provider._replace(stub=library.is_stub), label, archive.key)
                table = self._tables.setdefault(library.soname, SymbolColumns(library.soname))
                if library.has_symbols:
                    table.add(column, library.exports())
                    added.append((column, library))
                else:
                    table.unread.add(column)
        owners = _Owners(self._tables)
        for column, library in added:
            self._tables[library.soname].add_imports(column, owners.resolved_imports(library))
        return tuple(sorted(unnamed))

    def _report(
        self,
        changed: Mapping[str, bytes | None],
        unnamed: tuple[str, ...],
        outcomes: list[SymbolArchive],
    ) -> SymbolReport:
        broken = self.broken_manifests()
        archives = sum(len(list(m.manifest.archives)) for m in self.manifests.readable)
        status = self.status(changed=bool(changed))
        return SymbolReport(
            status=status,
            tables=sum(bool(table.columns or table.unread) for table in self._tables.values()),
            changed=tuple(soname for soname, data in changed.items() if data is not None),
            removed=tuple(soname for soname, data in changed.items() if data is None),
            unnamed=unnamed,
            releases=tuple(manifest.name for manifest in self.manifests.readable),
            known=archives - len(outcomes),
            archives=tuple(sorted(outcomes, key=archive_order)),
            manifests=broken,
            archives_read=self.service.opened,
            fetched_bytes=self.service.fetched,
            exit_code=exit_code_of(
                [*outcomes, *broken], EXIT_FINDINGS if status == "would-write" else EXIT_OK
            ),
        )


class _Owners:
    """The libraries that symbols are taken from, as far as they have a table."""

    def __init__(self, tables: Mapping[str, SymbolColumns]) -> None:
        self._names = {soname: {e.name for e in table.exports} for soname, table in tables.items()}
        self._dlls = {soname.lower(): soname for soname in tables}

    def resolved_imports(self, library: LibraryBinary) -> Iterator[Import]:
        """Yield a library's imports from others, except the system's symbols."""
        if library.binary.kind == "pe":
            for symbol in library.imports():
                owner = self._dlls.get(symbol.library.lower())
                if owner is not None:
                    yield symbol._replace(library=owner)
            return
        needed = [soname for soname in library.binary.needed if soname in self._names]
        for symbol in library.imports():
            if symbol.library in self._names:
                yield symbol
            elif not symbol.library:
                owner = next((s for s in needed if symbol.name in self._names[s]), None)
                if owner is not None:
                    yield symbol._replace(library=owner)


def _libraries_by_archive(store: Store, manifest: LocalManifest) -> dict[str | None, set[str]]:
    """Return the names of tables for a release's archives by hash, from its feature file."""
    try:
        features = load_features(store, manifest.target.redist.name, manifest.label)
    except (InvalidFileError, ReadError):
        return {}
    return {
        archive.sha256: set(filter(can_be_stored, map(table_name, archive.libraries)))
        for *_, archive in examined_archives(features)
    }


def _outcome(plan: _Plan, **more: object) -> SymbolArchive:
    manifest, archive = plan
    return SymbolArchive.of(manifest.target.redist.name, manifest.label, archive, **more)


def _key_of(archive: Archive) -> str:
    """Return the beginning of an archive's hash, empty without one."""
    return (archive.sha256 or "")[:KEY_SIZE]


def _place_of(column: Column) -> _Place:
    return column.provider._replace(stub=False), column.label
