"""Read single files of a data folder, with errors that name the file."""

from pathlib import Path
from typing import TypeVar

from cudaredist.errors import InvalidFileError, Problem, located
from cudaredist.formats.base import OwnModel
from cudaredist.formats.features import Features
from cudaredist.formats.registry import names_schema_version, parse_own_json, read_own_file
from cudaredist.formats.runfile_records import Runfiles
from cudaredist.formats.toolkit_record import RECORD_NAME, ToolkitRecord
from cudaredist.primitives import Version
from cudaredist.store.data_folder import Store
from cudaredist.store.files import read_file

RUNFILES = "runfiles"
"""The name of the file of records, without its suffix."""

Model = TypeVar("Model", bound=OwnModel)


def load_features(store: Store, redist: str, label: Version) -> Features | None:
    """Return a feature file, or None if it is missing.

    A feature file of another tool counts as missing. Raises `ReadError` or `InvalidFileError`.
    """
    path = store.features(redist).path_of(label)
    data = read_file(path)
    if data is None:
        return None
    with located(store.relative(path)):
        if names_schema_version(data):
            return read_own_file(data, Features)
        parse_own_json(data, "features file")
        return None


def read_runfiles(data: bytes | None) -> Runfiles:
    """Read the file of records, which may be missing. Raises `InvalidFileError`."""
    if data is None:
        return Runfiles(schema_version=1, runfiles={})
    with located(f"{RUNFILES}.json"):
        return read_own_file(data, Runfiles)


_OTHER_FORMATS = {b'"CycloneDX"': "a CycloneDX document", b'"spdxVersion"': "an SPDX document"}
"""Documents that cudaredist writes but does not read, by a name in them."""


def read_file_given(path: Path, data: bytes, model: type[Model]) -> Model:
    """Read a file of ours that the user named.

    Raises `InvalidFileError` with the path.
    """
    try:
        return read_own_file(data, model)
    except InvalidFileError as error:
        title = next((name for mark, name in _OTHER_FORMATS.items() if mark in data), None)
        problems = (
            [Problem("", f"is {title}, which cudaredist writes but cannot read")]
            if title
            else error.problems
        )
        raise InvalidFileError(f"{error.what} ({path})", problems) from None


def read_record(root: Path) -> ToolkitRecord | None:
    """Return the record of a toolkit root, None if it has none. Raises `InvalidFileError`."""
    path = root / RECORD_NAME
    data = read_file(path)
    return None if data is None else read_file_given(path, data, ToolkitRecord)
