"""Strict reader of tar archives.

It supports the formats ustar, GNU and pax.

The standard library's tarfile is not used. If a pax header has one mebibyte, some of its versions
(that of Python 3.11.7) take minutes or all memory. It ends silently at a damaged header, and it
guesses if two headers contradict each other. This reader refuses the archive in all these cases.
Every header needs a valid checksum, and the archive must end with two blocks of NULs and nothing
but NULs after them.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cudaredist.archives.members import (
    Limits,
    Member,
    MemberKind,
    Members,
    NameLimits,
    text_of,
)
from cudaredist.archives.stream import Stream
from cudaredist.words import shown

_BLOCK = 512
_END = bytes(_BLOCK)
_PIECE = 1 << 20

# name, mode, size, checksum, type, link target, magic, prefix
_HEADER = struct.Struct("100s8s16x12s12x8sc100s8s80x155s12x")
_CHECKSUM = slice(148, 156)
_SIGNED = struct.Struct("512b")
_POSIX = b"ustar\x0000"
_POSITIVE, _NEGATIVE = 0x80, 0xFF

_KINDS: Mapping[bytes, MemberKind] = {
    b"\0": "file",
    b"0": "file",
    b"7": "file",
    b"1": "hardlink",
    b"2": "symlink",
    b"5": "directory",
    b"D": "directory",
}
"""The kinds of types. All others are `other`."""
_WITHOUT_CONTENT = frozenset({b"1", b"2", b"3", b"4", b"5", b"6"})
"""Types without content, even if their header states a size."""
_OLD_FILES = frozenset({b"\0", b"0"})
_LABEL = b"V"
_LONG = {b"L": "path", b"K": "linkpath"}
_PAX = frozenset({b"x", b"X"})
_PAX_FOR_ALL = b"g"
_SPARSE = b"S"
_EXTENSIONS = frozenset({*_LONG, *_PAX, _PAX_FOR_ALL, _SPARSE})
_FIELDS = frozenset({"path", "linkpath", "size"})
_MODE = 0o7777
_SIZE_DIGITS = 20
_LENGTH_DIGITS = 7
"""Maximum digits of a pax record's length, more than the limit of headers allows."""


class _TarHeader(NamedTuple):
    name: bytes
    mode: int
    size: int
    type: bytes
    target: bytes


class TarReader:
    """Reader of a tar archive."""

    def __init__(self, stream: Stream, limits: Limits) -> None:
        self._stream = stream
        self._limits = limits
        self._names = NameLimits(stream.where, limits)
        self._index = 0
        """The number of headers of members so far."""
        self._left = 0
        """Unread bytes of the current member's content."""

    def members(self) -> Members:
        """Yield each member with the chunks of its content."""
        stream = self._stream
        while (header := self._header()) is not None:
            self._index += 1
            if header.type == _LABEL:
                # The name of a tape is not a member.
                self._names.count_member(header.name)
                stream.skip(header.size + _padding(header.size))
                continue
            member = self._member(header)
            size = 0 if header.type in _WITHOUT_CONTENT else header.size
            self._left = size
            if member.kind == "file":
                yield member, self._content(self._index)
            else:
                # Content of an unknown type is skipped, because its meaning is unknown.
                yield member, iter(())
            stream.skip(self._left + _padding(size))
        self._expect_end()

    def _content(self, index: int) -> Iterator[bytes]:
        while True:
            if self._index != index:
                raise RuntimeError("the content was read after a later member")
            if not self._left:
                return
            piece = self._stream.piece(self._left)
            if not piece:
                self._stream.refuse("is truncated in a member")
            self._left -= len(piece)
            yield piece

    def _member(self, header: _TarHeader) -> Member:
        name = text_of(header.name)
        kind = _KINDS.get(header.type, "other")
        if kind == "directory" or (header.type in _OLD_FILES and name.endswith("/")):
            # Before tar had a type for directories, it marked them with a slash.
            kind, name = "directory", name.rstrip("/")
            if header.type in _OLD_FILES and header.size:
                self._stream.refuse(f"{shown(name)} is a directory with content")
        is_link = kind in {"symlink", "hardlink"}
        self._names.count_member(header.name)
        if is_link:
            self._names.count_name(header.target)
        return Member(
            name=name,
            kind=kind,
            mode=header.mode,
            size=header.size if kind == "file" else 0,
            target=text_of(header.target) if is_link else None,
        )

    def _header(self) -> _TarHeader | None:
        """Read a member's headers, or return None at the end.

        Headers with long names and attributes are included. The sum of their sizes is limited,
        because each of them may be followed by another.
        """
        stream = self._stream
        changes: dict[str, bytes] = {}
        begin = stream.position
        while True:
            header = self._block()
            if header is None:
                if changes:
                    stream.refuse("ends with a long name or size that has no member")
                return None
            if header.type not in _EXTENSIONS:
                return self._changed(header, changes)
            if stream.position - begin + header.size > self._limits.header:
                stream.refuse(f"a member has more than {self._limits.header:,} bytes of headers")
            extension = self._extension(header)
            if extension.keys() & changes.keys():
                stream.refuse("a member has two long names or sizes")
            changes |= extension

    def _extension(self, header: _TarHeader) -> dict[str, bytes]:
        """Read an extension header's changes to the next header."""
        stream = self._stream
        if header.type == _SPARSE:
            stream.refuse(f"{shown(text_of(header.name))} is sparse, which is not supported")
        body = stream.read(header.size)
        stream.skip(_padding(header.size))
        if header.type in _LONG:
            return {_LONG[header.type]: body.partition(b"\0")[0]}
        records = self._records(body)
        if records and header.type == _PAX_FOR_ALL:
            stream.refuse("has a name or size for all members")
        return records

    def _changed(self, header: _TarHeader, changes: dict[str, bytes]) -> _TarHeader:
        if not changes:
            return header
        size = header.size
        if "size" in changes:
            if not changes["size"].isdigit() or len(changes["size"]) > _SIZE_DIGITS:
                self._stream.refuse(f"a member has the size {shown(text_of(changes['size']))}")
            size = int(changes["size"])
        name, target = changes.get("path", header.name), changes.get("linkpath", header.target)
        return header._replace(name=name, target=target, size=size)

    def _block(self) -> _TarHeader | None:
        """Read the header in the next block, or return None for a block of NULs."""
        stream = self._stream
        begin = stream.position
        block = stream.read(_BLOCK)
        name, mode, size, checksum, kind, target, magic, prefix = _HEADER.unpack(block)
        if block == _END:
            return None
        # Some old programs add up signed bytes.
        if _parsed(checksum) not in {_sum(block), _sum(_SIGNED.unpack(block))}:
            damaged = f"the header at byte {begin:,} is damaged"
            stream.refuse(damaged if begin else "is not a tar archive")
        name = name.partition(b"\0")[0]
        # In GNU's format, these bytes are not a prefix.
        if magic == _POSIX and (front := prefix.partition(b"\0")[0]):
            name = front + b"/" + name
        return _TarHeader(
            name=name,
            mode=self._number(mode, "mode") & _MODE,
            size=self._number(size, "size"),
            type=kind,
            target=target.partition(b"\0")[0],
        )

    def _number(self, field: bytes, what: str) -> int:
        number = _parsed(field)
        if number is None:
            self._stream.refuse(f"a header has {shown(text_of(field))} as its {what}")
        if number < 0:
            self._stream.refuse(f"a header has a negative {what}")
        return number

    def _records(self, body: bytes) -> dict[str, bytes]:
        """Read pax records, each `<length> <key>=<value>` and a newline.

        Only records of supported fields are returned.
        """
        records: dict[str, bytes] = {}
        start = 0
        while start < len(body):
            digits, space, _ = body[start : start + _LENGTH_DIGITS + 1].partition(b" ")
            end = start + int(digits) if space and digits.isdigit() else 0
            key, equals, value = body[start + len(digits) + 1 : end].partition(b"=")
            if not equals or end > len(body) or value[-1:] != b"\n":
                self._stream.refuse("has a damaged pax header")
            name = text_of(key)
            if name.startswith("GNU.sparse."):
                self._stream.refuse("has a sparse member, which is not supported")
            if name in _FIELDS:
                if name in records:
                    self._stream.refuse("a member has two long names or sizes")
                records[name] = value[:-1]
            start = end
        return records

    def _expect_end(self) -> None:
        """Read and verify the rest of the archive.

        The first block of the end mark was read before.
        """
        stream = self._stream
        stream_end = stream.read(_BLOCK)
        while stream_end:
            if stream_end.count(0) != len(stream_end):
                stream.refuse("has extra data after its end, or a damaged header")
            stream_end = stream.piece(_PIECE)


def _padding(size: int) -> int:
    """Return the number of bytes between content of this size and the next block."""
    return -size % _BLOCK


def _sum(block: Sequence[int]) -> int:
    """Return the checksum of a header, with blanks in place of the checksum."""
    return sum(block) - sum(block[_CHECKSUM]) + 8 * 0x20


def _parsed(field: bytes) -> int | None:
    """Parse a number in octal digits or base 256.

    Returns None if it is invalid.
    """
    if field[0] in {_POSITIVE, _NEGATIVE}:
        return int.from_bytes(field[1:], "big", signed=field[0] == _NEGATIVE)
    digits = field.partition(b"\0")[0].strip(b" ")
    return None if digits.strip(b"01234567") else int(digits or b"0", 8)
