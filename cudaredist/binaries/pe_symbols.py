"""The exports and imports of a PE image.

The tables contain the addresses of names.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from struct import Struct

from cudaredist.binaries.file_content import NAME_LIMIT, FileContent, UnreadableError
from cudaredist.binaries.symbols import (
    EXPORTED,
    IMPORTED,
    SYMBOLS,
    SymbolTable,
    pack_groups,
    plain_name,
    unreadable,
)

_EXPORT_DIRECTORY = Struct("<16xIIIIII")
_EXPORTS_LIMIT = 1 << 16
"""The most exports of one file: an ordinal has 16 bits."""
_IMPORTS_LIMIT = 1 << 16
_MISSING = f"{SYMBOLS} not read: a table is"
_PIECE = 4096
"""Bytes of one read from a table of imports. Only its end mark shows its size."""
_BYTES_LIMIT = 16 << 20
"""Maximum bytes of all names of one file."""


class PeSections:
    """The sections of one file by address."""

    def __init__(self, content: FileContent) -> None:
        self.content = content
        self._mapped: list[tuple[int, int, int]] = []

    def map(self, sections: Iterable[tuple[int, int, int]]) -> None:
        """Add the address, size and position in the file of each section."""
        self._mapped = sorted(sections)

    def place(self, address: int, missing: str) -> tuple[int, int]:
        """Map an address to a position and a size in the file.

        The size is the number of bytes from the address to its section's end. Raises
        `UnreadableError`, whose text begins with `missing`.
        """
        index = bisect_right(self._mapped, address, key=itemgetter(0)) - 1
        if index >= 0:
            start, size, offset = self._mapped[index]
            if address < start + size:
                return offset + address - start, start + size - address
        raise UnreadableError(f"{missing} not in any section")


class PeSymbols:
    """Reader of the symbols of one file."""

    def __init__(self, sections: PeSections) -> None:
        self._content, self._sections = sections.content, sections
        self.is_wide = False
        """Whether addresses have 64 bits."""
        self._room = _BYTES_LIMIT
        self._groups: dict[tuple[str, ...], list[bytes]] = defaultdict(list)
        self._exports = self._imports = 0

    def read_exports(self, address: int, size: int) -> None:
        """Read the exports from the directory at an address. Raises `UnreadableError`."""
        base, count, names_count, functions_at, names_at, ordinals_at = _EXPORT_DIRECTORY.unpack(
            self._table(address, _EXPORT_DIRECTORY.size)
        )
        if count > _EXPORTS_LIMIT or names_count > _EXPORTS_LIMIT:
            raise unreadable(f"more than {_EXPORTS_LIMIT:,} exports")
        addresses = _numbers("<I", self._table(functions_at, 4 * count))
        functions = {number: address for number, address in enumerate(addresses) if address}
        places = _numbers("<I", self._table(names_at, 4 * names_count))
        numbers = list(_numbers("<H", self._table(ordinals_at, 2 * names_count)))
        unnamed = functions.keys() - set(numbers)
        for place, number in [
            *zip(places, numbers, strict=True),
            *((0, number) for number in unnamed),
        ]:
            if number in functions:
                # The address of a forwarder is that of the name of a function in another DLL.
                is_forward = address <= functions[number] < address + size
                forward = plain_name(self._name(functions[number])) if is_forward else ""
                name = self._name(place) if number not in unnamed else b""
                self._groups[EXPORTED, forward].append(b"%b %d" % (name, base + number))
                self._exports += 1

    def read_imports(self, library: str, strength: str, address: int) -> None:
        """Read the imports from a DLL. Raises `UnreadableError`."""
        by_ordinal = 1 << (63 if self.is_wide else 31)
        for value in self._thunks(address):
            self._imports += 1
            if self._imports > _IMPORTS_LIMIT:
                raise unreadable(f"more than {_IMPORTS_LIMIT:,} imports")
            name = b"#%d" % (value & 0xFFFF) if value & by_ordinal else self._name(value + 2)
            self._groups[IMPORTED, library, strength].append(name)

    def table(self) -> SymbolTable:
        """Return the symbols."""
        packed = pack_groups(sorted(self._groups.items()))
        return SymbolTable(exports=self._exports, imports=self._imports, packed=packed)

    def _thunks(self, address: int) -> Iterator[int]:
        """Yield the entries of a table of imports up to its end mark."""
        form, width = ("<Q", 8) if self.is_wide else ("<I", 4)
        while True:
            room = min(self._sections.place(address, _MISSING)[1], _PIECE)
            size = room - room % width
            if size == 0:
                raise unreadable("a table has no end")
            for value in _numbers(form, self._table(address, size)):
                if value == 0:
                    return
                yield value
            address += size

    def _table(self, address: int, size: int) -> bytes:
        if size == 0:
            return b""
        position, room = self._sections.place(address, _MISSING)
        if size > room:
            raise unreadable("a table is longer than its section")
        return self._content.table(position, size, SYMBOLS)

    def _name(self, address: int) -> bytes:
        position, room = self._sections.place(address, _MISSING)
        name, nul, _ = self._content.read(position, min(room, NAME_LIMIT + 1)).partition(b"\0")
        if not nul:
            raise unreadable("a name has no end")
        self._room -= len(name)
        if self._room < 0:
            raise unreadable("their names are too long")
        return name


def _numbers(form: str, data: bytes) -> Iterator[int]:
    """Yield the numbers of a table."""
    return (value for (value,) in Struct(form).iter_unpack(data))
