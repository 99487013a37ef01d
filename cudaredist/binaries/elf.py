"""Reader of ELF files.

It supports shared objects, programs and object files, of 32 and 64 bits and both byte orders.

The file header contains the position of the program headers, these contain the position of the
dynamic section, and the dynamic section contains the addresses of names and needed versions. The
loaded segments map addresses to positions in the file. The section headers are usually last. They
are only used to find the section of device code.

Names and versions usually pass long before the dynamic section with their addresses. Linkers put
them at the front of the first segment or of the read-only segment. Programs that rewrite a file put
a longer table of names next to the dynamic section, and leave the versions after the gap of the old
table. The program headers are enough to predict these ranges. Their bytes are kept until the tables
are read, at most 30 MiB.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from typing import NamedTuple

from cudaredist.binaries.elf_symbols import ElfSymbols
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.opened_names import OpenedNames
from cudaredist.binaries.reader import NAMES_LIMIT, Reader, Sections, whole_entries
from cudaredist.binaries.symbols import SYMBOLS

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
_PF_R = 4
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 0, 1, 5, 10
_DT_SONAME, _DT_RPATH, _DT_RUNPATH = 14, 15, 29
_DT_FLAGS_1, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFB, 0x6FFFFFFE, 0x6FFFFFFF
_DF_1_PIE = 0x08000000
_SHT_NULL, _SHT_NOBITS, _SHT_DYNSYM = 0, 8, 11
_SHN_XINDEX = 0xFFFF
_VERSIONS_SIZE = 64 << 10
"""Bytes that are searched for needed versions. Their table does not state its size."""

_FRONT, _BACK, _BEFORE, _READ_ONLY = 12 << 20, 5 << 20, 7 << 20, 6 << 20
"""Bytes to keep: front and back of the first segment, before the dynamic section, and the front of
the read-only segment.

In a sample of 9,900 files, NVIDIA's files need at most 1, 4 and 1 MiB, and all others except two
need 12, 0 and 7 MiB. In these two, names are 18 and 93 MiB after the front.
"""
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
        self.need = Struct(order + "HHIII")
        self.version = Struct(order + "IHHII")
        # The indexes of flags, type, offset, address and size in the file in a program header.
        self.program_fields = (1, 0, 2, 3, 5) if wide else (6, 0, 1, 2, 4)


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
        self._dynamic_at: int | None = None
        """The address of the dynamic section, if any."""
        self._elsewhere: set[int] = set()
        """The addresses of sections without bytes in the file."""
        self._is_program = False
        self._segments: list[_Segment] = []
        self._read_only: _Segment | None = None
        """The first segment that is neither written to nor executed."""
        self._symbols: ElfSymbols | None = None
        self._symbol_sections: dict[int, int] = {}
        """The sizes of the sections with dynamic symbols, by their addresses."""
        self._tables_left = 2
        """How many tables are still read: the needed versions, and the symbols."""
        self._sections = Sections(_DECLARED)
        self._has_sections = False
        self._needed: dict[int, str] = {}
        self._names: dict[str, str] = {}
        self._is_pie = False
        self._newest: dict[str, tuple[tuple[int, ...], str]] = {}
        self.window.want(0, IDENT_SIZE, "header", self._ident, *_FACTS)

    # -- from the header to the tables

    def _ident(self, data: bytes) -> None:
        bits, order = _BITS.get(data[_CLASS]), _ORDERS.get(data[_DATA])
        if bits is None or order is None:
            self.window.lose(
                "header not read: neither 32 nor 64 bits, or unknown byte order", *_FACTS
            )
            return
        self._class, self._layout = (bits, order), _Layout(bits, order)
        size = IDENT_SIZE + self._layout.header.size
        self.window.want(0, size, "header", self._header, *_FACTS)

    def _header(self, data: bytes) -> None:
        self._machine = machine_of(data)
        fields = self._layout.header.unpack_from(data, IDENT_SIZE)
        self._type, _, _, _, programs, sections, _, _, *sizes = fields
        program_size, programs_count, section_size, sections_count, names_index = sizes
        if programs_count:
            if program_size != self._layout.program.size:
                self.window.lose("program headers not read: their size is not supported", *_FACTS)
            else:
                size = programs_count * program_size
                is_late = programs > _FRONT
                if is_late:
                    # An optimizer of linked files puts them after the rewritten parts.
                    self.window.keep([(0, _FRONT), (programs - _BEFORE, programs)])
                then = partial(self._programs, is_late=is_late)
                self.window.want(programs, size, "program headers", then, *_FACTS)
        if sections:
            if section_size != self._layout.section.size:
                self.window.note("section headers not read: their size is not supported")
                return

            def first(data: bytes) -> None:
                # Numbers that are too large for the header are stored in the first section.
                _, _, _, _, _, real_count, real_names, *_ = self._layout.section.unpack(data)
                count = sections_count or real_count
                names = real_names if names_index == _SHN_XINDEX else names_index
                size = count * section_size
                self.window.want(
                    sections, size, "section headers", lambda d: self._section_headers(d, names)
                )

            self.window.want(sections, section_size, "section headers", first)

    def _programs(self, data: bytes, *, is_late: bool) -> None:
        dynamic: _Segment | None = None
        for fields in self._layout.program.iter_unpack(data):
            flags, kind, *place = (fields[index] for index in self._layout.program_fields)
            segment = _Segment(*place)
            if kind == _PT_LOAD:
                self._segments.append(segment)
                if flags == _PF_R:
                    self._read_only = self._read_only or segment
            elif kind == _PT_DYNAMIC:
                dynamic = dynamic or segment
            elif kind == _PT_INTERP:
                self._is_program = True
        if dynamic is not None:
            self._dynamic_at = dynamic.address
        if dynamic is None or dynamic.size == 0:
            if dynamic is not None:
                self._elsewhere.add(dynamic.address)
            self.window.release()
            return
        if not is_late:
            self.window.keep(self._likely_places(dynamic.offset))
        self.window.want(dynamic.offset, dynamic.size, "dynamic section", self._dynamic, *_FACTS)

    def _likely_places(self, dynamic: int) -> Iterator[tuple[int, int]]:
        """Yield ranges that may contain names and versions.

        They pass before the dynamic section.
        """
        if self._segments:
            start, _, size = self._segments[0]
            end = min(start + size, dynamic)
            yield start, min(start + _FRONT, end)
            yield max(start + _FRONT, end - _BACK), end
        if self._read_only is not None:
            start = self._read_only.offset
            yield start, min(start + _READ_ONLY, dynamic)
        yield max(dynamic - _BEFORE, 0), dynamic

    def _place(self, address: int) -> tuple[int, int] | None:
        """Map an address to a position and a size in the file.

        The size is the number of bytes from the address to its segment's end.
        """
        for offset, start, size in self._segments:
            if start <= address < start + size:
                return offset + address - start, start + size - address
        return None

    # -- the dynamic section

    def _dynamic(self, data: bytes) -> None:
        found, needed = self._tags(data)
        self._is_pie = bool(found.get(_DT_FLAGS_1, 0) & _DF_1_PIE)
        bits, order = self._class
        self._symbols = ElfSymbols(
            self.window, bits=bits, order=order, tags=found, place=self._place
        )
        # If there are both, the older DT_RPATH is ignored.
        paths = _DT_RUNPATH if _DT_RUNPATH in found else _DT_RPATH
        single = {"soname": _DT_SONAME, "runpath": paths}
        offsets = {field: found[tag] for field, tag in single.items() if tag in found}
        facts = (*offsets, *["needed"] * bool(needed), *_VERSIONS * (_DT_VERNEED in found))
        place = self._place(found[_DT_STRTAB]) if _DT_STRTAB in found else None
        if place is None and facts:
            self.window.lose("names not read: their table is not in any segment", *facts)
        elif place is not None:
            strings = (place[0], min(place[1], found.get(_DT_STRSZ, place[1])))
            self._names_at(strings, offsets, needed)
            if _DT_VERNEED in found:
                self._versions(
                    found[_DT_VERNEED], found.get(_DT_VERNEEDNUM, _VERSIONS_SIZE), strings
                )
                self._symbols.read(self._release)
                return
        self._release()
        self._symbols.read(self._release)

    def _release(self) -> None:
        """Release what is kept when no table is read any more."""
        self._tables_left -= 1
        if self._tables_left == 0:
            self.window.release()

    def _names_at(
        self, strings: tuple[int, int], offsets: dict[str, int], needed: list[int]
    ) -> None:
        if len(needed) > NAMES_LIMIT:
            self.window.lose(f"needed libraries not read: more than {NAMES_LIMIT:,}", "needed")
            needed = []
        for index, offset in enumerate(needed):
            then = partial(self._needed.__setitem__, index)
            self._name(strings, offset, "needed library", then, "needed")
        for field, offset in offsets.items():
            self._name(strings, offset, field, partial(self._names.__setitem__, field), field)

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

    def _name(
        self,
        strings: tuple[int, int],
        offset: int,
        what: str,
        then: Callable[[str], None],
        *facts: str,
    ) -> None:
        start, size = strings
        self.window.want_name(start + offset, size - offset, what, then, *facts)

    def _versions(self, address: int, count: int, strings: tuple[int, int]) -> None:
        place = self._place(address)
        if place is None:
            text = "needed versions not read: their table is not in any segment"
            self.window.lose(text, *_VERSIONS)
            self._release()
            return
        start, room = place

        def read(data: bytes) -> None:
            for offset in dict.fromkeys(self._version_names(data, count)):
                self._name(strings, offset, "needed version", self._version, *_VERSIONS)
            self._release()

        size = min(room, _VERSIONS_SIZE)
        self.window.want(start, size, "needed versions", read, *_VERSIONS)

    def _version_names(self, data: bytes, count: int) -> Iterator[int]:
        """Yield the name offsets of all needed versions."""
        need, version = self._layout.need, self._layout.version
        at, left = 0, NAMES_LIMIT
        for _ in range(count):
            if at + need.size > len(data):
                self._lose_versions()
                return
            _, names, _, first, step = need.unpack_from(data, at)
            inner = at + first
            for _ in range(names):
                if left == 0 or inner + version.size > len(data):
                    self._lose_versions()
                    return
                _, _, _, name, inner_step = version.unpack_from(data, inner)
                yield name
                left -= 1
                inner += inner_step
                if inner_step == 0:
                    break
            at += step
            if step == 0:
                break

    def _lose_versions(self) -> None:
        text = "needed versions not read: outside their table, or too many"
        self.window.lose(text, *_VERSIONS)

    def _version(self, name: str) -> None:
        match = _find_version(name)
        if match:
            key = tuple(map(int, match[2].split(".")))
            self._newest[match[1]] = max(self._newest.get(match[1], ((), "")), (key, match[2]))

    # -- sections

    def _section_headers(self, data: bytes, names: int) -> None:
        sections = list(self._layout.section.iter_unpack(data))
        self._elsewhere.update(
            address for _, kind, _, address, _, size, *_ in sections if kind == _SHT_NOBITS and size
        )
        self._symbol_sections.update(
            (address, size) for _, kind, _, address, _, size, *_ in sections if kind == _SHT_DYNSYM
        )
        if names >= len(sections):
            self.window.note("section names not read: their section is missing")
            return
        _, _, _, _, start, size, *_ = sections[names]

        def read(table: bytes) -> None:
            self._has_sections = True
            places = (
                (offset, length, name)
                for name, kind, _, _, offset, length, *_ in sections
                if kind not in {_SHT_NULL, _SHT_NOBITS}
            )
            self._sections.add_named(table, places)

        self.window.want(start, size, "section names", read)

    def _facts(self) -> Binary:
        if len(self.scanner) and not self._has_sections:
            self.window.note("section of device code unknown: the section headers are not read")
        # `objcopy --only-keep-debug` keeps the headers of sections that are in another file.
        is_debug = self._dynamic_at in self._elsewhere
        symbols = None
        if self._symbols is not None and not is_debug:
            symbols = self._symbols.table(self._symbol_sections)
        lost = _FACTS if is_debug else self.window.unread
        soname = None if "soname" in lost else self._names.get("soname") or None
        needed = () if "needed" in lost else sorted(self._needed.items())
        names = tuple(name for _, name in needed if name)
        runpath = "" if "runpath" in lost else self._names.get("runpath", "")
        newest = {} if "glibc" in lost else self._newest
        is_library = not self._is_program or soname is not None
        has_dynamic = self._dynamic_at is not None and not is_debug
        return Binary(
            kind="elf",
            machine=self._machine,
            is_shared=self._type == _ET_DYN and has_dynamic and is_library and not self._is_pie,
            soname=soname,
            needed=names,
            runpath=tuple(part for part in runpath.split(":") if part),
            glibc=newest.get("GLIBC", (None, None))[1],
            libstdcxx=newest.get("GLIBCXX", (None, None))[1],
            device_code=self.scanner.by_section(self._sections.at),
            images=self.scanner.images(),
            opens=() if is_debug else self.opens_besides(soname, names),
            symbols=symbols,
            unread=() if is_debug else self.unread,
            notes=self.notes,
        )
