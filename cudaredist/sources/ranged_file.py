"""A seekable remote file for zipfile, read by range requests."""

import io
from collections.abc import Callable

from cudaredist.sources.protocol import Part

_TAIL = 64 << 10
"""Bytes of the first request, and minimum bytes of the others."""
_LIMIT = 64 << 20
"""Maximum bytes of a request: a zip directory of about half a million members."""


class RangedFile(io.RawIOBase):
    """A remote file, fetched in parts, its end first."""

    def __init__(
        self, read: Callable[[int | None, int, str | None], Part], ahead: int = _TAIL
    ) -> None:
        """`ahead` are the bytes to request at once, except for the first request."""
        self._read, self._ahead = read, ahead
        self._part = read(None, _TAIL, None)
        self._position = 0
        self.size = self._part.total

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise OSError("the position is before the beginning of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, from the last part if it contains them."""
        end = self.size if size < 0 else min(self.size, self._position + size)
        length = max(0, end - self._position)
        part = self._part
        if length and not part.start <= self._position <= end <= part.start + len(part.data):
            if length > _LIMIT:
                raise ValueError(f"the zip directory has {length:,} bytes, more than {_LIMIT:,}")
            more = min(max(length, self._ahead), self.size - self._position)
            self._part = part = self._read(self._position, more, part.etag)
        begin = self._position - part.start
        data = part.data[begin : begin + length] if length else b""
        self._position += len(data)
        return data
