"""A folder of tables, a file for each name."""

import re
from pathlib import Path

from cudaredist.store.files import names_in

_SUFFIX = ".json"


class TableFolder:
    """The names and paths of the tables in a folder."""

    def __init__(self, path: Path, pattern: str) -> None:
        """Open a folder. Other files have names that do not match the pattern."""
        self.path = path
        self._is_name = re.compile(pattern).fullmatch

    def place(self, name: str) -> Path:
        """Return the path of a table."""
        return self.path / f"{name}{_SUFFIX}"

    def names(self) -> tuple[str, ...]:
        """Return the names of the tables, sorted. Raises `ReadError`."""
        files = (file for file in names_in(self.path) if file.endswith(_SUFFIX))
        return tuple(sorted(filter(self._is_name, (file.removesuffix(_SUFFIX) for file in files))))
