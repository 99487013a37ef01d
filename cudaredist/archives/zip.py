"""Reader of zip archives with the standard library's zipfile, and limits.

The archive is what its directory at the end describes, as for pip. zipfile compares each member's
name with the one before its content, and verifies the content's checksum.
"""

import errno
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, BinaryIO, NoReturn

from cudaredist.archives.members import Limits, Member, Members, NameLimits, file_size, text_of
from cudaredist.errors import InvalidArchiveError
from cudaredist.words import shown

ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)
"""The errors that zipfile raises for an invalid archive, besides `OSError`."""

_CHUNK = 256 << 10
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13
_UTF8 = 1 << 11
_LOCAL_HEADER = 30
"""Minimum bytes before a member's content."""
_UNIX_SYSTEMS = frozenset({3, 19})
_UNIX = 16
"""The lowest bit of the Unix mode in external attributes."""
_MODE = 0o7777

# Signature, (disks), members, (size of the directory and its offset), length of the comment.
_END_RECORD = struct.Struct("<4s6xH8xH")
_END = b"PK\5\6"
_LONGEST_COMMENT = (1 << 16) - 1
_UNCOUNTED = 0xFFFF
"""The number of members if a zip64 record states it."""


class _BoundedFile:
    """An open file for zipfile, which reads a whole directory at once."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file, self._limit = file, limit
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > self._limit:
            raise ValueError(f"its directory takes more than {self._limit:,} bytes")
        return self._file.read(size)


class ZipReader:
    """Reader of a zip archive."""

    def __init__(self, name: str, file: BinaryIO, limits: Limits) -> None:
        self._name = name
        self._file = file
        self._limits = limits
        self._names = NameLimits(name, limits)

    def members(self) -> Members:
        """Yield each member with the chunks of its content, in the order of the contents."""
        with self._refusing():
            size = file_size(self._file)
            stated = self._check_end(size)
            bounded: Any = _BoundedFile(self._file, self._limits.directory)
            archive = zipfile.ZipFile(bounded)
        with archive:
            infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
            if stated not in {len(infos), _UNCOUNTED}:
                self._refuse(f"has {len(infos):,} members, but its end record states {stated:,}")
            self._check_directory(infos, archive.start_dir, size)
            for info in infos:
                chunks = self._content(archive, info)
                if _is_link(info):
                    target = self._target(info, chunks)
                    yield _member(info, target), iter((target,))
                    continue
                yield _member(info), chunks
                for _ in chunks:
                    pass

    def _check_end(self, size: int) -> int:
        """Check the record at the end, and return the stated number of members."""
        self._file.seek(max(0, size - _END_RECORD.size - _LONGEST_COMMENT))
        tail = self._file.read()
        at = tail.rfind(_END, 0, len(tail) - _END_RECORD.size + len(_END))
        if at < 0:
            self._refuse("is not a zip archive, or is truncated" if tail else "is empty")
        _, members, comment = _END_RECORD.unpack_from(tail, at)
        if at + _END_RECORD.size + comment != len(tail):
            self._refuse("has extra data after its end, or is truncated")
        return int(members)

    def _check_directory(self, infos: Sequence[zipfile.ZipInfo], directory: int, size: int) -> None:
        """Check all members before the first one is read."""
        starts = [*(info.header_offset for info in infos), directory]
        if starts[0] != 0:
            self._refuse("is not a zip archive: other data precede it")
        for info, (start, end) in zip(infos, pairwise(starts), strict=True):
            name = info.orig_filename
            self._names.count_member(name.encode("utf-8" if info.flag_bits & _UTF8 else "cp437"))
            if start + _LOCAL_HEADER + info.compress_size > end:
                self._refuse_member(info, "shares its content with another member")
            if info.flag_bits & _ENCRYPTED:
                self._refuse_member(info, "is encrypted")
            if info.compress_type not in _METHODS:
                self._refuse_member(info, f"is compressed by method {info.compress_type}")
            if name.endswith("/") and info.file_size:
                self._refuse_member(info, "is a directory with content")
        ratio, unpacked = self._limits.ratio, sum(info.file_size for info in infos)
        if unpacked > max(self._limits.floor, ratio * size):
            self._refuse(f"unpacks to more than {ratio} times its {size:,} bytes")

    def _content(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield a member's content, and verify its size and checksum."""
        size = 0
        with self._refusing(info):
            content = archive.open(info)
        with content:
            while True:
                with self._refusing(info):
                    chunk = content.read(_CHUNK)
                if not chunk:
                    break
                size += len(chunk)
                yield chunk
        if size != info.file_size:
            self._refuse_member(info, f"has {size:,} bytes instead of {info.file_size:,}")

    def _target(self, info: zipfile.ZipInfo, chunks: Iterator[bytes]) -> bytes:
        """Return the target of a link."""
        if info.file_size > self._limits.name:
            self._refuse_member(info, f"is a link with a target of {info.file_size:,} bytes")
        target = b"".join(chunks)
        self._names.count_name(target)
        return target

    @contextmanager
    def _refusing(self, info: zipfile.ZipInfo | None = None) -> Iterator[None]:
        """Refuse the archive or a member after an error of zipfile."""
        try:
            yield
        except ZIP_ERRORS as error:
            reason = str(error) or type(error).__name__
        except OSError as error:
            # zipfile goes to the offsets that an archive states, even to negative ones.
            if error.errno != errno.EINVAL:
                raise
            reason = "an offset is outside the file"
        else:
            return
        if info is not None:
            self._refuse_member(info, f"is damaged: {reason}")
        self._refuse(f"is not a valid zip: {reason}")

    def _refuse_member(self, info: zipfile.ZipInfo, reason: str) -> NoReturn:
        self._refuse(f"member {shown(info.orig_filename)} {reason}")

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidArchiveError(self._name, reason)


def _is_link(info: zipfile.ZipInfo) -> bool:
    """Check if a member is a link. pip writes all other types but folders as files."""
    return stat.S_ISLNK(_unix_mode(info)) and not info.orig_filename.endswith("/")


def _unix_mode(info: zipfile.ZipInfo) -> int:
    return info.external_attr >> _UNIX if info.create_system in _UNIX_SYSTEMS else 0


def _member(info: zipfile.ZipInfo, target: bytes | None = None) -> Member:
    mode = _unix_mode(info) & _MODE
    name = info.orig_filename
    if name.endswith("/"):
        return Member(name=name.rstrip("/"), kind="directory", mode=mode, size=0)
    if target is not None:
        return Member(name=name, kind="symlink", mode=mode, size=0, target=text_of(target))
    return Member(name=name, kind="file", mode=mode, size=info.file_size)
