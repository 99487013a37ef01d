"""Self-extracting archives of makeself: a shell script, followed by compressed files.

Nothing is executed. The script's variables state the number of its lines, and the size and MD5 of
each file after it. Format: makeself 2.1 to 2.5, `makeself-header.sh`.
"""

import hashlib
import re
from dataclasses import dataclass

from cudaredist.errors import IntegrityError, InvalidArchiveError

_HEADER_LIMIT = 4 << 20
"""Maximum bytes of a script. Those of NVIDIA have some 500 lines and a license."""
_PARTS_LIMIT = 64 << 30
"""Maximum bytes after a script. NVIDIA's largest runfiles have about 6 GB."""
_START = b"#!/bin/sh"
_MARK_WITHIN = 4096
_NO_HASH = "0" * 32
_HINT = "download the file again"

_lines = re.compile(rb'^skip="?([0-9]{1,9})"?$|head -n ([0-9]{1,9}) "\$0"', re.MULTILINE)
_sizes = re.compile(rb'^filesizes="([0-9 ]{1,500})"$', re.MULTILINE)
_hashes = re.compile(rb'^MD5="([0-9a-f ]{1,500})"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _MakeselfHeader:
    length: int
    sizes: tuple[int, ...]
    md5: tuple[str, ...]


class MakeselfCheck:
    """Verifies an archive while its bytes are read once, in chunks of any size."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._header: _MakeselfHeader | None = None
        self._start = bytearray()
        self._next_attempt = _MARK_WITHIN
        """Bytes before the next attempt to read the header. It doubles, so that the time for a
        header is linear in its length."""
        self._parts: list[hashlib._Hash] = []
        self._left: list[tuple[int, hashlib._Hash]] = []
        """Bytes to come of each part, and its hash."""
        self._received = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises `InvalidArchiveError` if they are not a makeself archive, or if there are more bytes
        than its script states.
        """
        if self._header is not None:
            self._feed_payload(self._header, chunk)
            return
        self._start += chunk
        if len(self._start) >= self._next_attempt:
            self._begin()

    def finish(self) -> None:
        """Verify the size and the MD5 of each part.

        Raises `InvalidArchiveError` for a file that was cut or extended, and `IntegrityError` for
        other bytes.
        """
        if self._header is None:
            self._begin()
        if self._header is None:
            reason = "is truncated: its makeself script has no end"
            raise InvalidArchiveError(self._name, reason, hint=_HINT)
        if any(size for size, _ in self._left):
            raise self._other_size(self._header, "")
        for part, md5 in zip(self._parts, self._header.md5, strict=False):
            if md5 not in {_NO_HASH, part.hexdigest()}:
                raise IntegrityError(
                    f"{self._name}: the MD5 is {part.hexdigest()}, and its script states {md5}",
                    hint=_HINT,
                )

    def _begin(self) -> None:
        """Read the header if it is complete, and the first bytes after it."""
        self._next_attempt = 2 * len(self._start)
        self._header = self._read_header()
        if self._header is not None:
            self._parts = [hashlib.md5(usedforsecurity=False) for _ in self._header.sizes]
            self._left = list(zip(self._header.sizes, self._parts, strict=True))
            chunk, self._start = bytes(self._start[self._header.length :]), bytearray()
            self._feed_payload(self._header, chunk)

    def _read_header(self) -> _MakeselfHeader | None:
        """Return the header, or None if more bytes are needed."""
        begins = self._start.startswith(_START) and b"akeself" in self._start[:_MARK_WITHIN]
        if not begins and len(self._start) >= _MARK_WITHIN:
            raise InvalidArchiveError(self._name, "is not a makeself script", hint=_HINT)
        lines, sizes = _lines.search(self._start), _sizes.search(self._start)
        if begins and lines and sizes:
            length = _end_of_line(self._start, int(lines[1] or lines[2]))
            if length is not None:
                hashes = _hashes.search(self._start)
                stated = tuple(map(int, sizes[1].split()))
                if sum(stated) > _PARTS_LIMIT:
                    reason = f"its script states more than {_PARTS_LIMIT:,} bytes"
                    raise InvalidArchiveError(self._name, reason)
                return _MakeselfHeader(
                    length, stated, tuple(hashes[1].decode().split()) if hashes else ()
                )
        if len(self._start) > _HEADER_LIMIT:
            raise InvalidArchiveError(
                self._name, f"its makeself script is larger than {_HEADER_LIMIT:,} bytes"
            )
        return None

    def _feed_payload(self, header: _MakeselfHeader, chunk: bytes) -> None:
        self._received += len(chunk)
        while chunk and self._left:
            size, md5 = self._left[0]
            part, chunk = chunk[:size], chunk[size:]
            md5.update(part)
            self._left[0] = (size - len(part), md5)
            if len(part) == size:
                self._left.pop(0)
        if chunk:
            raise self._other_size(header, "at least ")

    def _other_size(self, header: _MakeselfHeader, bound: str) -> InvalidArchiveError:
        reason = (
            f"has {bound}{header.length + self._received:,} bytes, but its script states "
            f"{header.length + sum(header.sizes):,}"
        )
        return InvalidArchiveError(self._name, reason, hint=_HINT)


def _end_of_line(data: bytearray, number: int) -> int | None:
    """Return the offset after a line, None if the data has fewer lines."""
    if data.count(b"\n") < number:
        return None
    end = -1
    for _ in range(number):
        end = data.find(b"\n", end + 1)
    return end + 1
