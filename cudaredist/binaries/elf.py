"""Reader of ELF files.

It supports shared objects, programs and object files, of 32 and 64 bits and both byte orders.

The file header contains the positions of program headers and section headers. The program headers
contain the position of the dynamic section, and the dynamic section contains the addresses of
names, needed versions and symbols. The section headers are only used to find the section of device
code, the size of the symbol table, and sections without content.
"""

import re
from collections import defaultdict

from cudaredist.binaries.elf_image import (
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    ElfLayout,
    Image,
    Segment,
)
from cudaredist.binaries.elf_symbols import ElfSymbols
from cudaredist.binaries.file_content import NAME_LIMIT, FileContent, UnreadableError
from cudaredist.binaries.opened_names import SHARED_OBJECTS, LibraryNames
from cudaredist.binaries.reader import NAMES_LIMIT, Reader
from cudaredist.binaries.symbols import SYMBOLS

ELF_MAGIC = b"\x7fELF"
IDENT_SIZE = 16

_CLASS, _DATA = 4, 5
_WORDS = {1: "I", 2: "Q"}
"""The words of 32 and 64 bits."""
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

_RUN_PATH_LIMIT = 64 << 10
"""Maximum bytes of a run path. That of TensorFlow has 20 kB."""
_VERSIONS = {"GLIBC": "glibc", "GLIBCXX": "libstdcxx"}
_FACTS = ("soname", "needed", "runpath", *_VERSIONS.values(), SYMBOLS)

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

    kind = "elf"
    declared = frozenset({".nv_fatbin", "__nv_relfatbin"})
    opens: LibraryNames | None = SHARED_OBJECTS

    def __init__(self, content: FileContent) -> None:
        super().__init__(content)
        self.are_sections_read = False
        self._is_dynamic = self._is_pie = self._is_program = False
        self._elsewhere: set[int] = set()
        """The addresses of sections without content."""
        self._symbol_sections: dict[int, int] = {}
        """The sizes of the sections with dynamic symbols, by their addresses."""

    # -- the headers

    def read_tables(self) -> None:
        """Read the headers and the dynamic section."""
        with self.losing(*_FACTS):
            self._read_headers()
        is_library = not self._is_program or self.found.get("soname") is not None
        self.found["is_shared"] = self._is_dynamic and is_library and not self._is_pie

    def _read_headers(self) -> None:
        table = self.content.table
        data = table(0, IDENT_SIZE, "header")
        word, order = _WORDS.get(data[_CLASS]), _ORDERS.get(data[_DATA])
        if word is None or order is None:
            raise UnreadableError("header not read: neither 32 nor 64 bits, or unknown byte order")
        layout = ElfLayout(word, order)
        data = table(0, IDENT_SIZE + layout.header.size, "header")
        self.found["machine"] = machine_of(data)
        fields = layout.header.unpack_from(data, IDENT_SIZE)
        kind, _, _, _, programs, sections, _, _, size, count, *of_sections = fields
        if sections:
            with self.losing():
                self._read_sections(layout, sections, *of_sections)
        if not count:
            return
        if size != layout.program.size:
            raise UnreadableError("program headers not read: their size is not supported")
        segments: dict[int, list[Segment]] = defaultdict(list)
        data = table(programs, count * size, "program headers")
        for segment_kind, offset, address, length in layout.program.iter_unpack(data):
            segments[segment_kind].append((offset, address, length))
        self._is_program = bool(segments[_PT_INTERP])
        for offset, address, length in segments[_PT_DYNAMIC][:1]:
            # `objcopy --only-keep-debug` keeps the headers of sections that are in another file.
            if length == 0 or address in self._elsewhere:
                self.opens = None
                return
            self._is_dynamic = kind == _ET_DYN
            self.note_end(max((start + size for start, _, size in segments[_PT_LOAD]), default=0))
            dynamic = table(offset, length, "dynamic section")
            self._read_dynamic(Image(self.content, layout, segments[_PT_LOAD], dynamic))

    def _read_sections(
        self, layout: ElfLayout, start: int, size: int, count: int, names: int
    ) -> None:
        table = self.content.table
        if size != layout.section.size:
            raise UnreadableError("section headers not read: their size is not supported")
        # Numbers that are too large for the header are stored in the first section.
        first = layout.section.unpack(table(start, size, "section headers"))
        names = first[6] if names == _SHN_XINDEX else names
        data = table(start, (count or first[5]) * size, "section headers")
        sections = list(layout.section.iter_unpack(data))
        for _, kind, _, address, _, length, *_ in sections:
            if kind == _SHT_NOBITS and length:
                self._elsewhere.add(address)
            elif kind == _SHT_DYNSYM:
                self._symbol_sections[address] = length
        with self.losing():
            if names >= len(sections):
                raise UnreadableError("section names not read: their section is missing")
            _, _, _, _, position, length, *_ = sections[names]
            names_table = table(position, length, "section names")
            self.are_sections_read = True
            stored = [fields for fields in sections if fields[1] not in {_SHT_NULL, _SHT_NOBITS}]
            named = ((offset, length, name) for name, _, _, _, offset, length, *_ in stored)
            self.sections.add_named(names_table, named)
            for _, _, flags, _, offset, length, *_ in stored:
                if flags & (_SHF_ALLOC | _SHF_EXECINSTR) != _SHF_ALLOC:
                    self.skipped.append((offset, offset + length))

    # -- the dynamic section

    def _read_dynamic(self, image: Image) -> None:
        tags = image.tags
        self._is_pie = bool(tags.get(_DT_FLAGS_1, 0) & _DF_1_PIE)
        # If there are both, the older DT_RPATH is ignored.
        paths = _DT_RUNPATH if _DT_RUNPATH in tags else _DT_RPATH
        strings = image.place(tags[DT_STRTAB]) if DT_STRTAB in tags else None

        def name(offset: int, subject: str, limit: int = NAME_LIMIT) -> str:
            if strings is None:
                raise UnreadableError("names not read: their table is not in any segment")
            start, room = strings
            size = min(room, tags.get(DT_STRSZ, room))
            return self.content.name(start + offset, size - offset, subject, limit)

        with self.losing("needed"):
            if len(image.needed) > NAMES_LIMIT:
                raise UnreadableError(f"needed libraries not read: more than {NAMES_LIMIT:,}")
            names = [name(offset, "needed library") for offset in image.needed]
            self.found["needed"] = tuple(filter(None, names))
        if _DT_SONAME in tags:
            with self.losing("soname"):
                self.found["soname"] = name(tags[_DT_SONAME], "soname") or None
        if paths in tags:
            with self.losing("runpath"):
                text = name(tags[paths], "runpath", _RUN_PATH_LIMIT)
                # The loader uses the current folder for an empty entry.
                folders = tuple(entry or "." for entry in text.split(":")) if text else ()
                self.found["runpath"] = folders
                self.found["is_rpath"] = bool(folders) and paths == _DT_RPATH
        with self.losing(*_VERSIONS.values()):
            offsets = {version[1]: None for version in image.needed_versions("needed versions")}
            names = [name(offset, "needed version") for offset in offsets]
            matches = sorted(filter(None, map(_find_version, names)), key=_version_key)
            # The newest version of each library is the last one.
            self.found |= {_VERSIONS[match[1]]: match[2] for match in matches}
        if DT_SYMTAB in tags and DT_STRTAB in tags:
            with self.losing(SYMBOLS):
                self.found[SYMBOLS] = ElfSymbols(image).read(self._symbol_sections)


def _version_key(match: re.Match[str]) -> tuple[list[int], str]:
    return [int(part) for part in match[2].split(".")], match[2]
