"""Read the source files of a folder, without executing anything."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from cudaredist.errors import ReadError, ReadingFrom
from cudaredist.source_code.api import Api
from cudaredist.source_code.branches import Evaluator
from cudaredist.source_code.declarations import Declarations, Includes
from cudaredist.source_code.judge_use import Tree
from cudaredist.source_code.read_code import CodeFile, Interest, read_code
from cudaredist.source_code.read_plain import read_plain
from cudaredist.source_code.version_macros import (
    dependent_macros,
    doubtful_macros,
    pasted_parameters,
    release_macros,
)
from cudaredist.source_code.work_limit import TooMuchWorkError

CODE = frozenset(
    (
        *(".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".ixx", ".cppm", ".m", ".mm"),
        *(".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".tcc"),
    )
)
"""Suffixes of C, C++ and CUDA."""
PLAIN = frozenset((".pyx", ".pxd", ".pxi", ".py", ".rs", ".jl", ".t", ".lua", ".f90", ".f", ".cuf"))
"""Suffixes of files that are read as plain text."""
_SIZE_LIMIT = 16 << 20
_FILES_LIMIT = 1_000_000
_DEPTH_LIMIT = 128
_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
_names = re.compile(rb"[A-Za-z_]\w{2,}", re.ASCII).findall
_continuation = re.compile(rb"\\[ \t]*\r?\n")
_continued_name = re.compile(rb"\\[ \t]*\r?\n\w").search
_TOO_MUCH = "needs too much work"
_VERSIONS = (b"CUDA_VERSION", b"CUDART_VERSION", b"__CUDACC_VER_M")
"""The beginnings of macros that state a release."""


@dataclass
class SourceTree:
    """The uses of an API in a folder."""

    files: list[CodeFile] = field(default_factory=list)
    """The files with uses or declarations of its names."""
    read: int = 0
    """The number of files that were read."""
    size: int = 0
    includes: Includes = field(default_factory=Includes)
    """The includes of all files of C, C++ and CUDA."""
    pasted: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The parameters of its macros that only form other names, with the releases."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reasons why files were not read, by path."""

    @property
    def facts(self) -> Tree:
        """The facts of all files."""
        own = Declarations(self.files, self.includes)
        members = frozenset[str]().union(*(file.members for file in self.files))
        types = frozenset[str]().union(*(file.types for file in self.files))
        return Tree(own, members, types, self.includes, self.pasted)


def read_tree(root: Path, api: Api, interest: Interest) -> SourceTree:
    """Return the uses of an API in the files of a folder, or in one file."""
    tree = SourceTree()
    evaluator = Evaluator(release_macros(api))
    searched = _Searched(interest)
    again: list[tuple[Path, CodeFile]] = []
    for path, name in source_files(root, tree.skipped):
        try:
            with ReadingFrom(path):
                data = read_limited(path)
        except ReadError as error:
            tree.skipped[name] = error.strerror
            continue
        tree.read += 1
        tree.size += len(data)
        if is_plain(name):
            file = read_plain(data, interest, evaluator.all_releases, name)
        else:
            tree.includes.add(name, data)
            if not searched.concern(data):
                continue
            try:
                file = read_code(data, interest, evaluator)
            except TooMuchWorkError:
                tree.skipped[name] = _TOO_MUCH
                continue
            again.append((path, file))
        file.path = name
        tree.files.append(file)
    definitions = [one for file in tree.files for one in file.definitions]
    tree.pasted = pasted_parameters(definitions)
    own = dependent_macros(definitions, evaluator.all_releases)
    doubtful = doubtful_macros(definitions)
    names = {one.name for one in own} | doubtful
    if names:
        evaluator = Evaluator(release_macros(api, own), doubtful)
        for path, file in again:
            if file.uses and not names.isdisjoint(file.condition_names):
                try:
                    with ReadingFrom(path):
                        reread = read_code(read_limited(path), interest, evaluator)
                except TooMuchWorkError:
                    tree.skipped[file.path] = _TOO_MUCH
                    reread = CodeFile()
                file.uses, file.own = reread.uses, reread.own
    tree.files = [
        file for file in tree.files if file.uses or file.own or file.members or file.types
    ]
    return tree


class _Searched:
    """Finds the files that concern an API, without reading their tokens."""

    def __init__(self, interest: Interest) -> None:
        words = {*interest.names, *interest.fields, *interest.types}
        self._names = frozenset(name.encode() for name in words)
        self._headers = tuple(name.encode() for name in interest.headers)

    def concern(self, data: bytes) -> bool:
        """Check if a file may use the API, or define macros for releases."""
        if _continued_name(data):
            data = _continuation.sub(b"", data)
        if any(name in data for name in _VERSIONS) or not self._names.isdisjoint(_names(data)):
            return True
        return any(header in data for header in self._headers) or b"\0" in data[:200]


def source_files(root: Path, skipped: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield the source files of a folder with their names in it. Links are not followed."""
    if root.is_file():
        yield root, root.name
        return
    pending = [("", 0)]
    count = 0
    while pending:
        folder, depth = pending.pop()
        try:
            with ReadingFrom(root / folder), os.scandir(root / folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except ReadError as error:
            skipped[folder or "."] = error.strerror
            continue
        inner = []
        for entry in ordered:
            name = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED_FOLDERS and depth < _DEPTH_LIMIT:
                    inner.append((f"{name}/", depth + 1))
            elif is_source(entry.name) and entry.is_file(follow_symlinks=False):
                count += 1
                if count > _FILES_LIMIT:
                    skipped[name] = f"more than {_FILES_LIMIT:,} files"
                    return
                yield Path(entry.path), name
        pending += reversed(inner)


def is_source(name: str) -> bool:
    """Check if a file is source code by its name."""
    return _suffix(name) in CODE | PLAIN


def is_plain(name: str) -> bool:
    """Check if a file is read as plain text."""
    return _suffix(name) in PLAIN


def _suffix(name: str) -> str:
    return PurePath(name.lower().removesuffix(".in")).suffix


def read_limited(path: Path) -> bytes:
    """Return the contents of a file. Raises `OSError` if it is too large or not a file."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a file")
        if status.st_size > _SIZE_LIMIT:
            raise OSError(0, f"larger than {_SIZE_LIMIT >> 20} MB")
        return file.read(_SIZE_LIMIT)
