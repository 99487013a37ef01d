"""The exports and imports of a PE image.

The tables contain the addresses of names.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct

from cudaredist.binaries.file_content import NAME_LIMIT, FileContent
from cudaredist.binaries.symbols import (
    EXPORTED,
    IMPORTED,
    SYMBOLS,
    SymbolTable,
    pack_groups,
    plain_name,
    unreadable,
)

DELAYED = 13
"""The number of the directory of what is loaded at its first use."""
_EXPORT_DIRECTORY = Struct("<16xIIIIII")
_EXPORTS_LIMIT = 1 << 16
"""The most exports of one file: an ordinal has 16 bits."""
_IMPORTS_LIMIT = 1 << 16
_PIECE = 4096
"""Bytes of one read from a table of imports. Only its end mark shows its size."""
_BYTES_LIMIT = 16 << 20
"""Maximum bytes of all names of one file."""

_Place = Callable[[int], tuple[int, int] | None]


class PeSymbols:
    """Reader of the symbols of one file."""

    def __init__(self, content: FileContent, place: _Place, *, is_wide: bool) -> None:
        self._content, self._place = content, place
        self._thunk = Struct("<Q" if is_wide else "<I")
        self._by_ordinal = 1 << (63 if is_wide else 31)
        self._room = _BYTES_LIMIT
        self._functions: dict[int, int] = {}
        """The addresses of exports, by their ordinals."""
        self._forwards = range(0)
        """The addresses of forwarders: names of functions in other DLLs."""
        self._exports: list[tuple[int, int]] = []
        """The addresses of names of exports, with the ordinals."""
        self._imports: dict[tuple[int, int], list[int]] = {}
        """The thunks of each DLL, by directory and position in it."""
        self._imports_left = _IMPORTS_LIMIT

    def read_exports(self, address: int, size: int) -> None:
        """Read the exports from the directory at an address. Raises `UnreadableError`."""
        self._forwards = range(address, address + size)
        base, functions, names, functions_at, names_at, ordinals_at = _EXPORT_DIRECTORY.unpack(
            self._table(address, _EXPORT_DIRECTORY.size)
        )
        if functions > _EXPORTS_LIMIT or names > _EXPORTS_LIMIT:
            raise unreadable(f"more than {_EXPORTS_LIMIT:,} exports")
        addresses = _numbers("<I", self._table(functions_at, 4 * functions))
        self._functions = {base + n: address for n, address in enumerate(addresses) if address}
        places = _numbers("<I", self._table(names_at, 4 * names))
        numbers = _numbers("<H", self._table(ordinals_at, 2 * names))
        self._exports = [(place, base + n) for place, n in zip(places, numbers, strict=True)]

    def read_imports(self, directory: int, tables: Sequence[int]) -> None:
        """Read the imports from each DLL of a directory. Raises `UnreadableError`."""
        for index, table in enumerate(tables):
            self._imports[directory, index] = list(self._thunks(table))

    def _thunks(self, address: int) -> Iterator[int]:
        """Yield the entries of a table of imports up to its end mark."""
        while True:
            place = self._place(address)
            room = 0 if place is None else min(place[1], _PIECE)
            size = room - room % self._thunk.size
            if size == 0:
                raise unreadable("a table is not in any section")
            for value in _numbers(self._thunk.format, self._table(address, size)):
                if value == 0:
                    return
                self._imports_left -= 1
                if self._imports_left < 0:
                    raise unreadable(f"more than {_IMPORTS_LIMIT:,} imports")
                yield value
            address += size

    def _table(self, address: int, size: int) -> bytes:
        if size == 0:
            return b""
        place = self._place(address)
        if place is None or size > place[1]:
            raise unreadable("a table is not in any section")
        return self._content.table(place[0], size, SYMBOLS)

    def _name(self, address: int) -> bytes:
        place = self._place(address)
        if place is None:
            raise unreadable("a name is not in any section")
        name, nul, _ = self._content.read(place[0], min(place[1], NAME_LIMIT + 1)).partition(b"\0")
        if not nul:
            raise unreadable("a name has no end")
        self._room -= len(name)
        if self._room < 0:
            raise unreadable("their names are too long")
        return name

    def table(self, libraries: Mapping[tuple[int, int], str]) -> SymbolTable:
        """Return the symbols with the names of DLLs. Raises `UnreadableError`."""
        groups: dict[tuple[str, ...], list[bytes]] = defaultdict(list)
        names = self._names()
        for forward, name, ordinal in self._named_exports(names):
            groups[EXPORTED, forward].append(b"%b %d" % (name, ordinal))
        exports = sum(map(len, groups.values()))
        for (directory, index), thunks in self._imports.items():
            strength = "delayed" if directory == DELAYED else ""
            groups[IMPORTED, libraries.get((directory, index), ""), strength] += [
                b"#%d" % (value & 0xFFFF) if value & self._by_ordinal else names[value + 2]
                for value in thunks
            ]
        imports = sum(map(len, groups.values())) - exports
        packed = pack_groups((key, names) for key, names in sorted(groups.items()) if names)
        return SymbolTable(exports=exports, imports=imports, packed=packed)

    def _names(self) -> dict[int, bytes]:
        """Read all names, in the order of the file."""
        addresses = {place for place, _ in self._exports}
        addresses.update(place for place in self._functions.values() if place in self._forwards)
        for thunks in self._imports.values():
            addresses.update(value + 2 for value in thunks if not value & self._by_ordinal)
        return {address: self._name(address) for address in sorted(addresses)}

    def _named_exports(self, names: Mapping[int, bytes]) -> Iterator[tuple[str, bytes, int]]:
        """Yield the target of a forwarder, the name, and the ordinal of each export."""

        def forward(ordinal: int) -> str:
            place = self._functions.get(ordinal, -1)
            return plain_name(names[place]) if place in self._forwards else ""

        for place, ordinal in self._exports:
            if ordinal in self._functions:
                yield forward(ordinal), names[place], ordinal
        for ordinal in self._functions.keys() - {ordinal for _, ordinal in self._exports}:
            yield forward(ordinal), b"", ordinal


def _numbers(form: str, data: bytes) -> Iterator[int]:
    """Yield the numbers of a table."""
    return (value for (value,) in Struct(form).iter_unpack(data))
