"""Read package sets from files."""

from pathlib import Path

from cudaredist.errors import UsageError
from cudaredist.formats.packageset import PackageSet
from cudaredist.hints import command_line
from cudaredist.primitives import sha256_of
from cudaredist.store.files import read_file
from cudaredist.store.read_data import read_file_given


def read_package_set(path: Path) -> tuple[PackageSet, str]:
    """Return a file's package set and hash.

    Raises `UsageError` if the file does not exist, and `InvalidFileError` if it is not a package
    set.
    """
    data = read_file(path)
    if data is None:
        command = command_line("build", cuda="13", platform="linux-x86_64", output=path)
        raise UsageError(f"{path}: no such file", hint=f"run `{command}` to create it")
    return read_file_given(path, data, PackageSet), sha256_of(data)
