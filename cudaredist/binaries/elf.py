"""Reader of ELF files.

It supports shared objects, programs and object files, of 32 and 64 bits and both byte orders.

The file header contains the positions of program headers and section headers. The program headers
contain the position of the dynamic section, and the dynamic section contains the addresses of
names, needed versions and symbols. The loaded segments map addresses to positions in the file. The
section headers are only used to find the section of device code, the size of the symbol table, and
sections without content.
"""

import re
from struct import Struct
from typing import NamedTuple

from cudaredist.binaries.elf_symbols import ElfSymbols, needed_versions
from cudaredist.binaries.file_content import UnreadableError
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.opened_names import OpenedNames
from cudaredist.binaries.reader import NAMES_LIMIT, Reader, Sections, whole_entries
from cudaredist.binaries.symbols import SYMBOLS, SymbolTable

ELF_MAGIC = b"\x7fELF"
IDENT_SIZE = 16
_DECLARED = frozenset({".nv_fatbin", "__nv_relfatbin"})
"""The sections for device code."""

_CLASS, _DATA = 4, 5
_BITS = {1: 32, 2: 64}
_ORDERS = {1: "<", 2: ">"}
_MACHINE = 18
_MACHINES = {3: "x86", 21: "ppc64le", 40: "arm", 62: "x86_64", 183: "aarch64", 190: None, 247: None}
"""Machines of hosts. Device code (190) and BPF (247) do not run on a host."""
_PPC64 = 21

_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 0, 1, 5, 6, 10
_DT_SONAME, _DT_RPATH, _DT_RUNPATH = 14, 15, 29
_DT_FLAGS_1, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFB, 0x6FFFFFFE, 0x6FFFFFFF
_DF_1_PIE = 0x08000000
_SHT_NULL, _SHT_NOBITS, _SHT_DYNSYM = 0, 8, 11
_SHN_XINDEX = 0xFFFF
_VERSIONS_SIZE = 64 << 10
"""Bytes that are searched for needed versions. Their table does not state its size."""

_VERSIONS = ("glibc", "libstdcxx")
_FACTS = ("soname", "needed", "runpath", *_VERSIONS, SYMBOLS)

_find_version = re.compile(r"(GLIBC|GLIBCXX)_([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})").fullmatch


class _Layout:
    """The structures of one word size and byte order."""

    def __init__(self, bits: int, order: str) -> None:
        wide = bits == 64  # noqa: PLR2004 - the number is the word size's name
        # After the identification: type, machine, version, entry, phoff, shoff, flags, and sizes.
        self.header = Struct(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"))
        self.program = Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
        self.section = Struct(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"))
        self.dynamic = Struct(order + ("QQ" if wide else "II"))
        # The indexes of a program header's type, offset, address and size in the file.
        self.program_fields = (0, 2, 3, 5) if wide else (0, 1, 2, 4)


class _Segment(NamedTuple):
    offset: int
    address: int
    size: int


def machine_of(data: bytes) -> str | None:
    """Return the machine of an ELF file.

    `data` is at least the file's first 20 bytes.
    """
    order = _ORDERS.get(data[_DATA]) if len(data) >= _MACHINE + 2 else None
    if order is None:
        return None
    number = int.from_bytes(data[_MACHINE : _MACHINE + 2], "little" if order == "<" else "big")
    return f"elf-{number}" if number == _PPC64 and order == ">" else machine_name(number)


def machine_name(number: int) -> str | None:
    """Return the name of an ELF machine.

    If a number has two byte orders, the little-endian machine is returned.
    """
    return _MACHINES.get(number, f"elf-{number}")


class ElfReader(Reader):
    """Reader of one ELF file."""

    def __init__(self) -> None:
        super().__init__()
        self.opened_names = OpenedNames(is_windows=False)
        self._machine: str | None = None
        self._class, self._layout = (64, "<"), _Layout(64, "<")
        self._type = 0
        self._dynamic: _Segment | None = None
        self._is_debug = False
        """Whether another file contains the dynamic section's content."""
        self._is_program = False
        self._segments: list[_Segment] = []
        self._symbols: SymbolTable | None = None
        self._symbol_sections: dict[int, int] = {}
        """The sizes of the sections with dynamic symbols, by their addresses."""
        self._sections = Sections(_DECLARED)
        self._has_sections = False
        self._needed: list[str] = []
        self._names: dict[str, str] = {}
        self._is_pie = False
        self._newest: dict[str, tuple[tuple[int, ...], str]] = {}

    # -- the headers

    def _read(self) -> None:
        with self.losing(*_FACTS):
            self._read_headers()

    def _read_headers(self) -> None:
        data = self._content.table(0, IDENT_SIZE, "header")
        bits, order = _BITS.get(data[_CLASS]), _ORDERS.get(data[_DATA])
        if bits is None or order is None:
            raise UnreadableError("header not read: neither 32 nor 64 bits, or unknown byte order")
        self._class, self._layout = (bits, order), _Layout(bits, order)
        data = self._content.table(0, IDENT_SIZE + self._layout.header.size, "header")
        self._machine = machine_of(data)
        fields = self._layout.header.unpack_from(data, IDENT_SIZE)
        self._type, _, _, _, programs, sections, _, _, size, count, *of_sections = fields
        section_size, section_count, names = of_sections
        elsewhere: set[int] = set()
        if sections:
            with self.losing():
                elsewhere = self._read_sections(sections, section_size, section_count, names)
        if not count:
            return
        if size != self._layout.program.size:
            raise UnreadableError("program headers not read: their size is not supported")
        self._read_programs(self._content.table(programs, count * size, "program headers"))
        if self._dynamic is not None:
            # `objcopy --only-keep-debug` keeps the headers of sections that are in another file.
            self._is_debug = self._dynamic.size == 0 or self._dynamic.address in elsewhere
            if not self._is_debug:
                self._read_dynamic(self._dynamic)

    def _read_sections(self, start: int, size: int, count: int, names: int) -> set[int]:
        """Read the section headers, and return the addresses of sections without content."""
        layout, table = self._layout.section, self._content.table
        if size != layout.size:
            raise UnreadableError("section headers not read: their size is not supported")
        # Numbers that are too large for the header are stored in the first section.
        first = layout.unpack(table(start, size, "section headers"))
        names = first[6] if names == _SHN_XINDEX else names
        data = table(start, (count or first[5]) * size, "section headers")
        sections = list(layout.iter_unpack(data))
        elsewhere = set()
        for _, kind, _, address, _, length, *_ in sections:
            if kind == _SHT_NOBITS and length:
                elsewhere.add(address)
            elif kind == _SHT_DYNSYM:
                self._symbol_sections[address] = length
        with self.losing():
            if names >= len(sections):
                raise UnreadableError("section names not read: their section is missing")
            _, _, _, _, position, length, *_ = sections[names]
            names_table = table(position, length, "section names")
            self._has_sections = True
            places = (
                (offset, length, name)
                for name, kind, _, _, offset, length, *_ in sections
                if kind not in {_SHT_NULL, _SHT_NOBITS}
            )
            self._sections.add_named(names_table, places)
        return elsewhere

    def _read_programs(self, data: bytes) -> None:
        for fields in self._layout.program.iter_unpack(data):
            kind, *place = (fields[index] for index in self._layout.program_fields)
            if kind == _PT_LOAD:
                self._segments.append(_Segment(*place))
            elif kind == _PT_DYNAMIC:
                self._dynamic = self._dynamic or _Segment(*place)
            elif kind == _PT_INTERP:
                self._is_program = True

    def _place(self, address: int) -> tuple[int, int] | None:
        """Map an address to a position and a size in the file.

        The size is the number of bytes from the address to its segment's end.
        """
        for offset, start, size in self._segments:
            if start <= address < start + size:
                return offset + address - start, start + size - address
        return None

    # -- the dynamic section

    def _read_dynamic(self, segment: _Segment) -> None:
        data = self._content.table(segment.offset, segment.size, "dynamic section")
        tags, needed = self._tags(data)
        self._is_pie = bool(tags.get(_DT_FLAGS_1, 0) & _DF_1_PIE)
        # If there are both, the older DT_RPATH is ignored.
        paths = _DT_RUNPATH if _DT_RUNPATH in tags else _DT_RPATH
        single = {"soname": _DT_SONAME, "runpath": paths}
        offsets = {field: tags[tag] for field, tag in single.items() if tag in tags}
        place = self._place(tags[_DT_STRTAB]) if _DT_STRTAB in tags else None
        if place is None:
            facts = (*offsets, *["needed"] * bool(needed), *_VERSIONS * (_DT_VERNEED in tags))
            if facts:
                self.lose("names not read: their table is not in any segment", *facts)
        else:
            strings = (place[0], min(place[1], tags.get(_DT_STRSZ, place[1])))
            self._read_names(strings, offsets, needed)
            if _DT_VERNEED in tags:
                with self.losing(*_VERSIONS):
                    self._read_versions(tags, strings)
        if _DT_SYMTAB in tags and _DT_STRTAB in tags:
            with self.losing(SYMBOLS):
                bits, order = self._class
                symbols = ElfSymbols(
                    self._content, bits=bits, order=order, tags=tags, place=self._place
                )
                self._symbols = symbols.read(self._symbol_sections)

    def _tags(self, data: bytes) -> tuple[dict[int, int], list[int]]:
        """Return each tag's last value, and all values of DT_NEEDED."""
        found: dict[int, int] = {}
        needed: list[int] = []
        for tag, value in whole_entries(self._layout.dynamic, data):
            if tag == _DT_NULL:
                break
            if tag == _DT_NEEDED:
                needed.append(value)
            else:
                found[tag] = value
        return found, needed

    def _read_names(
        self, strings: tuple[int, int], offsets: dict[str, int], needed: list[int]
    ) -> None:
        with self.losing("needed"):
            if len(needed) > NAMES_LIMIT:
                raise UnreadableError(f"needed libraries not read: more than {NAMES_LIMIT:,}")
            self._needed = [self._name(strings, offset, "needed library") for offset in needed]
        for field, offset in offsets.items():
            with self.losing(field):
                self._names[field] = self._name(strings, offset, field)

    def _name(self, strings: tuple[int, int], offset: int, subject: str) -> str:
        start, size = strings
        return self._content.name(start + offset, size - offset, subject)

    def _read_versions(self, tags: dict[int, int], strings: tuple[int, int]) -> None:
        """Read the newest needed version of each library."""
        subject = "needed versions"
        place = self._place(tags[_DT_VERNEED])
        if place is None:
            raise UnreadableError(f"{subject} not read: their table is not in any segment")
        data = self._content.table(place[0], min(place[1], _VERSIONS_SIZE), subject)
        count = tags.get(_DT_VERNEEDNUM, _VERSIONS_SIZE)
        versions = needed_versions(self._class[1], data, count, subject)
        for offset in dict.fromkeys(version.name for version in versions):
            match = _find_version(self._name(strings, offset, "needed version"))
            if match:
                key = tuple(map(int, match[2].split(".")))
                self._newest[match[1]] = max(self._newest.get(match[1], ((), "")), (key, match[2]))

    def _facts(self) -> Binary:
        if len(self.scanner) and not self._has_sections:
            self.note("section of device code unknown: the section headers are not read")
        lost = self.unread
        soname = self._names.get("soname") or None
        names = () if "needed" in lost else tuple(name for name in self._needed if name)
        newest = {} if "glibc" in lost else self._newest
        is_library = not self._is_program or soname is not None
        has_dynamic = self._dynamic is not None and not self._is_debug
        return Binary(
            kind="elf",
            machine=self._machine,
            is_shared=self._type == _ET_DYN and has_dynamic and is_library and not self._is_pie,
            soname=soname,
            needed=names,
            runpath=tuple(part for part in self._names.get("runpath", "").split(":") if part),
            glibc=newest.get("GLIBC", (None, None))[1],
            libstdcxx=newest.get("GLIBCXX", (None, None))[1],
            device_code=self.scanner.by_section(self._sections.at),
            images=self.scanner.images(),
            opens=() if self._is_debug else self.opens_besides(soname, names),
            symbols=self._symbols,
            unread=() if self._is_debug else lost,
            notes=self.notes,
        )
