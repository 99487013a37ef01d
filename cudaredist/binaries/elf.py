"""Reader of ELF files.

It supports shared objects, programs and object files, of 32 and 64 bits and both byte orders.

The file header contains the positions of program headers and section headers. The program headers
contain the position of the dynamic section, and the dynamic section contains the addresses of
names, needed versions and symbols. The section headers are only used to find the section of device
code, the size of the symbol table, and sections without content.
"""

import re

from cudaredist.binaries.elf_image import (
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    DT_VERNEED,
    ElfLayout,
    Image,
    Segment,
)
from cudaredist.binaries.elf_symbols import ElfSymbols
from cudaredist.binaries.file_content import FileContent, UnreadableError
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.reader import NAMES_LIMIT, Reader
from cudaredist.binaries.symbols import SYMBOLS, SymbolTable

ELF_MAGIC = b"\x7fELF"
IDENT_SIZE = 16

_CLASS, _DATA = 4, 5
_BITS = {1: 32, 2: 64}
_ORDERS = {1: "<", 2: ">"}
_MACHINE = 18
_MACHINES = {3: "x86", 21: "ppc64le", 40: "arm", 62: "x86_64", 183: "aarch64", 190: None, 247: None}
"""Machines of hosts. Device code (190) and BPF (247) do not run on a host."""
_PPC64 = 21

_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_SONAME, _DT_RPATH, _DT_RUNPATH = 14, 15, 29
_DT_FLAGS_1, _DF_1_PIE = 0x6FFFFFFB, 0x08000000
_SHT_NULL, _SHT_NOBITS, _SHT_DYNSYM = 0, 8, 11
_SHF_ALLOC, _SHF_EXECINSTR = 2, 4
_SHN_XINDEX = 0xFFFF

_VERSIONS = ("glibc", "libstdcxx")
_FACTS = ("soname", "needed", "runpath", *_VERSIONS, SYMBOLS)

_find_version = re.compile(r"(GLIBC|GLIBCXX)_([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})").fullmatch


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

    declared = frozenset({".nv_fatbin", "__nv_relfatbin"})

    def __init__(self, content: FileContent) -> None:
        super().__init__(content)
        self.are_sections_read = False
        self._machine: str | None = None
        self._type = 0
        self._has_dynamic = False
        self._is_pie = False
        self._is_debug = False
        """Whether another file contains the dynamic section's content."""
        self._is_program = False
        self._has_runpath = False
        self._symbols: SymbolTable | None = None
        self._symbol_sections: dict[int, int] = {}
        """The sizes of the sections with dynamic symbols, by their addresses."""
        self._needed: list[str] = []
        self._names: dict[str, str] = {}
        self._newest: dict[str, tuple[tuple[int, ...], str]] = {}

    # -- the headers

    def read(self) -> None:
        """Read the headers and the dynamic section."""
        with self.losing(*_FACTS):
            self._read_headers()

    def _read_headers(self) -> None:
        table = self.content.table
        data = table(0, IDENT_SIZE, "header")
        bits, order = _BITS.get(data[_CLASS]), _ORDERS.get(data[_DATA])
        if bits is None or order is None:
            raise UnreadableError("header not read: neither 32 nor 64 bits, or unknown byte order")
        layout = ElfLayout(bits, order)
        data = table(0, IDENT_SIZE + layout.header.size, "header")
        self._machine = machine_of(data)
        fields = layout.header.unpack_from(data, IDENT_SIZE)
        self._type, _, _, _, programs, sections, _, _, size, count, *of_sections = fields
        elsewhere: set[int] = set()
        if sections:
            with self.losing():
                elsewhere = self._read_sections(layout, sections, *of_sections)
        if not count:
            return
        if size != layout.program.size:
            raise UnreadableError("program headers not read: their size is not supported")
        data = table(programs, count * size, "program headers")
        segments: dict[int, list[Segment]] = {_PT_LOAD: [], _PT_DYNAMIC: [], _PT_INTERP: []}
        for kind, *place in layout.program.iter_unpack(data):
            segments.setdefault(kind, []).append(Segment(*place))
        self._is_program = bool(segments[_PT_INTERP])
        for offset, address, length in segments[_PT_DYNAMIC][:1]:
            # `objcopy --only-keep-debug` keeps the headers of sections that are in another file.
            self._is_debug = length == 0 or address in elsewhere
            self._has_dynamic = not self._is_debug
            if self._has_dynamic:
                self.note_end(max((n.offset + n.size for n in segments[_PT_LOAD]), default=0))
                dynamic = table(offset, length, "dynamic section")
                self._read_dynamic(Image(self.content, layout, segments[_PT_LOAD], dynamic))

    def _read_sections(
        self, layout: ElfLayout, start: int, size: int, count: int, names: int
    ) -> set[int]:
        """Read the section headers, and return the addresses of sections without content."""
        table = self.content.table
        if size != layout.section.size:
            raise UnreadableError("section headers not read: their size is not supported")
        # Numbers that are too large for the header are stored in the first section.
        first = layout.section.unpack(table(start, size, "section headers"))
        names = first[6] if names == _SHN_XINDEX else names
        data = table(start, (count or first[5]) * size, "section headers")
        sections = list(layout.section.iter_unpack(data))
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
            self.are_sections_read = True
            stored = [one for one in sections if one[1] not in {_SHT_NULL, _SHT_NOBITS}]
            self.sections.add_named(names_table, ((one[4], one[5], one[0]) for one in stored))
            for _, _, flags, _, offset, length, *_ in stored:
                if flags & (_SHF_ALLOC | _SHF_EXECINSTR) != _SHF_ALLOC:
                    self.skipped.append((offset, offset + length))
        return elsewhere

    # -- the dynamic section

    def _read_dynamic(self, image: Image) -> None:
        tags = image.tags
        self._is_pie = bool(tags.get(_DT_FLAGS_1, 0) & _DF_1_PIE)
        # If there are both, the older DT_RPATH is ignored.
        self._has_runpath = _DT_RUNPATH in tags
        paths = _DT_RUNPATH if self._has_runpath else _DT_RPATH
        single = {"soname": _DT_SONAME, "runpath": paths}
        offsets = {field: tags[tag] for field, tag in single.items() if tag in tags}
        place = image.place(tags[DT_STRTAB]) if DT_STRTAB in tags else None
        if place is None:
            versions = _VERSIONS if DT_VERNEED in tags else ()
            facts = (*offsets, *["needed"] * bool(image.needed), *versions)
            if facts:
                self.lose("names not read: their table is not in any segment", *facts)
        else:
            strings = (place[0], min(place[1], tags.get(DT_STRSZ, place[1])))
            with self.losing("needed"):
                if len(image.needed) > NAMES_LIMIT:
                    raise UnreadableError(f"needed libraries not read: more than {NAMES_LIMIT:,}")
                self._needed = [self._name(strings, n, "needed library") for n in image.needed]
            for field, offset in offsets.items():
                with self.losing(field):
                    self._names[field] = self._name(strings, offset, field)
            with self.losing(*_VERSIONS):
                self._read_versions(image, strings)
        if DT_SYMTAB in tags and DT_STRTAB in tags:
            with self.losing(SYMBOLS):
                self._symbols = ElfSymbols(image).read(self._symbol_sections)

    def _name(self, strings: tuple[int, int], offset: int, subject: str) -> str:
        start, size = strings
        return self.content.name(start + offset, size - offset, subject)

    def _read_versions(self, image: Image, strings: tuple[int, int]) -> None:
        """Read the newest needed version of each library."""
        versions = image.needed_versions("needed versions")
        for offset in dict.fromkeys(version.name for version in versions):
            match = _find_version(self._name(strings, offset, "needed version"))
            if match:
                key = tuple(map(int, match[2].split(".")))
                self._newest[match[1]] = max(self._newest.get(match[1], ((), "")), (key, match[2]))

    def binary(self) -> Binary:
        """Return the facts of the dynamic section."""
        soname = self._names.get("soname") or None
        names = () if "needed" in self.lost else tuple(filter(None, self._needed))
        newest = {} if "glibc" in self.lost else self._newest
        opens = () if self._is_debug else self.opens_besides(soname, names)
        if self._is_debug:
            self.lost.clear()
        is_library = (not self._is_program or soname is not None) and not self._is_pie
        folders = tuple(filter(None, self._names.get("runpath", "").split(":")))
        return Binary(
            kind="elf",
            machine=self._machine,
            is_shared=self._type == _ET_DYN and self._has_dynamic and is_library,
            soname=soname,
            needed=names,
            runpath=folders,
            is_rpath=bool(folders) and not self._has_runpath,
            glibc=newest.get("GLIBC", (None, None))[1],
            libstdcxx=newest.get("GLIBCXX", (None, None))[1],
            opens=opens,
            symbols=self._symbols,
        )
