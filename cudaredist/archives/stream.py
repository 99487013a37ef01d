"""A forward-only view of bytes in chunks."""

from collections.abc import Iterable, Iterator
from typing import NoReturn

from cudaredist.errors import InvalidArchiveError


class Stream:
    """A forward-only stream of bytes.

    Pieces are the original chunks if possible. Errors of the chunks' iterator pass through
    unchanged.
    """

    def __init__(self, where: str, chunks: Iterable[bytes]) -> None:
        self.where = where
        self._chunks = filter(None, iter(chunks))
        self._chunk = b""
        self._next = 0
        self._before = 0

    @property
    def position(self) -> int:
        """The number of bytes read."""
        return self._before + self._next

    def refuse(self, reason: str) -> NoReturn:
        """Raise `InvalidArchiveError` about this archive."""
        raise InvalidArchiveError(self.where, reason)

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

    def read(self, count: int) -> bytes:
        """Read exactly `count` bytes, or refuse the archive."""
        return b"".join(self._pieces(count))

    def skip(self, count: int) -> None:
        """Skip `count` bytes, and refuse an archive that ends before."""
        for _ in self._pieces(count):
            pass

    def _pieces(self, count: int) -> Iterator[bytes]:
        while count:
            piece = self.piece(count)
            if not piece:
                self.refuse("is truncated")
            count -= len(piece)
            yield piece
