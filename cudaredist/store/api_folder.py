"""The tables of APIs in a data folder, a file for each package."""

import re
from collections.abc import Mapping
from pathlib import Path

from cudaredist.errors import InvalidFileError
from cudaredist.formats.api_tables import API_NAME_PATTERN, ApiTable
from cudaredist.store.files import names_in, read_file, sweep, write_or_remove
from cudaredist.store.read_data import read_file_given

_SUFFIX = ".json"
_is_package = re.compile(API_NAME_PATTERN).fullmatch


class ApiFolder:
    """The folder `api/` of one layer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, package: str) -> Path:
        """Return the path of a package's table."""
        return self.path / f"{package}{_SUFFIX}"

    def packages(self) -> tuple[str, ...]:
        """Return the packages with a table, sorted. Raises `ReadError`."""
        files = (file for file in names_in(self.path) if file.endswith(_SUFFIX))
        return tuple(sorted(filter(_is_package, (file.removesuffix(_SUFFIX) for file in files))))

    def document(self, package: str) -> ApiTable | None:
        """Return the table of a package, None if it has none.

        Raises `ReadError`, and `InvalidFileError` for a broken table or that of another package.
        """
        path = self.place(package)
        data = read_file(path)
        table = None if data is None else read_file_given(path, data, ApiTable)
        if table is not None and table.package != package:
            raise InvalidFileError.of(f"api file ({path})", f"is {table.package}", "package")
        return table

    def changed(self, tables: Mapping[str, ApiTable | None]) -> dict[str, bytes | None]:
        """Return the changed tables by package, None for those without a release."""
        changed: dict[str, bytes | None] = {}
        for package, table in sorted(tables.items()):
            data = None if table is None else table.canonical()
            if data != read_file(self.place(package)):
                changed[package] = data
        return changed

    def write(self, changed: Mapping[str, bytes | None]) -> None:
        """Write tables, and remove those without a release. Raises `WriteError`."""
        sweep(self.path)
        for package, data in changed.items():
            write_or_remove(self.place(package), data, self.path)
