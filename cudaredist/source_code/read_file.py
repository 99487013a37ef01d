"""Read one source file, without executing anything."""

import os
import re
import stat
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePath
from typing import NamedTuple

from cudaredist.errors import ReadError, ReadingFrom
from cudaredist.source_code.branches import Evaluator
from cudaredist.source_code.declarations import includes_of
from cudaredist.source_code.read_code import CodeFile, Interest, read_code
from cudaredist.source_code.read_plain import read_plain
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
_TOO_MUCH = "needs too much work"
_names = re.compile(rb"[A-Za-z_]\w{2,}", re.ASCII).findall
_continuation = re.compile(rb"\\[ \t]*\r?\n")
_continued_name = re.compile(rb"\\[ \t]*\r?\n\w").search
_VERSIONS = (b"CUDA_VERSION", b"CUDART_VERSION", b"__CUDACC_VER_M")
"""The beginnings of macros that state a release."""


class SourceFile(NamedTuple):
    """A source file."""

    path: Path
    name: str
    """Its path in the folder that is read."""
    size: int


class FileFacts(NamedTuple):
    """The facts of a source file."""

    name: str
    size: int = 0
    reason: str = ""
    """Why it was not read. Empty: it was."""
    includes: AbstractSet[str] | None = None
    """The names of the files that it includes. None: it is read as plain text."""
    code: CodeFile | None = None
    """Its uses and declarations. None: it does not concern the API."""


class FileReader:
    """Reads files. Processes get copies of it."""

    def __init__(self, interest: Interest, evaluator: Evaluator) -> None:
        self._interest, self._evaluator = interest, evaluator
        words = {*interest.names, *interest.fields, *interest.types}
        self._names = frozenset(name.encode() for name in words)
        self._headers = tuple(name.encode() for name in interest.headers)

    def read(self, file: SourceFile) -> FileFacts:
        """Return the facts of a file, or the reason why it was not read."""
        try:
            with ReadingFrom(file.path):
                data = _read_limited(file.path)
        except ReadError as error:
            return FileFacts(file.name, reason=error.strerror)
        is_text = is_plain(file.name)
        includes = None if is_text else includes_of(data)
        code = None
        try:
            if is_text:
                code = read_plain(data, self._interest, self._evaluator.all_releases, file.name)
            elif self._concerns(data):
                code = read_code(data, self._interest, self._evaluator)
        except TooMuchWorkError:
            return FileFacts(file.name, len(data), _TOO_MUCH, includes)
        if code is not None:
            code.path = file.name
        return FileFacts(file.name, len(data), includes=includes, code=code)

    def _concerns(self, data: bytes) -> bool:
        """Check if a file may use the API, or define macros for releases.

        This is faster than reading its tokens.
        """
        if _continued_name(data):
            data = _continuation.sub(b"", data)
        if any(name in data for name in _VERSIONS) or not self._names.isdisjoint(_names(data)):
            return True
        return any(header in data for header in self._headers) or b"\0" in data[:200]


def is_source(name: str) -> bool:
    """Check if a file is source code by its name."""
    return _suffix(name) in CODE | PLAIN


def is_plain(name: str) -> bool:
    """Check if a file is read as plain text."""
    return _suffix(name) in PLAIN


def _suffix(name: str) -> str:
    return PurePath(name.lower().removesuffix(".in")).suffix


def _read_limited(path: Path) -> bytes:
    """Return the contents of a file. Raises `OSError` if it is too large or not a file."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a file")
        if status.st_size > _SIZE_LIMIT:
            raise OSError(0, f"larger than {_SIZE_LIMIT >> 20} MB")
        return file.read(_SIZE_LIMIT)
