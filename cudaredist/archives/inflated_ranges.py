"""Random access to a deflated member during one pass.

Copies of the decompressor are kept while the member passes. To read a range again, only the bytes
from the last copy before it are unpacked a second time. These bytes count for the archive's limit.
"""

import zlib
from bisect import bisect_right
from typing import NamedTuple

from cudaredist.archives.decompress import INPUT, OUTPUT, Budget
from cudaredist.archives.members import ReadAt

_STEP = 4 << 20
"""Unpacked bytes between two copies, at first."""
_COPIES_LIMIT = 64
"""Maximum copies. Each takes up to 100 KB."""


class _Copy(NamedTuple):
    position: int
    """In the unpacked content."""
    packed: int
    """In the archive."""
    inflate: "zlib._Decompress"


class InflatedRanges:
    """Reader of ranges of one member's content."""

    def __init__(self, read_at: ReadAt, budget: Budget) -> None:
        self._read_at = read_at
        self._budget = budget
        self._copies: list[_Copy] = []
        self._step = _STEP
        self._inflate: zlib._Decompress | None = None
        self._packed = 0
        """The position in the archive of the next bytes to read."""
        self._at = 0
        """The position of `_chunk`."""
        self._chunk = b""
        """The bytes that were unpacked last."""

    def passed(self, position: int, packed: int, inflate: "zlib._Decompress") -> None:
        """Copy the decompressor if its position is far enough from the last copy."""
        if self._copies and position - self._copies[-1].position < self._step:
            return
        if len(self._copies) == _COPIES_LIMIT:
            del self._copies[1::2]
            self._step *= 2
        self._copies.append(_Copy(position, packed, inflate.copy()))

    def read(self, start: int, size: int) -> bytes:
        """Return a range that has passed, or less if the archive has changed."""
        index = bisect_right(self._copies, start, key=lambda copy: copy.position) - 1
        copy = self._copies[index]
        is_behind = copy.position > self._at + len(self._chunk)
        if self._inflate is None or start < self._at or is_behind:
            self._inflate = copy.inflate.copy()
            self._packed = copy.packed + len(self._inflate.unconsumed_tail)
            self._at, self._chunk = copy.position, b""
        parts = []
        while True:
            parts.append(self._chunk[max(start - self._at, 0) : max(start + size - self._at, 0)])
            if self._at + len(self._chunk) >= start + size or not self._advance(self._inflate):
                return b"".join(parts)

    def _advance(self, inflate: "zlib._Decompress") -> bool:
        """Unpack the next chunk, and return whether there is one."""
        data = inflate.unconsumed_tail
        if not data:
            data = self._read_at(self._packed, INPUT)
            self._packed += len(data)
        try:
            chunk = inflate.decompress(data, OUTPUT)
        except zlib.error:
            return False
        self._budget.spend(len(chunk))
        self._at += len(self._chunk)
        self._chunk = chunk
        return bool(chunk or (data and not inflate.eof))
