"""A folder of tables, a file for each name."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cudaredist.primitives import API_NAME_PATTERN, LIBRARY_PATTERN
from cudaredist.store.files import names_in, read_file, sweep, write_or_remove

if TYPE_CHECKING:
    from cudaredist.formats.base import OwnFile

is_library = re.compile(LIBRARY_PATTERN).fullmatch
is_api_package = re.compile(API_NAME_PATTERN).fullmatch

_SUFFIX = ".json"


class Columns(Protocol):
    """A table in memory, with a column for each archive."""

    def document(self) -> "OwnFile | None":
        """Return the document, None if there are no columns."""


class TableFolder:
    """The names and paths of the tables in a folder."""

    def __init__(self, path: Path, is_name: Callable[[str], object]) -> None:
        """Open a folder. `is_name` tells its tables from other files."""
        self.path = path
        self._is_name = is_name

    def place(self, name: str) -> Path:
        """Return the path of a table."""
        return self.path / f"{name}{_SUFFIX}"

    def names(self) -> tuple[str, ...]:
        """Return the names of the tables, sorted. Raises `ReadError`."""
        files = (file for file in names_in(self.path) if file.endswith(_SUFFIX))
        return tuple(sorted(filter(self._is_name, (file.removesuffix(_SUFFIX) for file in files))))

    def changed(self, tables: Mapping[str, Columns]) -> dict[str, bytes | None]:
        """Return the changed tables by name, None for those without a release."""
        changed: dict[str, bytes | None] = {}
        for name in sorted(tables):
            document = tables[name].document()
            data = None if document is None else document.canonical()
            if data != read_file(self.place(name)):
                changed[name] = data
        return changed

    def write(self, changed: Mapping[str, bytes | None]) -> None:
        """Write tables, and remove those without a release. Raises `WriteError`."""
        for name, data in changed.items():
            write_or_remove(self.place(name), data, self.path)

    def sweep(self) -> None:
        """Remove what a killed run left under temporary names."""
        sweep(self.path)
