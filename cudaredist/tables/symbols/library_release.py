"""The symbols of one library in one archive, by the documents of the tables."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from cudaredist.formats.symbol_tables import ExportGroup, Symbols, is_mangled
from cudaredist.primitives import parse_label
from cudaredist.tables.symbols.symbol_table import KEY_SIZE, Import, labels_in


class LibraryRelease:
    """One column of a table, of which only what is asked for is read."""

    def __init__(self, table: Symbols, provider: int, label: str) -> None:
        self._table, self._provider, self._label = table, provider, label
        releases = table.providers[provider].releases
        self._labels = sorted(releases, key=parse_label)

    @cached_property
    def exports(self) -> Mapping[str, set[str]]:
        """The versions of each exported symbol, empty for a symbol without one."""
        return self._versions(ExportGroup.symbols)

    @cached_property
    def _plain(self) -> dict[str, set[str]]:
        return self._versions(ExportGroup.plain)

    @cached_property
    def _mangled(self) -> dict[str, set[str]]:
        return self._versions(ExportGroup.mangled)

    def _versions(self, names_of: Callable[[ExportGroup], list[str]]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for group in filter(self._has, self._table.exports):
            for name in names_of(group):
                found[name].add(group.version.lstrip("@"))
        return dict(found)

    def exports_name(self, name: str) -> bool:
        """Check if it has a symbol of any version."""
        return name in self._plain or name in self._mangled_for(name)

    def _mangled_for(self, name: str) -> dict[str, set[str]]:
        """Return the packed C++ names, which are unpacked only to find a C++ symbol."""
        return self._mangled if is_mangled(name) else {}

    def imports(self) -> Iterator[Import]:
        """Yield the symbols that it takes from other libraries."""
        for group in self._table.imports:
            if self._has(group):
                for name in group.symbols():
                    yield Import(name, group.version, group.library)

    def exports_for(self, symbol: Import) -> bool:
        """Check if it has a symbol. A library without versions has it for all versions."""
        if not symbol.version:
            return self.exports_name(symbol.name)
        tables = (self._plain, self._mangled_for(symbol.name))
        return any({symbol.version, ""} & table.get(symbol.name, set()) for table in tables)

    def _has(self, group: ExportGroup) -> bool:
        if not group.releases:
            return True
        return self._label in labels_in(group.releases[self._provider], self._labels)


def library_release(tables: Iterable[Symbols], archive_sha256: str) -> LibraryRelease | None:
    """Return a library's symbols in an archive, by the first table that has the archive."""
    key = archive_sha256[:KEY_SIZE]
    for table in tables:
        for position, provider in enumerate(table.providers):
            for label, archive in provider.releases.items():
                if archive == key:
                    return LibraryRelease(table, position, label)
    return None
