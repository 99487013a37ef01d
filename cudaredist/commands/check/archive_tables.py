"""Findings about the tables that are made from archives: those of symbols and of APIs."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cudaredist.commands.check.checked_files import CheckedFiles, Facts
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.formats.registry import FILE_KINDS
from cudaredist.hints import command_line
from cudaredist.primitives import Version
from cudaredist.store.data_folder import Store
from cudaredist.store.table_folder import TableFolder, is_api_package, is_library

if TYPE_CHECKING:
    from cudaredist.formats.api_tables import ApiTable
    from cudaredist.formats.symbol_tables import Symbols


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
    def _read(self, model: Any) -> tuple[str, Iterable[str]]:  # noqa: ANN401 - a model of the kind
        """Return a table's name and the keys of its archives."""

    def _facts(self, model: Any) -> Facts:  # noqa: ANN401 - a model of the kind
        name, keys = self._read(model)
        return {"name": name, "archives": sorted({*keys})}

    def findings(self, checked: CheckedFiles) -> Iterator[Finding]:
        """Read the tables, and find broken ones."""
        for name in self._folder.names():
            path = self._folder.place(name)
            facts = yield from checked.read(path, FILE_KINDS[self.kind], self._facts)
            if facts is None:
                self._broken.add(name)
                continue
            if facts["name"] != name:
                text = f"is the table of {facts['name']}"
                yield finding("invalid", text, path=self._store.relative(path))
            self._archives[name] |= {*facts["archives"]}

    def lacking(self, features: Facts, redist: str, label: Version) -> Iterator[Finding]:
        """Find the libraries or packages of a release that are not in the tables.

        A folder without tables has no findings, because tables are optional.
        """
        if not self._archives and not self._broken:
            return
        lacking = {
            name
            for name, keys in features[self.kind].items()
            if name not in self._broken and not self._archives[name].issuperset(keys)
        }
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
        super().__init__(store, TableFolder(store.symbol_path, is_library))

    def _read(self, model: "Symbols") -> tuple[str, Iterable[str]]:
        read = {key for each in model.providers for key in each.releases.values()}
        return model.soname, read.union(*(each.unread.values() for each in model.providers))


class ApiTables(ArchiveTables):
    """The tables of APIs, by package."""

    kind, contents, command = "api", "headers", "update-api"

    def __init__(self, store: Store) -> None:
        super().__init__(store, TableFolder(store.api_path, is_api_package))

    def _read(self, model: "ApiTable") -> tuple[str, Iterable[str]]:
        return model.package, [key for each in model.providers for key in each.releases.values()]
