"""The tables of symbols in a data folder, a file for each library."""

import re
from collections.abc import Mapping
from pathlib import Path

from cudaredist.errors import InvalidFileError, Problem, WritingTo
from cudaredist.jsontext import canonical_json
from cudaredist.schema.registry import read_own_file
from cudaredist.schema.symbols import LIBRARY_PATTERN, Symbols
from cudaredist.store.files import names_in, read_file, sweep, write_file
from cudaredist.tables.symbols.symbol_table import SymbolColumns

_SUFFIX = ".json"
_is_library = re.compile(LIBRARY_PATTERN).fullmatch


class SymbolFolder:
    """The folder `symbols/` of one layer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, soname: str) -> Path:
        """Return the path of a library's table."""
        return self.path / f"{soname}{_SUFFIX}"

    def sonames(self) -> tuple[str, ...]:
        """Return the libraries with a table, sorted. Raises `ReadError`."""
        names = (name.removesuffix(_SUFFIX) for name in names_in(self.path) if _is_table(name))
        return tuple(sorted(names))

    def read(self, soname: str) -> SymbolColumns | None:
        """Return the table of a library; None if there is none.

        Raises `ReadError`, and `InvalidFileError` for a broken table or that of another library.
        """
        data = read_file(self.place(soname))
        if data is None:
            return None
        what = f"symbols file ({self.place(soname)})"
        try:
            columns = SymbolColumns.of(read_own_file(data, Symbols))
        except InvalidFileError as error:
            raise InvalidFileError(what, error.problems) from None
        except ValueError as error:
            raise InvalidFileError(what, [Problem("releases", str(error))]) from None
        if columns.soname != soname:
            raise InvalidFileError(what, [Problem("soname", f"is {columns.soname}")])
        return columns

    def changed(self, tables: Mapping[str, SymbolColumns]) -> dict[str, bytes | None]:
        """Return the tables that differ from the files, by library; None: without a release."""
        changed: dict[str, bytes | None] = {}
        for soname, columns in sorted(tables.items()):
            document = columns.document()
            data = None if document is None else canonical_json(document.model_dump(mode="json"))
            if data != read_file(self.place(soname)):
                changed[soname] = data
        return changed

    def write(self, changed: Mapping[str, bytes | None]) -> None:
        """Write tables, and remove those without a release. Raises `WriteError`."""
        for soname, data in changed.items():
            if data is not None:
                write_file(self.place(soname), data)
                continue
            with WritingTo(self.place(soname)):
                self.place(soname).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what a killed run left under temporary names."""
        sweep(self.path, ".")


def can_be_stored(soname: str) -> bool:
    """Check if a library's name can be that of a file."""
    return _is_library(soname) is not None


def _is_table(name: str) -> bool:
    return name.endswith(_SUFFIX) and can_be_stored(name.removesuffix(_SUFFIX))
