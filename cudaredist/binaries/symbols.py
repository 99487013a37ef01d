"""The dynamic symbols of one file, packed into little text.

A library may export 50,000 names, and an archive may contain hundreds of libraries. So the symbols
of a file are kept as one compressed text: a line for each group with the same properties, and
below it the names of the group.
"""

import binascii
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from cudaredist.binaries.file_content import UnreadableError

_TAB, _END = "\t", "\n"
_LEVEL = 4
"""The compression level. It takes half the time of level 6, for 7 % more bytes."""
_SORTED = 4096
"""Names that are sorted together."""
_UNPACKED_LIMIT = 64 << 20
"""The most bytes of a packed text; the readers write half of it at most."""
_PIECE = 16 << 10
"""Packed bytes that are unpacked at a time."""

SYMBOLS = "symbols"
"""The name of the fact, as far as it could not be read."""
DEFINED, UNDEFINED = "defined", "undefined"
NEEDED_VERSIONS, DEFINED_VERSIONS = "needed-versions", "defined-versions"
EXPORTED, IMPORTED = "exported", "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolTable:
    """The dynamic symbols of an ELF file, or the exports and imports of a PE image."""

    exports: int
    """Number of symbols that the file defines."""
    imports: int
    """Number of symbols that the file takes from other files."""
    packed: str
    """All of them; `unpack_groups` reads it."""


class Group(NamedTuple):
    """Names with the same properties."""

    kind: str
    """`defined`, `undefined`, `needed-versions`, `defined-versions`; `exported`, `imported`."""
    properties: tuple[str, ...]
    """For each kind, in the order of its `*_group` function's parameters."""
    names: tuple[str, ...]


def pack_groups(groups: Iterable[tuple[tuple[str, ...], Iterable[bytes]]]) -> str:
    """Pack groups: of each the kind with the properties, and the names.

    The names of large groups are sorted part by part, so that they need not all be in memory.
    """
    packer = zlib.compressobj(_LEVEL)
    parts = []
    for properties, names in groups:
        header = _TAB + _TAB.join(properties) + _END
        parts.append(packer.compress(header.encode()))
        left = iter(names)
        while part := sorted(islice(left, _SORTED)):
            parts.append(packer.compress(_lines(part)))
    parts.append(packer.flush())
    return binascii.b2a_base64(b"".join(parts), newline=False).decode()


def unpack_groups(packed: str) -> Iterator[Group]:
    """Yield the groups of a packed text, large ones in parts.

    Nothing is yielded after damaged text.
    """
    header = ""
    for text in _unpacked_texts(packed):
        # A block may begin inside a group, whose header is in an earlier block.
        rest, *groups = f"{_END}{text}".split(_END + _TAB)
        for group in (header + rest, *groups):
            header, _, names = group.partition(_END)
            if header and names:
                kind, *properties = header.split(_TAB)
                yield Group(kind, tuple(properties), tuple(names.split(_END)))


def _unpacked_texts(packed: str) -> Iterator[str]:
    """Yield blocks of complete lines of a packed text, without the last line end."""
    unpacker = zlib.decompressobj()
    room, rest = _UNPACKED_LIMIT, b""
    with suppress(ValueError, zlib.error):
        data = binascii.a2b_base64(packed)
        for at in range(0, len(data), _PIECE):
            part = unpacker.decompress(data[at : at + _PIECE])
            room -= len(part)
            if room < 0:
                return
            text, _, rest = (rest + part).rpartition(b"\n")
            if text:
                yield text.decode(errors="replace")


def unreadable(reason: str) -> UnreadableError:
    """Return the error for symbols that cannot be read."""
    return UnreadableError(f"{SYMBOLS} not read: {reason}")


def plain_name(raw: bytes) -> str:
    """Return a name as printable text, other characters with backslashes."""
    text = raw.decode(errors="backslashreplace")
    if text.isprintable():
        return text
    return text.encode("unicode_escape").decode("ascii")


def _lines(names: list[bytes]) -> bytes:
    """Return a line for each name."""
    data = b"\n".join([*names, b""])
    # Other bytes than those of UTF-8 become surrogates, which are not printable.
    text = data.decode(errors="surrogateescape")
    if text.count(_END) == len(names) and text.replace(_END, "").isprintable():
        return data
    return "".join(plain_name(name) + _END for name in names).encode()
