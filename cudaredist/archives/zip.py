"""Strict streaming reader of zip archives.

A zip describes each member twice: before its content and in the directory at the end. If the two
differ, readers of one see a different archive than readers of the other. Here both must match one
to one, and no other bytes are allowed before, between or after them. The directory adds modes and
links, because the headers lack them.
"""

import stat
import struct
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import NamedTuple, NoReturn

from cudaredist.archives.decompress import Budget, inflated
from cudaredist.archives.members import Limits, Member
from cudaredist.archives.stream import Stream, StreamReader, text_of
from cudaredist.errors import shown

_LOCAL, _ENTRY, _DESCRIPTOR = b"PK\3\4", b"PK\1\2", b"PK\7\b"
_END64, _LOCATOR64, _END = b"PK\6\6", b"PK\6\7", b"PK\5\6"
_SIGNATURE_SIZE = 4
_SIGNATURE_START = b"PK"

# Each structure begins with its signature. Skipped fields are in brackets.
# (version), flags, method, (time, date), sum, packed and unpacked size, lengths of name and extra.
_LOCAL_HEADER = struct.Struct("<4s2x2H4x3I2H")
# (version), system, (version), flags, method, (time, date), sum, packed and unpacked size, lengths
# of name, extra and comment, disk, (internal) and external attributes, offset.
_DIRECTORY_ENTRY = struct.Struct("<4sxB2x2H4x3I4H2x2I")
# Length of the rest, (versions), two disks, members on this disk and in all, size, offset.
_END64_RECORD = struct.Struct("<4sQ4x2I4Q")
_END64_UNCOUNTED = 12
# Disk of that record, its offset, number of disks.
_LOCATOR64_RECORD = struct.Struct("<4sIQI")
# Two disks, members on this disk and in all, size, offset, length of the comment.
_END_RECORD = struct.Struct("<4s4H2IH")

_EXTRA = struct.Struct("<2H")
_PAIR32, _PAIR64 = struct.Struct("<3I"), struct.Struct("<I2Q")
_STATED = struct.Struct("<2HI2Q")
_WIDE = 8
_ZIP64 = 1
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF

_STORED, _DEFLATED = 0, 8
_METHODS = {
    1: "shrink",
    6: "implode",
    9: "deflate64",
    12: "bzip2",
    14: "lzma",
    93: "zstd",
    95: "xz",
    97: "wavpack",
    98: "ppmd",
    99: "aes",
}

_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13
_PATCHED = 1 << 5
_SIZES_FOLLOW = 1 << 3
_UTF8 = 1 << 11

_UNIX_SYSTEMS = frozenset({3, 19})
_UNIX = 16
"""The lowest bit of the Unix mode in external attributes."""
_MODE = 0o7777

_DIGEST = 16
_UNSIZED, _CONFIRMED = 1, 2
"""States of a member: its header does not state its size, and its directory entry was read."""
_SMALL_CONTENTS = 16 << 20
"""Maximum bytes of small contents in memory. The directory shows later if they are links."""
_OVERHEAD = 150
"""Additional bytes in memory for each small content."""
_DIRECTORY_LIMIT = 256 << 20


class _ZipHeader(NamedTuple):
    """The common fields of a local header and a directory entry."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int

    @property
    def text(self) -> str:
        return text_of(self.name) if self.flags & _UTF8 else self.name.decode("cp437")

    def digest(self) -> bytes:
        """Return a digest of the fields that must match.

        Up to a million digests are in memory until the end.
        """
        numbers = _STATED.pack(self.flags & _UTF8, self.method, self.crc, self.packed, self.size)
        return blake2b(numbers + self.name, digest_size=_DIGEST).digest()


class ZipReader(StreamReader):
    """Reader of a zip archive.

    Modes and links are corrections from its end.
    """

    def __init__(self, stream: Stream, budget: Budget, limits: Limits) -> None:
        super().__init__(stream, limits)
        self._budget = budget
        # One entry for each member, in compact form, because there may be a million.
        self._offsets = array("Q")
        self._digests = bytearray()
        self._states = bytearray()
        self._small_contents: dict[int, bytes] = {}
        self._memory = _SMALL_CONTENTS

    def _read(self) -> Generator[tuple[Member, Iterator[bytes]], None, None]:
        stream = self._stream
        if stream.ahead(_SIGNATURE_SIZE) not in {_LOCAL, _END, _END64}:
            stream.refuse("is not a zip archive" if stream.ahead(1) else "is empty")
        while stream.ahead(_SIGNATURE_SIZE) == _LOCAL:
            self._offsets.append(stream.position)
            header = self._local_header()
            content = self._content(header)
            yield _member(header), content
            for _ in content:
                pass
            if len(self._states) != len(self._offsets):
                self._refuse(header, "was not read to its end")
        directory = stream.position
        while stream.ahead(_SIGNATURE_SIZE) == _ENTRY:
            self._confirm()
            if stream.position - directory > _DIRECTORY_LIMIT:
                stream.refuse(f"its directory takes more than {_DIRECTORY_LIMIT:,} bytes")
        missing = self._states.count(0) + self._states.count(_UNSIZED)
        if missing:
            stream.refuse(f"{missing:,} members are not in its directory")
        self._end(directory)

    # -- members

    def _local_header(self) -> _ZipHeader:
        fields = _LOCAL_HEADER.unpack(self._stream.read(_LOCAL_HEADER.size))
        _, *numbers, name_length, extra_length = fields
        header, _, _ = self._header(name_length, extra_length, 0, *numbers)
        self._count_member(header.name)
        return header

    def _header(
        self, name_length: int, extra_length: int, offset: int, *numbers: int
    ) -> tuple[_ZipHeader, int, bool]:
        """Read a name and extra fields, and check their header.

        Sizes and offset at their maximum are replaced by those of zip64. Also returns the offset,
        and whether there are fields of zip64.
        """
        header = _ZipHeader(self._stream.read(name_length), *numbers)
        if header.flags & _ENCRYPTED:
            self._refuse(header, "is encrypted")
        if header.flags & _PATCHED:
            self._refuse(header, "is a patch")
        if header.method not in {_STORED, _DEFLATED}:
            method = _METHODS.get(header.method, "unknown")
            self._refuse(header, f"is compressed by method {header.method} ({method})")
        wide = self._zip64(header, self._stream.read(extra_length))
        widened = [header.size, header.packed, offset]
        rest = wide or b""
        for index, number in enumerate(widened):
            if number == _FULL32:
                if len(rest) < _WIDE:
                    self._refuse(header, "lacks its zip64 sizes")
                widened[index] = int.from_bytes(rest[:_WIDE], "little")
                rest = rest[_WIDE:]
        size, packed, offset = widened
        return header._replace(packed=packed, size=size), offset, bool(wide)

    def _content(self, header: _ZipHeader) -> Iterator[bytes]:
        """Yield a member's content and verify it.

        It has to match the sizes and the checksum. `_read` always reads it to its end. Small
        contents stay in memory, because the directory may show later that they are link targets.
        """
        stream = self._stream
        sizes_follow = bool(header.flags & _SIZES_FOLLOW)
        begin = stream.position
        if header.method == _STORED:
            if header.packed != header.size:
                self._refuse(header, "is stored, but has two sizes")
            pieces = stream.pieces(header.size, "is truncated in a member")
        else:
            packed = None if sizes_follow else header.packed
            refuse = partial(self._refuse, header)
            pieces = inflated("deflate", stream, refuse, truncated="is truncated", size=packed)
        crc = size = 0
        beginning = bytearray()
        for piece in pieces:
            size += len(piece)
            self._budget.spend(len(piece))
            crc = zlib.crc32(piece, crc)
            if size <= self._limits.name:
                beginning += piece
            yield piece
        actual = header._replace(crc=crc, packed=stream.position - begin, size=size)
        if sizes_follow:
            if any(field not in {0, true} for field, true in zip(header, actual, strict=True)):
                self._refuse(header, "does not match its header")
            self._descriptor(actual)
        elif actual != header:
            self._refuse(header, "does not match its header")
        if header.name.endswith(b"/") and size:
            self._refuse(header, "is a directory with content")
        if 0 < size <= min(self._limits.name, self._memory - _OVERHEAD):
            self._memory -= size + _OVERHEAD
            self._small_contents[len(self._states)] = bytes(beginning)
        self._digests += actual.digest()
        self._states.append(_UNSIZED if sizes_follow else 0)

    def _descriptor(self, header: _ZipHeader) -> None:
        """Skip the checksum and sizes after the content.

        They may have a signature or not, and sizes of four or eight bytes. Their values are known,
        so the actual form can be recognized.
        """
        numbers = (header.crc, header.packed, header.size)
        pairs = (_PAIR64, _PAIR32) if max(numbers) <= _FULL32 else (_PAIR64,)
        forms = [pair.pack(*numbers) for pair in pairs]
        for form in [_DESCRIPTOR + form for form in forms] + forms:
            # A signature follows, of the next member or of the directory.
            if self._stream.ahead(len(form) + 2) == form + _SIGNATURE_START:
                self._stream.skip(len(form))
                return
        if header.method == _STORED and not header.size:
            self._refuse(header, "is stored without a size, so its end is unknown")
        self._refuse(header, "does not match its data descriptor")

    # -- the directory

    def _confirm(self) -> None:
        """Compare a directory entry with its member."""
        stream = self._stream
        fields = _DIRECTORY_ENTRY.unpack(stream.read(_DIRECTORY_ENTRY.size))
        _, system, *numbers, name, extra, comment, disk, attributes, short_offset = fields
        header, offset, is_zip64 = self._header(name, extra, short_offset, *numbers)
        stream.skip(comment)
        if disk and not (disk == _FULL16 and is_zip64):
            self._refuse(header, "is on another disk")
        index = bisect_left(self._offsets, offset)
        if index == len(self._offsets) or self._offsets[index] != offset:
            self._refuse(header, f"is in the directory, but not at byte {offset:,}")
        if self._states[index] & _CONFIRMED:
            self._refuse(header, "shares its content with another member")
        if self._digests[index * _DIGEST : (index + 1) * _DIGEST] != header.digest():
            self._refuse(header, "does not match its directory entry")
        mode = attributes >> _UNIX if system in _UNIX_SYSTEMS else 0
        if mode or self._states[index] & _UNSIZED:
            self.corrections[index] = self._corrected(header, mode, index)
        self._states[index] |= _CONFIRMED

    def _corrected(self, header: _ZipHeader, mode: int, index: int) -> Member:
        """Return a member with its mode. pip writes all types but folders as files."""
        member = _member(header)
        if member.kind == "file" and stat.S_ISLNK(mode):
            if header.size > self._limits.name:
                self._refuse(header, f"is a link with a target of {header.size:,} bytes")
            target = self._small_contents.get(index, b"")
            if len(target) != header.size:
                self._refuse(header, "is a link after too many small files")
            self._count_name(target)
            member = replace(member, kind="symlink", size=0, target=text_of(target))
        return replace(member, mode=mode & _MODE)

    def _end(self, directory: int) -> None:
        """Verify the records after the directory."""
        stream = self._stream
        true = (0, 0, len(self._states), len(self._states), stream.position - directory, directory)
        allowed = [{number} for number in true]
        here = stream.position
        if stream.ahead(_SIGNATURE_SIZE) == _END64:
            _, length, *numbers = _END64_RECORD.unpack(stream.read(_END64_RECORD.size))
            if tuple(numbers) != true or length != _END64_RECORD.size - _END64_UNCOUNTED:
                stream.refuse("its zip64 end record does not match its directory")
            locator = _LOCATOR64_RECORD.unpack(stream.read(_LOCATOR64_RECORD.size))
            if locator not in {(_LOCATOR64, 0, here, 1), (_LOCATOR64, 0, here, 0)}:
                stream.refuse("its zip64 locator does not match its zip64 end record")
            # If there is a zip64 end record, these numbers refer to it.
            full = (_FULL16, _FULL16, _FULL16, _FULL16, _FULL32, _FULL32)
            allowed = [{*numbers} for numbers in zip(true, full, strict=True)]
        signature, *numbers, comment_length = _END_RECORD.unpack(stream.read(_END_RECORD.size))
        if signature != _END:
            stream.refuse("has extra data between its directory and its end")
        if any(number not in those for number, those in zip(numbers, allowed, strict=True)):
            stream.refuse("its end record does not match its directory")
        # Other programs look for the last end record, so they would read another directory.
        if _END in stream.read(comment_length):
            stream.refuse("has a second end record in its comment")
        if stream.ahead(1):
            stream.refuse("has extra data after its end")

    # -- fields

    def _zip64(self, header: _ZipHeader, extra: bytes) -> bytes | None:
        """Return the extra field of zip64, if any.

        It contains sizes of eight bytes.
        """
        wide = None
        start = 0
        # Some programs write padding that is shorter than a field's head.
        while start + _EXTRA.size <= len(extra):
            kind, length = _EXTRA.unpack_from(extra, start)
            start += _EXTRA.size
            if start + length > len(extra) or (kind == _ZIP64 and wide is not None):
                self._refuse(header, "has damaged extra fields")
            if kind == _ZIP64:
                wide = extra[start : start + length]
            start += length
        return wide

    def _refuse(self, header: _ZipHeader, reason: str) -> NoReturn:
        self._stream.refuse(f"member {shown(header.text)} {reason}")


def _member(header: _ZipHeader) -> Member:
    if header.name.endswith(b"/"):
        return Member(name=header.text.rstrip("/"), kind="directory", mode=0, size=0)
    return Member(name=header.text, kind="file", mode=0, size=header.size)
