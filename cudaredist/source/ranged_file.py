"""A remote file as zipfile requires it: seekable, read by range requests."""

import io
from collections.abc import Callable

from cudaredist.source.protocol import Part

_TAIL = 64 << 10
"""The fewest bytes of a request."""
_LIMIT = 64 << 20
"""The most bytes of a request: a zip directory of about half a million members."""


class RangedFile(io.RawIOBase):
    """A file whose end is fetched at once, and other parts when they are read."""

    def __init__(self, read: Callable[[int | None, int, str | None], Part]) -> None:
        self._read = read
        self._part = read(None, _TAIL, None)
        self._position = 0
        self.size = self._part.total
        self.fetched = len(self._part.data)

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise OSError("a position before the beginning of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return bytes from the position on, fetching them unless they were fetched last."""
        end = self.size if size < 0 else min(self.size, self._position + size)
        length = max(0, end - self._position)
        part = self._part
        if length and not part.start <= self._position <= end <= part.start + len(part.data):
            if length > _LIMIT:
                raise ValueError(f"a directory of {length:,} bytes")
            more = min(max(length, _TAIL), self.size - self._position)
            self._part = part = self._read(self._position, more, part.etag)
            self.fetched += len(part.data)
        begin = self._position - part.start
        data = part.data[begin : begin + length] if length else b""
        self._position += len(data)
        return data
