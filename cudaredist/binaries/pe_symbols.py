"""The exports and imports of a PE image.

The tables have the addresses of names. Names that are near each other are read together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct

from cudaredist.binaries.range_buffer import NAME_LIMIT, Window
from cudaredist.binaries.symbols import (
    EXPORTED,
    IMPORTED,
    SYMBOLS,
    SymbolTable,
    pack_groups,
    plain_name,
)

DELAYED = 13
"""The number of the directory of what is loaded at its first use."""
_EXPORT_DIRECTORY = Struct("<16xIIIIII")
_EXPORTS_LIMIT = 1 << 16
"""The most exports of one file: an ordinal has 16 bits."""
_IMPORTS_LIMIT = 1 << 16
_PIECE = 4096
"""Bytes of a table of imports that are read at once, as only its end tells its size."""
_BYTES_LIMIT = 16 << 20
"""The most bytes of all names of one file, with what is between them."""

_Place = Callable[[int], tuple[int, int] | None]


class PeSymbols:
    """Requests the tables of one file, and makes the symbols of them at the end."""

    def __init__(self, window: Window, place: _Place, *, is_wide: bool) -> None:
        self._window, self._place = window, place
        self._thunk = Struct("<Q" if is_wide else "<I")
        self._by_ordinal = 1 << (63 if is_wide else 31)
        self._room = _BYTES_LIMIT
        self._functions: dict[int, int] = {}
        """The addresses of exports, by their ordinals."""
        self._forwards = range(0)
        """The addresses that are no functions, but the names of other DLLs' functions."""
        self._exports: list[tuple[int, int]] = []
        """The addresses of names of exports, with the ordinals."""
        self._imports: dict[tuple[int, int], list[int]] = {}
        """The thunks of each DLL, by its place among those that are imported."""
        self._imports_left = _IMPORTS_LIMIT
        self._names: dict[int, bytes] = {}

    # -- the exports

    def exports(self, address: int, size: int) -> None:
        """Request the exports, whose directory is at an address."""
        self._forwards = range(address, address + size)

        def header(data: bytes) -> None:
            base, functions, names, functions_at, names_at, ordinals_at = _EXPORT_DIRECTORY.unpack(
                data
            )
            if functions > _EXPORTS_LIMIT or names > _EXPORTS_LIMIT:
                self._lose(f"more than {_EXPORTS_LIMIT:,} exports")
                return

            def found(tables: Sequence[bytes]) -> None:
                self._exported(base, *tables)

            self._tables(
                [(functions_at, 4 * functions), (names_at, 4 * names), (ordinals_at, 2 * names)],
                found,
            )

        self._want(address, _EXPORT_DIRECTORY.size, header)

    def _tables(
        self, wanted: Iterable[tuple[int, int]], then: Callable[[Sequence[bytes]], None]
    ) -> None:
        """Request one table after the other, and call `then` with all of them."""
        left, tables = list(wanted), list[bytes]()

        def following(data: bytes) -> None:
            tables.append(data)
            request()

        def request() -> None:
            if len(tables) == len(left):
                then(tables)
                return
            address, size = left[len(tables)]
            if size:
                self._want(address, size, following)
            else:
                following(b"")

        request()

    def _exported(self, base: int, functions: bytes, names: bytes, ordinals: bytes) -> None:
        addresses = (address for (address,) in Struct("<I").iter_unpack(functions))
        self._functions = {base + n: address for n, address in enumerate(addresses) if address}
        numbers = (base + number for (number,) in Struct("<H").iter_unpack(ordinals))
        places = (place for (place,) in Struct("<I").iter_unpack(names))
        self._exports = list(zip(places, numbers, strict=True))
        forwards = (place for place in self._functions.values() if place in self._forwards)
        self._read_names([*(place for place, _ in self._exports), *forwards], lambda: None)

    # -- the imports

    def imports(self, directory: int, tables: Sequence[int]) -> None:
        """Request the names that are imported from each DLL of a directory."""
        names: list[int] = []

        def following(index: int) -> None:
            if index == len(tables):
                self._read_names(names, lambda: None)
                return
            thunks: list[int] = []
            self._imports[directory, index] = thunks
            piece(index, tables[index], thunks)

        def piece(index: int, address: int, thunks: list[int]) -> None:
            place = self._place(address)
            room = 0 if place is None else min(place[1], _PIECE)
            size = room - room % self._thunk.size

            def read(data: bytes) -> None:
                for (value,) in self._thunk.iter_unpack(data):
                    if value == 0:
                        following(index + 1)
                        return
                    thunks.append(value)
                    if not value & self._by_ordinal:
                        names.append(value + 2)
                self._imports_left -= len(data) // self._thunk.size
                if self._imports_left < 0:
                    self._lose(f"more than {_IMPORTS_LIMIT:,} imports")
                else:
                    piece(index, address + size, thunks)

            if size == 0:
                self._lose("a table lies in no section")
            else:
                self._want(address, size, read)

        following(0)

    # -- the names

    def _read_names(self, addresses: Iterable[int], done: Callable[[], None]) -> None:
        """Request the names at some addresses, those that are near each other together."""
        clusters = _clusters(sorted(set(addresses)))

        def following() -> None:
            cluster = next(clusters, None)
            if cluster is None:
                done()
                return
            place = self._place(cluster[0])
            if place is None:
                self._lose("a name lies in no section")
                return
            size = min(cluster[-1] - cluster[0] + NAME_LIMIT + 1, place[1])
            self._room -= size
            if self._room < 0:
                self._lose("their names are too long")
                return

            def read(data: bytes) -> None:
                for address in cluster:
                    start = address - cluster[0]
                    end = data.find(b"\0", start, start + NAME_LIMIT + 1)
                    if end < 0:
                        self._lose("a name has no end")
                        return
                    self._names[address] = data[start:end]
                following()

            self._window.want_table(place[0], size, SYMBOLS, read, SYMBOLS, limit=_BYTES_LIMIT)

        following()

    def _want(self, address: int, size: int, then: Callable[[bytes], None]) -> None:
        place = self._place(address)
        if place is None or size > place[1]:
            self._lose("a table lies in no section")
        else:
            self._window.want(place[0], size, SYMBOLS, then, SYMBOLS)

    def _lose(self, why: str) -> None:
        self._window.lose(f"symbols not read: {why}", SYMBOLS)

    # -- the symbols

    def table(self, libraries: dict[tuple[int, int], str]) -> SymbolTable | None:
        """Return the symbols with the names of DLLs, None if unreadable."""
        if SYMBOLS in self._window.unread:
            return None
        groups: dict[tuple[str, ...], list[bytes]] = defaultdict(list)
        for forward, name, ordinal in self._named_exports():
            groups[EXPORTED, forward].append(b"%b %d" % (name, ordinal))
        exports = sum(map(len, groups.values()))
        for (directory, index), thunks in self._imports.items():
            strength = "delayed" if directory == DELAYED else ""
            groups[IMPORTED, libraries.get((directory, index), ""), strength] += [
                b"#%d" % (value & 0xFFFF) if value & self._by_ordinal else self._names[value + 2]
                for value in thunks
            ]
        imports = sum(map(len, groups.values())) - exports
        packed = pack_groups((key, names) for key, names in sorted(groups.items()) if names)
        return SymbolTable(exports=exports, imports=imports, packed=packed)

    def _named_exports(self) -> Iterator[tuple[str, bytes, int]]:
        """Yield the target of a forwarder, the name, and the ordinal of each export."""

        def forward(ordinal: int) -> str:
            place = self._functions.get(ordinal, -1)
            return plain_name(self._names[place]) if place in self._forwards else ""

        for place, ordinal in self._exports:
            if ordinal in self._functions:
                yield forward(ordinal), self._names[place], ordinal
        for ordinal in self._functions.keys() - {ordinal for _, ordinal in self._exports}:
            yield forward(ordinal), b"", ordinal


def _clusters(addresses: list[int]) -> Iterator[list[int]]:
    """Yield sorted addresses in groups, each with no wide gap."""
    cluster: list[int] = []
    for address in addresses:
        if cluster and address - cluster[-1] > NAME_LIMIT:
            yield cluster
            cluster = []
        cluster.append(address)
    if cluster:
        yield cluster
