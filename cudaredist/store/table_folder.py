"""A folder of tables, a file for each name."""

import re
from collections.abc import Callable
from pathlib import Path

from cudaredist.primitives import API_NAME_PATTERN, LIBRARY_PATTERN
from cudaredist.store.files import names_in

is_library = re.compile(LIBRARY_PATTERN).fullmatch
is_api_package = re.compile(API_NAME_PATTERN).fullmatch

_SUFFIX = ".json"


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
