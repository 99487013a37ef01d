"""Self-extracting archives of makeself: a shell script, followed by compressed files.

Nothing is executed. The script's variables state the number of its lines, and the size and MD5 of
each file after it. Format: makeself 2.1 to 2.5, `makeself-header.sh`.
"""

import hashlib
import re
from typing import BinaryIO, NoReturn

from cudaredist.archives.members import file_size
from cudaredist.errors import IntegrityError, InvalidArchiveError

_HEADER_LIMIT = 4 << 20
"""Maximum bytes of a script. Those of NVIDIA have some 500 lines and a license."""
_START = b"#!/bin/sh"
_MARK_WITHIN = 4096
_NO_HASH = "0" * 32
_HINT = "download the file again"
_CHUNK = 256 << 10

_lines = re.compile(rb'^skip="?([0-9]{1,9})"?$|head -n ([0-9]{1,9}) "\$0"', re.MULTILINE)
_sizes = re.compile(rb'^filesizes="([0-9 ]{1,500})"$', re.MULTILINE)
_hashes = re.compile(rb'^MD5="([0-9a-f ]{1,500})"$', re.MULTILINE)


def check_makeself(name: str, file: BinaryIO) -> None:
    """Verify the size of an archive and the MD5 of each part.

    Raises `InvalidArchiveError` for a file that is not a makeself archive, or was cut or extended,
    and `IntegrityError` for other bytes.
    """
    actual = file_size(file)
    length, sizes, hashes = _header(name, file.read(_HEADER_LIMIT))
    stated = length + sum(sizes)
    if actual != stated:
        _refuse(name, f"has {actual:,} bytes, but its script states {stated:,}")
    file.seek(length)
    for size, md5 in zip(sizes, hashes, strict=False):
        actual_md5 = _md5(file, size)
        if md5 not in {_NO_HASH, actual_md5}:
            message = f"{name}: the MD5 is {actual_md5}, and its script states {md5}"
            raise IntegrityError(message, hint=_HINT)


def _md5(file: BinaryIO, size: int) -> str:
    """Return the MD5 of the next bytes of a file."""
    digest = hashlib.md5(usedforsecurity=False)
    while size and (chunk := file.read(min(size, _CHUNK))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()


def _header(name: str, start: bytes) -> tuple[int, list[int], list[str]]:
    """Return the script's length, and the files' sizes and MD5."""
    if not start.startswith(_START) or b"akeself" not in start[:_MARK_WITHIN]:
        _refuse(name, "is not a makeself script, or is truncated")
    lines, sizes, hashes = _lines.search(start), _sizes.search(start), _hashes.search(start)
    length = None if lines is None else _end_of_line(start, int(lines[1] or lines[2]))
    if sizes is None or length is None:
        if len(start) == _HEADER_LIMIT:
            _refuse(name, f"its makeself script is larger than {_HEADER_LIMIT:,} bytes")
        _refuse(name, "is truncated: its makeself script has no end")
    stated_sizes = [int(size) for size in sizes[1].split()]
    stated_hashes = [] if hashes is None else hashes[1].decode().split()
    return length, stated_sizes, stated_hashes


def _end_of_line(data: bytes, number: int) -> int | None:
    """Return the offset after a line, None if the data has fewer lines."""
    if data.count(b"\n") < number:
        return None
    # A list of the lines of a hostile script would need a hundred times its size.
    end = -1
    for _ in range(number):
        end = data.find(b"\n", end + 1)
    return end + 1


def _refuse(name: str, reason: str) -> NoReturn:
    raise InvalidArchiveError(name, reason, hint=_HINT)
