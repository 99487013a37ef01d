"""The bytes of one file at any position.

The bytes of an archive's member are stored while they are unpacked: in memory, or in an unnamed
file if the member is large. A file on the disk is read in place.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

from cudaredist.errors import ReadError, WritingTo

MEMORY = 1 << 20
"""Maximum bytes of a member in memory."""
BLOCK = 256 << 10
"""Bytes that are searched at a time."""
_WINDOW = 4096
"""Bytes that are read at once for fewer bytes, such as those of a header."""
BUFFER = 64 << 10
"""Minimum bytes of one read from a file."""
TABLE_LIMIT = 1 << 20
"""Maximum bytes of one table."""
NAME_LIMIT = 4096
"""Maximum bytes of one name, which is also Linux's longest path."""


class UnreadableError(Exception):
    """A part of a file that cannot be read. The text is a note."""


class FileContent:
    """The bytes of one file. Reading them raises `ReadError`."""

    def __init__(self, file: IO[bytes], size: int, path: object) -> None:
        self._file, self._path = file, path
        self.size = size
        self._start, self._window = 0, b""
        """The bytes of the last small read, and their position."""

    def read(self, start: int, size: int) -> bytes:
        """Return `size` bytes from `start`, or fewer at the end of the file."""
        size = min(size, self.size - start)
        if size <= 0:
            return b""
        at = start - self._start
        if at < 0 or at + size > len(self._window):
            try:
                self._file.seek(start)
                data = self._file.read(max(size, _WINDOW))
            except OSError as error:
                raise ReadError(self._path, error) from error
            if size > _WINDOW:
                return data
            at, self._start, self._window = 0, start, data
        return self._window[at : at + size]

    def sha256(self) -> str:
        """Return the hash of all bytes."""
        digest = hashlib.sha256()
        for start in range(0, self.size, BLOCK):
            digest.update(self.read(start, BLOCK))
        return digest.hexdigest()

    def table(self, start: int, size: int, subject: str, limit: int = TABLE_LIMIT) -> bytes:
        """Return a table. Raises `UnreadableError`."""
        if size > limit:
            raise UnreadableError(f"{subject} not read: larger than {limit:,} bytes")
        data = self.read(start, size)
        if len(data) < size:
            raise UnreadableError(f"{subject} not read: it is outside the file")
        return data

    def name(self, start: int, room: int, subject: str, limit: int = NAME_LIMIT) -> str:
        """Return a name that ends with a NUL within `room` bytes. Raises `UnreadableError`."""
        if room <= 0:
            raise UnreadableError(f"{subject} not read: it is outside its table")
        raw, nul, _ = self.table(start, min(room, limit + 1), subject).partition(b"\0")
        name = text_of_name(raw)
        if not nul:
            raise UnreadableError(f"{subject} not read: it has no end")
        if name is None:
            raise UnreadableError(f"{subject} not read: it is not text")
        return name


def outside(ranges: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file outside the given ranges."""
    at = 0
    for start, end in sorted(ranges):
        if start > at:
            yield at, min(start, size)
        at = max(at, end)
        if at >= size:
            return
    yield at, size


def text_of_name(raw: bytes) -> str | None:
    """Return a name as text, None if not printable UTF-8."""
    # Other bytes than those of UTF-8 become surrogates, which are not printable.
    text = raw.decode(errors="surrogateescape")
    return text if text.isprintable() else None


class Storage(Protocol):
    """Stores the bytes of a file, so that they can be read at any position."""

    def store(self, chunks: Iterable[bytes]) -> FileContent:
        """Store the chunks of a file. Its bytes are valid until the next file is stored."""


class Scratch:
    """Storage in memory, or in one unnamed file for members above `MEMORY` bytes.

    The system removes the file when it is closed, even if the process is killed. The file becomes
    as large as the largest member.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Select the folder of the unnamed file. Default: the system's temporary folder."""
        self._path = (folder or Path()) / "temporary file"
        # On a file system without unnamed files, the name is removed before the first byte.
        self._file: IO[bytes] = SpooledTemporaryFile(  # noqa: SIM115 - `close` closes it
            MEMORY, buffering=BUFFER, dir=None if folder is None else str(folder), suffix=".tmp"
        )

    def store(self, chunks: Iterable[bytes]) -> FileContent:
        """Store the chunks of a file instead of the previous one. Raises `WriteError`."""
        size = 0
        with WritingTo(self._path):
            self._file.seek(0)
        for chunk in chunks:
            with WritingTo(self._path):
                self._file.write(chunk)
            size += len(chunk)
        with WritingTo(self._path):
            self._file.flush()
        return FileContent(self._file, size, self._path)

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
