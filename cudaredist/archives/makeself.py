"""Self-extracting archives of makeself: a shell script, followed by compressed files.

Nothing is executed. The script's variables state the number of its lines, and the size and MD5 of
each file after it. Format: makeself 2.1 to 2.5, `makeself-header.sh`.
"""

import hashlib
import re
from collections.abc import Iterable

from cudaredist.archives.stream import Stream
from cudaredist.errors import IntegrityError

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


def check_makeself(name: str, chunks: Iterable[bytes]) -> None:
    """Read an archive once, in chunks of any size, and verify its size and the MD5 of each part.

    Raises `InvalidArchiveError` for a file that is not a makeself archive, or was cut or extended,
    and `IntegrityError` for other bytes.
    """
    stream = Stream(name, chunks)
    length, sizes, hashes = _header(stream)
    stated = length + sum(sizes)
    stream.skip(length)
    digests = []
    for size in sizes:
        part, left = hashlib.md5(usedforsecurity=False), size
        while left and (piece := stream.piece(left)):
            part.update(piece)
            left -= len(piece)
        digests.append(part.hexdigest())
    is_longer = bool(stream.ahead(1))
    if stream.position != stated or is_longer:
        actual = f"at least {stream.position + 1:,}" if is_longer else f"{stream.position:,}"
        stream.refuse(f"has {actual} bytes, but its script states {stated:,}", _HINT)
    for digest, md5 in zip(digests, hashes, strict=False):
        if md5 not in {_NO_HASH, digest}:
            message = f"{name}: the MD5 is {digest}, and its script states {md5}"
            raise IntegrityError(message, hint=_HINT)


def _header(stream: Stream) -> tuple[int, list[int], list[str]]:
    """Return the script's length, and the files' sizes and MD5, without advancing the stream."""
    # The size doubles, so that the time for a header is linear in its length.
    size = _MARK_WITHIN
    while True:
        start = stream.ahead(size)
        begins = start.startswith(_START) and b"akeself" in start[:_MARK_WITHIN]
        if not begins and len(start) >= _MARK_WITHIN:
            stream.refuse("is not a makeself script", _HINT)
        lines, sizes = _lines.search(start), _sizes.search(start)
        length = _end_of_line(start, int(lines[1] or lines[2])) if begins and lines else None
        if sizes and length is not None:
            hashes, stated = _hashes.search(start), list(map(int, sizes[1].split()))
            if sum(stated) > _PARTS_LIMIT:
                stream.refuse(f"its script states more than {_PARTS_LIMIT:,} bytes")
            return length, stated, hashes[1].decode().split() if hashes else []
        if len(start) > _HEADER_LIMIT:
            stream.refuse(f"its makeself script is larger than {_HEADER_LIMIT:,} bytes")
        if len(start) < size:
            stream.refuse("is truncated: its makeself script has no end", _HINT)
        size *= 2


def _end_of_line(data: bytes, number: int) -> int | None:
    """Return the offset after a line, None if the data has fewer lines."""
    if data.count(b"\n") < number:
        return None
    # A list of the lines of a hostile script would need a hundred times its size.
    end = -1
    for _ in range(number):
        end = data.find(b"\n", end + 1)
    return end + 1
