"""The tables of symbols in a data folder, a file for each library."""

from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.errors import InvalidFileError
from cudaredist.formats.features import Library
from cudaredist.formats.symbol_tables import Symbols
from cudaredist.store.files import read_file
from cudaredist.store.read_data import read_file_given
from cudaredist.store.table_folder import TableFolder, is_library
from cudaredist.tables.symbols.symbol_table import SymbolColumns

if TYPE_CHECKING:
    from cudaredist.formats.packageset import Provided


class SymbolFolder(TableFolder):
    """The folder `symbols/` of one layer."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, is_library)

    def document(self, soname: str) -> Symbols | None:
        """Return the document of a library, None if it has none.

        Raises `ReadError`, and `InvalidFileError` for a broken table or that of another library.
        """
        path = self.place(soname)
        data = read_file(path)
        table = None if data is None else read_file_given(path, data, Symbols)
        if table is not None and table.soname != soname:
            raise InvalidFileError.of(f"symbols file ({path})", f"is {table.soname}", "soname")
        return table


class LayeredSymbols:
    """The combined tables of all layers. Each is read once."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Take the folders, the lowest layer first."""
        self.folders = tuple(map(SymbolFolder, paths))
        self._tables: dict[str, SymbolColumns | None] = {}

    def sonames(self) -> tuple[str, ...]:
        """Return the libraries with a table, sorted. Raises `ReadError`."""
        return tuple(sorted({name for folder in self.folders for name in folder.names()}))

    def tables(self, sonames: Iterable[str]) -> dict[str, SymbolColumns]:
        """Return the tables of some libraries. Raises `ReadError` and `InvalidFileError`."""
        tables = ((soname, self.table(soname)) for soname in sorted(set(sonames)))
        return {soname: table for soname, table in tables if table is not None}

    def table(self, soname: str) -> SymbolColumns | None:
        """Return the table of a library, None if it has none.

        Raises `ReadError` and `InvalidFileError`.
        """
        if soname not in self._tables:
            folders = self.folders[::-1] if can_be_stored(soname) else ()
            documents = (folder.document(soname) for folder in folders)
            layers = [SymbolColumns.of(document) for document in documents if document is not None]
            self._tables[soname] = reduce(SymbolColumns.overlay_on, layers) if layers else None
        return self._tables[soname]


def table_name(library: "Library | Provided") -> str:
    """Return the name that a library's table has."""
    return name_in_tables(library.path, library.soname)


def name_in_tables(path: str, soname: str | None) -> str:
    """Return the name of a library's table: of a DLL that of its file, else the soname."""
    file = path.rpartition("/")[2]
    return file if file.lower().endswith(".dll") else soname or file


def can_be_stored(soname: str) -> bool:
    """Check if a library's name can be that of a file."""
    return is_library(soname) is not None
