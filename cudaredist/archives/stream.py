"""A forward-only view of bytes with lookahead."""

import abc
from collections.abc import Generator, Iterable, Iterator
from typing import NoReturn

from cudaredist.archives.members import Limits, Member
from cudaredist.errors import InvalidArchiveError, shown


class Stream:
    """A forward-only stream of bytes.

    Pieces are the original chunks if possible. Errors of the chunks' iterator pass through
    unchanged.
    """

    def __init__(self, where: str, chunks: Iterable[bytes]) -> None:
        self.where = where
        self._source = iter(chunks)
        self._chunks = filter(None, self._source)
        self._chunk = b""
        self._next = 0
        self._before = 0

    @property
    def position(self) -> int:
        """The number of bytes read."""
        return self._before + self._next

    @property
    def arrived(self) -> int:
        """The number of bytes that were taken from the iterator."""
        return self._before + len(self._chunk)

    def refuse(self, reason: str, hint: str | None = None) -> NoReturn:
        """Raise `InvalidArchiveError` about this archive."""
        raise InvalidArchiveError(self.where, reason, hint=hint)

    def piece(self, most: int) -> bytes:
        """Read available bytes, at most `most`.

        Returns b"" only at the end.
        """
        if self._next == len(self._chunk):
            self._before += self._next
            self._chunk, self._next = next(self._chunks, b""), 0
        chunk, start = self._chunk, self._next
        if start == 0 and len(chunk) <= most:
            self._next = len(chunk)
            return chunk
        piece = chunk[start : start + most]
        self._next = start + len(piece)
        return piece

    def give_back(self, count: int) -> None:
        """Unread the last `count` bytes of the latest piece."""
        self._next -= count

    def read(self, count: int, truncated: str = "is truncated") -> bytes:
        """Read exactly `count` bytes, or refuse the archive with the reason."""
        return b"".join(self.pieces(count, truncated))

    def pieces(self, count: int, truncated: str = "is truncated") -> Iterator[bytes]:
        """Read exactly `count` bytes in pieces, or refuse the archive with the reason."""
        while count:
            piece = self.piece(count)
            if not piece:
                self.refuse(truncated)
            count -= len(piece)
            yield piece

    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without reading them.

        At the end, it returns fewer.
        """
        if len(self._chunk) - self._next < count:
            pieces = [self._chunk[self._next :]]
            ready = len(pieces[0])
            self._before += self._next
            while ready < count and (chunk := next(self._chunks, b"")):
                pieces.append(chunk)
                ready += len(chunk)
            self._chunk, self._next = b"".join(pieces), 0
        return self._chunk[self._next : self._next + count]

    def skip(self, count: int) -> None:
        """Skip `count` bytes, and refuse an archive that ends before."""
        for _ in self.pieces(count):
            pass

    def close(self) -> None:
        """Close the chunks' iterator if it is a generator."""
        if isinstance(self._source, Generator):
            self._source.close()


def text_of(name: bytes) -> str:
    """Decode UTF-8, with lone surrogates for invalid bytes.

    The standard library's tarfile does the same.
    """
    return name.decode("utf-8", "surrogateescape")


class StreamReader(abc.ABC):
    """An `ArchiveReader` of a stream."""

    def __init__(self, stream: Stream, limits: Limits) -> None:
        self._stream = stream
        self._limits = limits
        self._count = 0
        self._name_bytes = 0
        self._members = self._read()
        self.corrections: dict[int, Member] = {}

    def __iter__(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        """Return the iterator of the only pass."""
        return self._members

    def close(self) -> None:
        """End the pass, and release its threads and shared memory."""
        self._members.close()
        self._stream.close()

    def _count_member(self, name: bytes) -> None:
        """Count a member and its name, and enforce the limits."""
        self._count += 1
        if self._count > self._limits.members:
            self._stream.refuse(f"has more than {self._limits.members:,} members")
        self._count_name(name)

    def _count_name(self, name: bytes) -> None:
        """Count a name or link target, and enforce the limits.

        Callers keep all names in memory.
        """
        if len(name) > self._limits.name:
            self._stream.refuse(f"has a name of {len(name):,} bytes: {shown(text_of(name))}")
        self._name_bytes += len(name)
        if self._name_bytes > self._limits.names:
            self._stream.refuse(f"its names take more than {self._limits.names:,} bytes")

    @abc.abstractmethod
    def _read(self) -> Generator[tuple[Member, Iterator[bytes]], None, None]: ...
