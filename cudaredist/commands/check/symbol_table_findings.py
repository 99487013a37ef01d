"""Findings about the tables of symbols in a data folder."""

from collections import defaultdict
from collections.abc import Iterator

from cudaredist.commands.check.findings import finding, own_file_findings
from cudaredist.commands.check.report import Finding
from cudaredist.formats.features import Features
from cudaredist.formats.registry import FILE_KINDS
from cudaredist.formats.symbol_tables import Symbols
from cudaredist.hints import command_line
from cudaredist.primitives import Version
from cudaredist.store.data_folder import Store
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.symbol_folder import SymbolFolder, can_be_stored, table_name
from cudaredist.tables.symbols.label_ranges import KEY_SIZE


class SymbolTables:
    """The tables of symbols, and the archives that each contains."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._archives: dict[str, set[str]] = defaultdict(set)
        """The keys of the archives in each table, by library."""
        self._broken: set[str] = set()
        """Libraries with a table that cannot be read."""

    def findings(self) -> Iterator[Finding]:
        """Read the tables, and find broken ones."""
        folder = SymbolFolder(self._store.symbol_path)
        for soname in folder.names():
            path = folder.place(soname)
            model = yield from own_file_findings(self._store, path, FILE_KINDS["symbols"])
            if not isinstance(model, Symbols):
                self._broken.add(soname)
                continue
            if model.soname != soname:
                text = f"is the table of {model.soname}"
                yield finding("invalid", text, path=self._store.relative(path))
            for provider in model.providers:
                self._archives[soname] |= {*provider.releases.values(), *provider.unread.values()}

    def lacking(self, features: Features, redist: str, label: Version) -> Iterator[Finding]:
        """Find the libraries of a release without symbols in the tables.

        A folder without tables has no findings, because tables are optional.
        """
        if not self._archives and not self._broken:
            return
        lacking: set[str] = set()
        for *_, archive in examined_archives(features):
            key = (archive.sha256 or "")[:KEY_SIZE]
            for name in map(table_name, archive.libraries):
                if name not in self._broken and key not in self._archives[name]:
                    lacking.add(name)
        names = sorted(filter(can_be_stored, lacking))
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            message = f"the symbols of {names[0]}{more} are not in any table"
            hint = f"{command_line('update-symbols', channel=self._store.channel)} adds them"
            yield finding("table-lacks", message, redist=redist, label=label, hint=hint)
