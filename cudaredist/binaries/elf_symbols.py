"""The dynamic symbols of an ELF file: defined and undefined ones, with their versions.

The dynamic section has the address of the symbol table and not its size. The size follows from a
hash table: `DT_HASH` has the number of symbols, `DT_GNU_HASH` the chain of the last one. A file
that defines no symbols has an empty hash table. Its section headers then state the size. Without
section headers, the table ends before the next table, or at the first entry that is not a symbol.
"""

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from cudaredist.binaries.elf_image import (
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    DT_VERDEF,
    DT_VERNEED,
    VERSION_NUMBER,
    Image,
)
from cudaredist.binaries.file_content import TABLE_LIMIT
from cudaredist.binaries.symbols import (
    DEFINED,
    DEFINED_VERSIONS,
    NEEDED_VERSIONS,
    SYMBOLS,
    UNDEFINED,
    SymbolTable,
    pack_groups,
    plain_name,
    unreadable,
)

_DT_HASH = 4
_DT_GNU_HASH, _DT_VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
_ADDRESSES = (
    *(3, 4, 5, 6, 7, 12, 13, 17, 23, 25, 26, 32, 36),
    *(_DT_GNU_HASH, _DT_VERSYM, DT_VERDEF, DT_VERNEED),
)
"""The tags whose values are addresses of tables."""

_SYMBOLS_LIMIT = 1 << 18
"""The most symbols of one file. The largest library that was seen, of LLVM, has 46,000."""
_STRINGS_LIMIT = 16 << 20
"""The most bytes of the table of names; that library has 3 MB."""
_TEXT_LIMIT = 16 << 20
"""The most bytes of all names together, as thousands of symbols may have the same long name."""
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
_FIRST_VERSION = 2
_VER_FLG_BASE, _VER_FLG_WEAK = 1, 2

_Key: TypeAlias = tuple[int, int, int, int]
"""A symbol's info, visibility, section and version."""
_Properties: TypeAlias = tuple[str, ...]


class ElfSymbols:
    """Reader of the symbols of one file."""

    def __init__(self, image: Image) -> None:
        self._image, self._tags = image, image.tags
        self._strings = b""
        self._text_room, self._versions_room = _TEXT_LIMIT, _VERSION_NAMES_LIMIT
        self._needed: dict[int, tuple[str, str]] = {}
        self._defined: dict[int, tuple[str, str]] = {}
        """The versions by their numbers: the name, and the library that is needed with it."""
        self._versions: dict[_Properties, list[bytes]] = defaultdict(list)
        self._size = 24 if image.layout.is_wide else 16

    def read(self, sections: Mapping[int, int]) -> SymbolTable:
        """Return the symbols. `sections` has the sizes of symbol tables by address.

        Raises `UnreadableError`.
        """
        size = self._tags.get(DT_STRSZ, _STRINGS_LIMIT + 1)
        self._strings = self._table(self._tags[DT_STRTAB], size, _STRINGS_LIMIT)
        count, is_exact = self._count(sections.get(self._tags[DT_SYMTAB]))
        if count > _SYMBOLS_LIMIT:
            raise unreadable(f"more than {_SYMBOLS_LIMIT:,}")
        groups = self._grouped(count, is_exact=is_exact)
        self._read_versions()
        return self._packed(groups)

    def _table(self, address: int, size: int, limit: int = TABLE_LIMIT) -> bytes:
        return self._image.table(address, size, SYMBOLS, limit)

    # -- the number of symbols

    def _count(self, size_of_section: int | None) -> tuple[int, bool]:
        """Return the number of symbols, and whether it is exact.

        If the file does not state the number, it is an upper limit.
        """
        if _DT_HASH in self._tags:
            return self._numbers("I", self._table(self._tags[_DT_HASH], 8))[1], True
        if _DT_GNU_HASH in self._tags and (count := self._count_hashed()):
            return count, True
        most = self._most()
        if size_of_section is not None and size_of_section <= most * self._size:
            return size_of_section // self._size, True
        return most, False

    def _count_hashed(self) -> int:
        """Return the number of symbols up to the last one in a GNU hash table, 0 if it is empty."""
        start = self._tags[_DT_GNU_HASH]
        buckets, first, bloom, _ = self._numbers("I", self._table(start, 16))
        if buckets == 0:
            return 0
        at = start + 16 + bloom * (8 if self._image.layout.is_wide else 4)
        last = max(self._numbers("I", self._table(at, 4 * buckets)))
        if last < max(first, 1):
            return 0
        chain = at + 4 * buckets + 4 * (last - first)
        room = self._image.room(chain, _CHAIN_LIMIT)
        values = self._numbers("I", self._table(chain, room - room % 4))
        for count, value in enumerate(values, last + 1):
            if value & 1:
                return count
        raise unreadable("their hash table has no end")

    def _most(self) -> int:
        """Return how many symbols there can be in front of the next table."""
        start = self._tags[DT_SYMTAB]
        place = self._image.place(start)
        if place is None:
            return 0
        others = (self._tags[tag] - start for tag in _ADDRESSES if tag in self._tags)
        room = min([place[1], *(size for size in others if size > 0)])
        return min(room // self._size, _SYMBOLS_LIMIT)

    # -- the symbols

    def _grouped(self, count: int, *, is_exact: bool) -> dict[_Key, list[int]]:
        """Return the places of names by their symbols' info, visibility, section and version."""
        size = self._size
        info, other, section = (4, 5, 6) if self._image.layout.is_wide else (12, 13, 14)
        groups: dict[_Key, list[int]] = defaultdict(list)
        if count == 0:
            return groups
        data = self._table(self._tags[DT_SYMTAB], count * size, count * size)
        versions = array("H", [1]) * count
        if _DT_VERSYM in self._tags:
            address = self._tags[_DT_VERSYM]
            room = 2 * count if is_exact else self._image.room(address, 2 * count)
            versions = self._numbers("H", self._table(address, room))
        places = self._numbers("I", data)[:: size // 4]
        outside = None
        if max(places) >= len(self._strings):
            outside = next(
                number for number, place in enumerate(places) if place >= len(self._strings)
            )
            if is_exact:
                raise unreadable("a name is outside their table")
        sections = self._numbers("H", data)[section // 2 :: size // 2]
        symbols = zip(data[info::size], data[other::size], sections, versions, strict=False)
        for key, place in zip(symbols, places[:outside], strict=False):
            groups[key].append(place)
        return groups

    def _packed(self, groups: dict[_Key, list[int]]) -> SymbolTable:
        named: dict[_Properties, list[int]] = defaultdict(list)
        while groups:
            key, places = groups.popitem()
            properties = self._properties(key)
            if properties is not None:
                named[properties] += filter(None, places)
        counts = Counter[str]()

        def all_groups() -> Iterator[tuple[_Properties, Iterable[bytes]]]:
            for properties in sorted(named.keys() | self._versions.keys()):
                if properties in self._versions:
                    yield properties, self._versions[properties]
                elif named[properties]:
                    self._text_room -= sum(map(len, properties))
                    yield properties, self._names(named.pop(properties), properties[0], counts)

        packed = pack_groups(all_groups())
        return SymbolTable(exports=counts[DEFINED], imports=counts[UNDEFINED], packed=packed)

    def _names(self, places: list[int], kind: str, counts: "Counter[str]") -> Iterator[bytes]:
        """Yield the names at the given offsets and count them. Raises `UnreadableError`."""
        strings = self._strings
        left = iter(places)
        while part := list(islice(left, _PART)):
            ends = [strings.find(b"\0", place, place + _NAME_LIMIT) for place in part]
            if min(ends) < 0:
                raise unreadable("a name has no end")
            self._text_room -= sum(ends) - sum(part)
            if self._text_room < 0:
                raise unreadable("their names are too long")
            names = [
                strings[place:end] for place, end in zip(part, ends, strict=True) if end > place
            ]
            counts[kind] += len(names)
            yield from names

    def _properties(self, key: _Key) -> _Properties | None:
        """Return the shared properties of a symbol's group, None for a local symbol."""
        info, other, section, number = key
        binding = _BINDINGS.get(info >> 4)
        if binding is None:
            return None
        kind = "ifunc" if info & 0xF == _IFUNC else _TYPES.get(info & 0xF, f"{info & 0xF}")
        state = UNDEFINED if section == 0 else DEFINED
        at = {_SHN_ABS: "absolute", _SHN_COMMON: "common"}.get(section, "")
        index = number & VERSION_NUMBER
        needed, defined = self._needed, self._defined
        first, second = (needed, defined) if section == 0 else (defined, needed)
        version = first.get(index) or second.get(index) if index >= _FIRST_VERSION else None
        name, library = version or ("", "")
        # What a program copies out of a library has the version of the library's symbol.
        is_default = bool(name) and not (library or section == 0 or number & ~VERSION_NUMBER)
        sign = "@@" if is_default else "@" if name else ""
        return (state, binding, kind, _VISIBILITIES[other & 3], at, sign, name, library)

    def _numbers(self, form: str, data: bytes) -> "array[int]":
        numbers = array(form)
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
        if (self._image.layout.order == "<") != (sys.byteorder == "little"):
            numbers.byteswap()
        return numbers

    # -- the versions

    def _read_versions(self) -> None:
        for of_library, place, flags, number in self._image.needed_versions(SYMBOLS):
            library, name = plain_name(self._text(of_library)), self._text(place)
            self._needed[number] = plain_name(name), library
            strength = "weak" if flags & _VER_FLG_WEAK else "strong"
            self._versions[NEEDED_VERSIONS, library, strength].append(name)
        for place, flags, number in self._image.defined_versions(SYMBOLS):
            name, is_base = self._text(place), bool(flags & _VER_FLG_BASE)
            self._versions[DEFINED_VERSIONS, "base" if is_base else ""].append(name)
            if not is_base:
                self._defined[number] = plain_name(name), ""

    def _text(self, place: int) -> bytes:
        """Return the name at an offset of the string table. Raises `UnreadableError`."""
        end = self._strings.find(b"\0", place, place + _NAME_LIMIT)
        self._versions_room -= max(end - place, 0)
        if end < 0 or self._versions_room < 0:
            raise unreadable("the name of a version has no end, or their names are too long")
        return self._strings[place:end]
