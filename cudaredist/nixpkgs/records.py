"""Decisions of maintainers to keep a value, recorded in comments of nixpkgs' tables."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from cudaredist.nixpkgs.nix_file import NixFile
from cudaredist.nixpkgs.paths import CAPABILITY_PATH, NVCC_PATH, VERSIONS_PATH, TableName

KEEP = "cudaredist: keep"
"""The comment that keeps a value. The name of another one can follow it."""

_NAME = r"cudaPackages_[\w.-]+|\d+\.\d+[\w.]*|pkgs/\S+"
_comments = re.compile(rf"{KEEP}\b(?:[ \t]+(?P<name>{_NAME}))?").finditer
_TABLES: dict[TableName, tuple[str, tuple[str, ...]]] = {
    "compilers": (NVCC_PATH, ("nvccCompatibilities",)),
    "capabilities": (CAPABILITY_PATH, ("cudaCapabilityToInfo",)),
    "releases": (VERSIONS_PATH, ()),
}
"""The file of each table, and the attribute with its rows."""


@dataclass(frozen=True)
class Records:
    """The records in the tables of a checkout.

    A comment without a name keeps the attribute around it: it is in its first line or above it, or
    anywhere in a value without braces. A name, as `--diff` prints it, can also be that of a missing
    row, or of a manifest.
    """

    read: Callable[[str], bytes | None] = lambda _: None
    """Return the bytes of a file by its path in nixpkgs, or None if it is missing."""

    def keeps(self, table: TableName, *cell: str) -> bool:
        """Check if a cell of a table, or an attribute around it, has a record."""
        file, attributes = self._files[table], _TABLES[table][1]
        if file is None:
            return False
        names = {".".join(cell[:end]) for end in range(1, len(cell) + 1)}
        if names & self._names[table]:
            return True
        path = (*attributes, *cell)
        return any(_has_comment(file, path[:end]) for end in range(1, len(path) + 1))

    def keeps_missing(self, table: TableName, row: str) -> bool:
        """Check if a missing row, or one of its cells, has a record."""
        return any(f"{name}.".startswith(f"{row}.") for name in self._names[table])

    def keeps_file(self, path: str) -> bool:
        """Check if a manifest has a record in the table of releases."""
        return path in self._names["releases"]

    @cached_property
    def _files(self) -> dict[TableName, NixFile | None]:
        """The files that have records."""
        files: dict[TableName, NixFile | None] = {}
        for table, (path, _) in _TABLES.items():
            data = self.read(path)
            has_record = data is not None and KEEP.encode() in data
            files[table] = NixFile.decode(path, data) if data is not None and has_record else None
        return files

    @cached_property
    def _names(self) -> dict[TableName, set[str]]:
        """The names in the records of each table."""
        names = {}
        for table, file in self._files.items():
            matches = _comments("" if file is None else file.text)
            names[table] = {_row_of(match["name"]) for match in matches if match["name"]}
        return names


def _row_of(name: str) -> str:
    """Return a name without the machine of a release, because its row is kept for all machines."""
    name = name.rstrip(".")
    return ".".join(name.split(".")[:2]) if name.startswith("cudaPackages_") else name


def _has_comment(file: NixFile, names: tuple[str, ...]) -> bool:
    """Check if an attribute has a record without a name."""
    binding = file.find(*names)
    if binding is None:
        return False
    lines_before = file.text[: binding.start].split("\n")[:-1]
    above = takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines_before))
    braces = file.braces(binding)
    first_end = file.text.find("\n", binding.end if braces is None else braces[0])
    last_end = file.text.find("\n", binding.end)
    lines = [*above, file.text[binding.start : first_end], file.text[binding.end : last_end]]
    return any(not match["name"] for line in lines for match in _comments(line))
