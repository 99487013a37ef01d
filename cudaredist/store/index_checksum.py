"""The checksum of an index, in the header of its SQLite file."""

import os
import zlib
from pathlib import Path
from typing import BinaryIO

_CHECKSUM = slice(60, 64)
"""The bytes of `user_version` in the header of an SQLite file."""
_CHUNK = 1 << 18
_verified: set[tuple[int, ...]] = set()
"""Files that this process has verified, by device, inode, size and time."""


def write_checksum(path: Path) -> None:
    """Write the checksum into a new index. Raises `OSError`."""
    with path.open("r+b") as file:
        checksum = _checksum(file)
        file.seek(_CHECKSUM.start)
        file.write(checksum)
    _verified.add(_identity(path.stat()))


def has_checksum(path: Path) -> bool:
    """Return whether an index is undamaged."""
    try:
        with path.open("rb") as file:
            identity = _identity(os.fstat(file.fileno()))
            if identity not in _verified:
                if file.read(_CHECKSUM.stop)[_CHECKSUM] != _checksum(file):
                    return False
                _verified.add(identity)
            return True
    except OSError:
        return False


def _checksum(file: BinaryIO) -> bytes:
    """Return the checksum of an index: the CRC-32 of all other bytes.

    A cryptographic hash would take longer than most queries, and nobody else can write the cache.
    """
    file.seek(0)
    checksum = zlib.crc32(file.read(_CHECKSUM.start))
    file.seek(_CHECKSUM.stop)
    while chunk := file.read(_CHUNK):
        checksum = zlib.crc32(chunk, checksum)
    return checksum.to_bytes(4, "big")


def _identity(about: os.stat_result) -> tuple[int, ...]:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
