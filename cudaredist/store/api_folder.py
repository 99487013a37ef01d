"""The tables of APIs in a data folder, a file for each package."""

from pathlib import Path

from cudaredist.errors import InvalidFileError
from cudaredist.formats.api_tables import ApiTable
from cudaredist.store.files import read_file
from cudaredist.store.read_data import read_file_given
from cudaredist.store.table_folder import TableFolder, is_api_package


class ApiFolder(TableFolder):
    """The folder `api/` of one layer."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, is_api_package)

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
