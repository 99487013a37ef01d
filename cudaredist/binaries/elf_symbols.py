"""The dynamic symbols of an ELF file: defined and undefined ones, with their versions.

The dynamic section has the address of the symbol table and not its size. The size follows from a
hash table: `DT_HASH` has the number of symbols, `DT_GNU_HASH` the chain of the last one. A file
that defines no symbols has an empty hash table. There the section headers have the size. Without
them, the table ends in front of the next table, or at the first entry that is not a symbol.
"""

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from struct import Struct
from typing import NamedTuple

from cudaredist.binaries.range_buffer import RANGE_LIMIT, Window
from cudaredist.binaries.symbols import (
    DEFINED,
    DEFINED_VERSIONS,
    NEEDED_VERSIONS,
    SYMBOLS,
    UNDEFINED,
    SymbolTable,
    pack_groups,
    plain_name,
)

_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 4, 5, 6, 10
_DT_GNU_HASH, _DT_VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = (0x6FFFFFFC + n for n in range(4))
_ADDRESSES = frozenset(
    {3, 4, 5, 6, 7, 12, 13, 17, 23, 25, 26, 32, 36, _DT_GNU_HASH, _DT_VERSYM, _DT_VERDEF}
    | {_DT_VERNEED}
)
"""The tags whose values are addresses of tables."""

_SYMBOLS_LIMIT = 1 << 18
"""The most symbols of one file. The largest library that was seen, of LLVM, has 46,000."""
_STRINGS_LIMIT = 16 << 20
"""The most bytes of the table of names; that library has 3 MB."""
_TEXT_LIMIT = 16 << 20
"""The most bytes of all names together, as thousands of symbols may have the same long name."""
_VERSIONS_SIZE = 64 << 10
_VERSIONS_LIMIT = 4096
_VERSION_NAMES_LIMIT = 1 << 20
_NAME_LIMIT = 256 << 10
"""The most bytes of one name, which templates make longer than any path."""
_CHAIN_LIMIT = 256 << 10
_PART = 4096
"""Names that are copied from the table at a time."""

_BINDINGS = {1: "global", 2: "weak", 10: "unique"}
_TYPES = {0: "notype", 1: "object", 2: "func", 3: "section", 4: "file", 5: "common", 6: "tls"}
_IFUNC = 10
_VISIBILITIES = ("default", "internal", "hidden", "protected")
_SHN_ABS, _SHN_COMMON = 0xFFF1, 0xFFF2
_HIDDEN, _FIRST_VERSION = 0x8000, 2
_VER_FLG_BASE, _VER_FLG_WEAK = 1, 2


class _Version(NamedTuple):
    name: str
    library: str
    """The library that a needed version is needed from; empty for a defined one."""


class _Layout(NamedTuple):
    """How symbols are laid out, in one word size: the size, and the places of the fields."""

    size: int
    info: int
    other: int
    section: int


_LAYOUTS = {64: _Layout(24, 4, 5, 6), 32: _Layout(16, 12, 13, 14)}


class ElfSymbols:
    """Requests the tables of one file, and makes the symbols of them at the end."""

    def __init__(
        self,
        window: Window,
        *,
        bits: int,
        order: str,
        tags: Mapping[int, int],
        place: Callable[[int], tuple[int, int] | None],
    ) -> None:
        self._window = window
        self._layout, self._order, self._wide = _LAYOUTS[bits], order, bits == 64  # noqa: PLR2004 - the number is the word size's name
        self._tags, self._place = tags, place
        self._tables: dict[int, bytes] = {}
        """The tables by their tags."""
        self._text_room, self._versions_room = _TEXT_LIMIT, _VERSION_NAMES_LIMIT
        self._is_exact = False
        """Whether the symbol table has no more symbols than the file."""

    # -- the requests

    def read(self, done: Callable[[], None]) -> None:
        """Request all tables, and call `done` when there are no more requests."""
        if _DT_SYMTAB not in self._tags or _DT_STRTAB not in self._tags:
            done()
            return

        left = 2

        def one_done() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                done()

        def tables(count: int) -> None:
            size, versions = self._layout.size * count, 2 * count
            wanted = [(_DT_SYMTAB, size, size)] if size else []
            if _DT_VERSYM in self._tags and size:
                room = versions if self._is_exact else self._room(_DT_VERSYM, versions)
                wanted.append((_DT_VERSYM, room, versions))
            wanted += [
                (tag, self._room(tag, _VERSIONS_SIZE), _VERSIONS_SIZE)
                for tag in (_DT_VERDEF, _DT_VERNEED)
                if tag in self._tags
            ]
            self._next(wanted, one_done)

        # Tools that rewrite a file put names and hash table behind each other, after the rest.
        strings = self._tags.get(_DT_STRSZ, _STRINGS_LIMIT + 1)
        self._next([(_DT_STRTAB, strings, _STRINGS_LIMIT)], one_done)
        self._count(tables)

    def _next(self, wanted: list[tuple[int, int, int]], done: Callable[[], None]) -> None:
        """Request one table after the other."""
        if not wanted:
            done()
            return
        (tag, size, limit), *rest = wanted

        def take(data: bytes) -> None:
            self._tables[tag] = data
            self._next(rest, done)

        self._want(self._tags[tag], size, take, limit)

    def _want(
        self, address: int, size: int, then: Callable[[bytes], None], limit: int = RANGE_LIMIT
    ) -> None:
        place = self._place(address)
        if place is None or size > place[1]:
            self._lose("a table lies in no segment")
        else:
            self._window.want_table(place[0], size, SYMBOLS, then, SYMBOLS, limit=limit)

    def _room(self, tag: int, most: int) -> int:
        place = self._place(self._tags[tag])
        return most if place is None else min(place[1], most)

    def _lose(self, why: str) -> None:
        self._window.lose(f"symbols not read: {why}", SYMBOLS)

    # -- the number of symbols

    def _count(self, then: Callable[[int], None]) -> None:
        """Call `then` with the number of symbols, or with the most that there can be."""

        def hash_header(data: bytes) -> None:
            _, count = Struct(f"{self._order}II").unpack(data)
            exact(count)

        def exact(count: int) -> None:
            self._is_exact = True
            limited(count)

        def limited(count: int) -> None:
            if count > _SYMBOLS_LIMIT:
                self._lose(f"more than {_SYMBOLS_LIMIT:,}")
            else:
                then(count)

        def gnu(last: int | None) -> None:
            if last is None:
                limited(self._most())
            else:
                exact(last + 1)

        if _DT_HASH in self._tags:
            self._want(self._tags[_DT_HASH], 8, hash_header)
        elif _DT_GNU_HASH in self._tags:
            self._last_hashed(gnu)
        else:
            limited(self._most())

    def _last_hashed(self, then: Callable[[int | None], None]) -> None:
        """Call `then` with the last symbol's number in a GNU hash table, None if it is empty."""
        start = self._tags[_DT_GNU_HASH]

        def header(data: bytes) -> None:
            buckets, first, bloom, _ = Struct(f"{self._order}IIII").unpack(data)
            at = start + 16 + bloom * (8 if self._wide else 4)
            if buckets == 0:
                then(None)
                return

            def heads(data: bytes) -> None:
                last = max(self._numbers("I", data))
                if last < max(first, 1):
                    then(None)
                    return
                chain = at + 4 * buckets + 4 * (last - first)
                place = self._place(chain)
                room = 0 if place is None else min(place[1], _CHAIN_LIMIT)
                self._want(chain, room - room % 4, lambda data: end(last, data))

            self._want(at, 4 * buckets, heads)

        def end(last: int, data: bytes) -> None:
            for length, value in enumerate(self._numbers("I", data)):
                if value & 1:
                    then(last + length)
                    return
            self._lose("their hash table has no end")

        self._want(start, 16, header)

    def _most(self) -> int:
        """Return how many symbols there can be in front of the next table."""
        start = self._tags[_DT_SYMTAB]
        place = self._place(start)
        if place is None:
            return 0
        others = (self._tags[tag] - start for tag in _ADDRESSES if tag in self._tags)
        room = min([place[1], *(size for size in others if size > 0)])
        return min(room // self._layout.size, _SYMBOLS_LIMIT)

    # -- the symbols

    def table(self, sections: Mapping[int, int]) -> SymbolTable | None:
        """Return the symbols. `sections` has the sizes of symbol tables by address.

        None if they could not be read, or there are none.
        """
        if SYMBOLS in self._window.unread or _DT_STRTAB not in self._tables:
            return None
        size = sections.get(self._tags[_DT_SYMTAB])
        data = self._tables.pop(_DT_SYMTAB, b"")
        is_exact = self._is_exact
        if not is_exact and size is not None and size <= len(data):
            data, is_exact = data[:size], True
        groups = self._grouped(data, is_exact=is_exact)
        del data
        versions = self._versions()
        if groups is None or versions is None:
            return None
        return self._packed(groups, *versions)

    def _grouped(
        self, data: bytes, *, is_exact: bool
    ) -> dict[tuple[int, int, int, int], list[int]] | None:
        """Return the places of names by their symbols' info, visibility, section and version."""
        size, info, other, section = self._layout
        count = len(data) // size
        data = data[: count * size]
        places = self._numbers("I", data)[:: size // 4]
        strings = self._tables[_DT_STRTAB]
        outside = None
        if places and max(places) >= len(strings):
            outside = next(n for n, place in enumerate(places) if place >= len(strings))
        if outside is not None and is_exact:
            self._lose("a name lies outside their table")
            return None
        versions = array("H", [1]) * count
        if _DT_VERSYM in self._tables:
            versions = self._numbers("H", self._tables.pop(_DT_VERSYM))
        sections = self._numbers("H", data)[section // 2 :: size // 2]
        groups: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
        symbols = zip(data[info::size], data[other::size], sections, versions, strict=False)
        for key, place in zip(symbols, places[:outside], strict=False):
            groups[key].append(place)
        return groups

    def _packed(
        self,
        groups: dict[tuple[int, int, int, int], list[int]],
        needed: dict[int, _Version],
        defined: dict[int, _Version],
        version_groups: dict[tuple[str, ...], list[bytes]],
    ) -> SymbolTable | None:
        named: dict[tuple[str, ...], list[int]] = defaultdict(list)
        while groups:
            key, places = groups.popitem()
            properties = self._properties(key, needed, defined)
            if properties is not None:
                named[properties] += filter(None, places)
        counts = Counter[str]()

        def all_groups() -> Iterator[tuple[tuple[str, ...], Iterable[bytes]]]:
            for properties in sorted(named.keys() | version_groups.keys()):
                if properties in version_groups:
                    yield properties, version_groups[properties]
                elif named[properties]:
                    self._text_room -= sum(map(len, properties))
                    yield properties, self._names(named.pop(properties), properties[0], counts)

        try:
            packed = pack_groups(all_groups())
        except ValueError as error:
            self._lose(str(error))
            return None
        self._tables.clear()
        return SymbolTable(exports=counts[DEFINED], imports=counts[UNDEFINED], packed=packed)

    def _names(self, places: list[int], kind: str, counts: "Counter[str]") -> Iterator[bytes]:
        """Yield the names at some offsets and count them. Raises `ValueError`."""
        strings = self._tables[_DT_STRTAB]
        left = iter(places)
        while part := list(islice(left, _PART)):
            ends = [strings.find(b"\0", place, place + _NAME_LIMIT) for place in part]
            if min(ends) < 0:
                raise ValueError("a name has no end")
            self._text_room -= sum(ends) - sum(part)
            if self._text_room < 0:
                raise ValueError("their names are too long")
            names = [
                strings[place:end] for place, end in zip(part, ends, strict=True) if end > place
            ]
            counts[kind] += len(names)
            yield from names

    def _properties(
        self,
        key: tuple[int, int, int, int],
        needed: dict[int, _Version],
        defined: dict[int, _Version],
    ) -> tuple[str, ...] | None:
        """Return the shared properties of a symbol's group, None for a local symbol."""
        info, other, section, number = key
        binding = _BINDINGS.get(info >> 4)
        if binding is None:
            return None
        kind = "ifunc" if info & 0xF == _IFUNC else _TYPES.get(info & 0xF, f"{info & 0xF}")
        state = UNDEFINED if section == 0 else DEFINED
        at = {_SHN_ABS: "absolute", _SHN_COMMON: "common"}.get(section, "")
        index = number & ~_HIDDEN
        first, second = (needed, defined) if section == 0 else (defined, needed)
        version = first.get(index) or second.get(index) if index >= _FIRST_VERSION else None
        name, library = version or ("", "")
        # What a program copies out of a library has the version of the library's symbol.
        is_default = bool(name) and not (library or section == 0 or number & _HIDDEN)
        sign = "@@" if is_default else "@" if name else ""
        return (state, binding, kind, _VISIBILITIES[other & 3], at, sign, name, library)

    def _string(self, place: int) -> bytes | None:
        """Return the name at an offset of the string table, None if it has no end."""
        strings = self._tables[_DT_STRTAB]
        end = strings.find(b"\0", place, place + _NAME_LIMIT)
        return None if end < 0 else strings[place:end]

    def _numbers(self, form: str, data: bytes) -> "array[int]":
        numbers = array(form)
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
        if (self._order == "<") != (sys.byteorder == "little"):
            numbers.byteswap()
        return numbers

    # -- the versions

    def _versions(
        self,
    ) -> tuple[dict[int, _Version], dict[int, _Version], dict[tuple[str, ...], list[bytes]]] | None:
        """Return needed and defined versions by their numbers, and all of them in groups."""
        needed: dict[int, _Version] = {}
        defined: dict[int, _Version] = {}
        groups: dict[tuple[str, ...], list[bytes]] = defaultdict(list)
        try:
            for library, name, flags, number in self._needed_versions():
                needed[number] = _Version(plain_name(name), plain_name(library))
                strength = "weak" if flags & _VER_FLG_WEAK else "strong"
                groups[NEEDED_VERSIONS, plain_name(library), strength].append(name)
            for name, flags, number in self._defined_versions():
                if flags & _VER_FLG_BASE:
                    groups[DEFINED_VERSIONS, "base"].append(name)
                else:
                    defined[number] = _Version(plain_name(name), "")
                    groups[DEFINED_VERSIONS, ""].append(name)
        except ValueError:
            self._lose("their versions leave their table, or are too many")
            return None
        return needed, defined, groups

    def _needed_versions(self) -> Iterator[tuple[bytes, bytes, int, int]]:
        """Yield each version's library, name, flags and number. Raises `ValueError`."""
        inner = Struct(f"{self._order}IHHII")
        for library, start, count, data in self._needed_libraries():
            at = start
            for _ in range(count):
                _, flags, number, name, step = _unpack(inner, data, at)
                yield self._text(library), self._text(name), flags, number & ~_HIDDEN
                at += step
                if step == 0:
                    break

    def _defined_versions(self) -> Iterator[tuple[bytes, int, int]]:
        outer, inner = Struct(f"{self._order}HHHHIII"), Struct(f"{self._order}II")
        data, at = self._tables.get(_DT_VERDEF, b""), 0
        for left in range(self._tags.get(_DT_VERDEFNUM, 0) if data else 0):
            if left == _VERSIONS_LIMIT:
                raise ValueError
            _, flags, number, _, _, first, step = _unpack(outer, data, at)
            name, _ = _unpack(inner, data, at + first)
            yield self._text(name), flags, number & ~_HIDDEN
            at += step
            if step == 0:
                break

    def _needed_libraries(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield library, place and number of the versions that are needed from each library."""
        layout = Struct(f"{self._order}HHIII")
        data, at, left = self._tables.get(_DT_VERNEED, b""), 0, _VERSIONS_LIMIT
        for _ in range(self._tags.get(_DT_VERNEEDNUM, _VERSIONS_LIMIT) if data else 0):
            _, count, library, first, step = _unpack(layout, data, at)
            left -= max(count, 1)
            if left < 0:
                raise ValueError
            yield library, at + first, count, data
            at += step
            if step == 0:
                break

    def _text(self, place: int) -> bytes:
        name = self._string(place)
        self._versions_room -= 0 if name is None else len(name)
        if name is None or self._versions_room < 0:
            raise ValueError
        return name


def _unpack(layout: Struct, data: bytes, at: int) -> tuple[int, ...]:
    if at + layout.size > len(data):
        raise ValueError
    return layout.unpack_from(data, at)
