"""Findings about the tables that are made from archives: those of symbols and of APIs."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator

from cudaredist.commands.check.findings import finding, own_file_findings
from cudaredist.commands.check.report import Finding
from cudaredist.formats.api_tables import ApiTable
from cudaredist.formats.base import OwnModel
from cudaredist.formats.features import ExaminedArchive, Features
from cudaredist.formats.registry import FILE_KINDS
from cudaredist.formats.symbol_tables import Symbols
from cudaredist.hints import command_line
from cudaredist.primitives import ArchiveId, Version
from cudaredist.store.api_folder import ApiFolder
from cudaredist.store.data_folder import Store
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.symbol_folder import SymbolFolder, can_be_stored, table_name
from cudaredist.store.table_folder import TableFolder
from cudaredist.tables.api.api_packages import API_PACKAGES, PLATFORM
from cudaredist.tables.symbols.label_ranges import KEY_SIZE


class ArchiveTables(ABC):
    """The tables of one kind in a data folder, and the archives that each contains."""

    kind: str
    """The kind of the files."""
    contents: str
    """What a table has of its library or package."""
    command: str
    """The command that writes the tables."""

    def __init__(self, store: Store, folder: TableFolder) -> None:
        self._store, self._folder = store, folder
        self._archives: dict[str, set[str]] = defaultdict(set)
        """The keys of the archives in each table."""
        self._broken: set[str] = set()
        """The names of tables that cannot be read."""

    @abstractmethod
    def _read(self, model: OwnModel | None) -> tuple[str, Iterable[str]] | None:
        """Return a table's name and the keys of its archives, None for a broken one."""

    @abstractmethod
    def _required(self, identity: ArchiveId, archive: ExaminedArchive) -> Iterable[str]:
        """Return the names of the tables that have an archive."""

    def findings(self) -> Iterator[Finding]:
        """Read the tables, and find broken ones."""
        for name in self._folder.names():
            path = self._folder.place(name)
            model = yield from own_file_findings(self._store, path, FILE_KINDS[self.kind])
            table = self._read(model)
            if table is None:
                self._broken.add(name)
                continue
            title, keys = table
            if title != name:
                text = f"is the table of {title}"
                yield finding("invalid", text, path=self._store.relative(path))
            self._archives[name] |= {*keys}

    def lacking(self, features: Features, redist: str, label: Version) -> Iterator[Finding]:
        """Find the libraries or packages of a release that are not in the tables.

        A folder without tables has no findings, because tables are optional.
        """
        if not self._archives and not self._broken:
            return
        lacking: set[str] = set()
        for identity, *_, archive in examined_archives(features):
            key = (archive.sha256 or "")[:KEY_SIZE]
            for name in self._required(identity, archive):
                if name not in self._broken and key not in self._archives[name]:
                    lacking.add(name)
        names = sorted(lacking)
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            message = f"the {self.contents} of {names[0]}{more} are not in any table"
            hint = f"{command_line(self.command, channel=self._store.channel)} adds them"
            yield finding("table-lacks", message, redist=redist, label=label, hint=hint)


class SymbolTables(ArchiveTables):
    """The tables of symbols, by library."""

    kind, contents, command = "symbols", "symbols", "update-symbols"

    def __init__(self, store: Store) -> None:
        super().__init__(store, SymbolFolder(store.symbol_path))

    def _read(self, model: OwnModel | None) -> tuple[str, Iterable[str]] | None:
        if not isinstance(model, Symbols):
            return None
        read = {key for each in model.providers for key in each.releases.values()}
        return model.soname, read.union(*(each.unread.values() for each in model.providers))

    def _required(self, identity: ArchiveId, archive: ExaminedArchive) -> Iterable[str]:
        del identity
        return filter(can_be_stored, map(table_name, archive.libraries))


class ApiTables(ArchiveTables):
    """The tables of APIs, by package."""

    kind, contents, command = "api", "headers", "update-api"

    def __init__(self, store: Store) -> None:
        super().__init__(store, ApiFolder(store.api_path))

    def _read(self, model: OwnModel | None) -> tuple[str, Iterable[str]] | None:
        if not isinstance(model, ApiTable):
            return None
        return model.package, [key for each in model.providers for key in each.releases.values()]

    def _required(self, identity: ArchiveId, archive: ExaminedArchive) -> Iterable[str]:
        is_read = identity.package in API_PACKAGES and identity.platform == PLATFORM
        return [identity.package] if is_read and archive.sha256 else []
