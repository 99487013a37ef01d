"""Readers of PE images and COFF object files.

A PE refers to its imports by address. The section headers map addresses to positions in the file.
If a section's name in an object file has more than eight bytes, it is stored after the symbols.
"""

from collections.abc import Iterable
from itertools import chain
from struct import Struct

from cudaredist.binaries.file_content import TABLE_LIMIT, FileContent, UnreadableError, text_of_name
from cudaredist.binaries.opened_names import DLLS
from cudaredist.binaries.pe_symbols import PeSections, PeSymbols
from cudaredist.binaries.reader import NAMES_LIMIT, Reader, whole_entries
from cudaredist.binaries.symbols import SYMBOLS

_DOS_MAGIC = b"MZ"
_DOS_SIZE = 64
_PE_MAGIC = b"PE\0\0"
_DECLARED = frozenset({".nv_fatb", ".nv_fatbin", "__nv_rel", "__nv_relfatbin"})
"""The sections for device code. Images truncate names to eight bytes."""
BIG_CLASS = bytes.fromhex("C7A1BAD1EEBAA94BAF20FAF66AA4DCB8")
"""The class identifier of object files with many sections. They have no usual header."""
ANONYMOUS = b"\0\0\xff\xff"

_HEADER_PLACE = 0x3C
_HEADER_LIMIT = 64 << 10
FIRST_BYTES = _HEADER_LIMIT + len(_PE_MAGIC)
"""First bytes of a file that show whether it is an image."""
_COFF = Struct("<HHIIIHH")
_SECTION = Struct("<8sIIIIIIHHI")
_ANONYMOUS = Struct("<HHHHI16sI")
_BIG = Struct("<HHHHI16sIIIIIII")
_SYMBOL_SIZE, _BIG_SYMBOL_SIZE = 18, 20
_STRINGS_SIZE = 4
_MACHINES = {0x14C: "x86", 0x1C0: "arm", 0x1C4: "arm", 0x8664: "x86_64", 0xAA64: "aarch64"}
_OBJECT_MACHINES = frozenset({0x8664, 0xAA64})
_IS_EXECUTABLE, _IS_DLL = 0x0002, 0x2000
_SECTIONS_LIMIT = 0xFEFF
_NO_BYTES = 0x80

_COUNT_AT = {0x10B: 92, 0x20B: 108}
"""The position of the number of directories, by kind of optional header. They follow it."""
_BASE = {0x10B: Struct("<28xI"), 0x20B: Struct("<24xQ")}
_WIDE = 0x20B
_DIRECTORY = Struct("<II")
_EXPORTS, _IMPORTS, _DELAYED = 0, 1, 13
"""Directories. Delayed imports are loaded at their first use."""
_EXPORT = Struct("<12xI")
_IMPORT = Struct("<I8xII")
_DELAY = Struct("<II8xI12x")
_IS_RELATIVE = 1
_DIRECTORY_LIMIT = 64 << 10
_FACTS = {
    _EXPORTS: ("soname", SYMBOLS),
    _IMPORTS: ("needed", SYMBOLS),
    _DELAYED: ("needed", SYMBOLS),
}
"""The facts from each directory."""
_ALL_FACTS = ("soname", "needed", SYMBOLS)


def is_image(first: bytes) -> bool:
    """Return whether a file is a PE image.

    `first` is its first bytes. A DOS program has the same beginning, but no such header.
    """
    header = _header_of(first)
    is_dos = len(first) >= _DOS_SIZE and first.startswith(_DOS_MAGIC)
    return is_dos and header <= _HEADER_LIMIT and first.startswith(_PE_MAGIC, header)


def _header_of(first: bytes) -> int:
    """Return the position of the PE header."""
    return int.from_bytes(first[_HEADER_PLACE : _HEADER_PLACE + 4], "little")


def _machine_name(number: int) -> str:
    """Return the name of a machine number."""
    return _MACHINES.get(number, f"pe-{number}")


def machine_of_object(data: bytes) -> str | None:
    """Return the machine of an object file or import record.

    `data` is its first bytes.
    """
    if data.startswith(ANONYMOUS) and len(data) >= _ANONYMOUS.size:
        return _machine_name(_ANONYMOUS.unpack_from(data)[3])
    if len(data) < _COFF.size:
        return None
    machine, count, _, _, _, optional, flags = _COFF.unpack_from(data)
    is_object = machine in _OBJECT_MACHINES and optional == 0 and not flags & _IS_EXECUTABLE
    return _machine_name(machine) if is_object and count <= _SECTIONS_LIMIT else None


def is_object(data: bytes) -> bool:
    """Return whether a file is a COFF object.

    `data` is at least the file's first 60 bytes.
    """
    if data.startswith(ANONYMOUS):
        # Version 0 is an import record. These exist only in libraries.
        return len(data) >= _ANONYMOUS.size and _ANONYMOUS.unpack_from(data)[2] > 0
    if machine_of_object(data) is None or len(data) < _COFF.size + _SECTION.size:
        return False
    count = _COFF.unpack_from(data)[1]
    name, _, _, size, start, *_ = _SECTION.unpack_from(data, _COFF.size)
    end = _COFF.size + count * _SECTION.size
    text = text_of_name(name.rstrip(b"\0"))
    return count > 0 and bool(text) and (start == 0 or size == 0 or start >= end)


class PeReader(Reader):
    """Reader of one PE image."""

    kind = "pe"
    declared = _DECLARED
    opens = DLLS

    def __init__(self, content: FileContent) -> None:
        super().__init__(content)
        self._base = 0
        self._directories: dict[int, tuple[int, int]] = {}
        """The addresses and sizes of what is read."""
        self._mapped = PeSections(content)
        self._symbols = PeSymbols(self._mapped)

    def read_tables(self) -> None:
        """Read the headers, exports and imports."""
        with self.losing(*_ALL_FACTS):
            table = self.content.table
            header = _header_of(table(0, _DOS_SIZE, "header"))
            data = table(header, len(_PE_MAGIC) + _COFF.size, "header")
            machine, sections, _, _, _, size, flags = _COFF.unpack_from(data, len(_PE_MAGIC))
            self.found = {"machine": _machine_name(machine), "is_shared": bool(flags & _IS_DLL)}
            self.found["needed"] = ()
            start = header + len(data)
            optional = table(start, size, "optional header")
            with self.losing(*_ALL_FACTS):
                self._read_optional(optional)
            with self.losing(*chain(*(_FACTS[index] for index in self._directories))):
                length = sections * _SECTION.size
                self._read_sections(table(start + size, length, "section headers"))
                readers = (self._read_exports, self._read_imports, self._read_delayed)
                for index, reader in zip(_FACTS, readers, strict=True):
                    if index in self._directories:
                        with self.losing(*_FACTS[index]):
                            reader()
            if SYMBOLS not in self.lost:
                self.found[SYMBOLS] = self._symbols.table()

    def _read_optional(self, data: bytes) -> None:
        magic = int.from_bytes(data[:2], "little")
        count_at = _COUNT_AT.get(magic, len(data))
        if count_at + 4 > len(data):
            raise UnreadableError("optional header not read: of an unknown kind, or truncated")
        (self._base,) = _BASE[magic].unpack_from(data)
        self._symbols.is_wide = magic == _WIDE
        count = int.from_bytes(data[count_at : count_at + 4], "little")
        first = count_at + 4
        for index in _FACTS:
            at = first + index * _DIRECTORY.size
            if index < count and at + _DIRECTORY.size <= len(data):
                address, size = _DIRECTORY.unpack_from(data, at)
                if address and size:
                    self._directories[index] = address, size

    def _read_sections(self, data: bytes) -> None:
        sections = list(_SECTION.iter_unpack(data))
        self.note_end(max((start + size for _, _, _, size, start, *_ in sections), default=0))
        self._mapped.map((address, size, start) for _, _, address, size, start, *_ in sections)
        for name, _, _, size, start, *_ in sections:
            self.sections.add(start if size else 0, size, text_of_name(name.rstrip(b"\0")) or "")

    def _directory(self, index: int, subject: str) -> bytes:
        address, _ = self._directories[index]
        position, room = self._mapped.place(address, f"{subject} not read: they are")
        # Windows ignores the stated size and reads imports up to their end mark.
        size = _EXPORT.size if index == _EXPORTS else _DIRECTORY_LIMIT
        return self.content.table(position, min(room, size), subject)

    def _name(self, address: int, subject: str) -> str:
        place = self._mapped.place(address, f"{subject} not read: it is")
        return self.content.name(*place, subject)

    def _read_exports(self) -> None:
        data = self._directory(_EXPORTS, "exports")
        if len(data) < _EXPORT.size:
            raise UnreadableError("exports not read: they extend beyond their section")
        (address,) = _EXPORT.unpack(data)
        with self.losing("soname"):
            self.found["soname"] = self._name(address, "export name") or None if address else None
        with self.losing(SYMBOLS):
            self._symbols.read_exports(*self._directories[_EXPORTS])

    def _read_imports(self) -> None:
        entries = whole_entries(_IMPORT, self._directory(_IMPORTS, "imports"))
        # Without the table of names, the one that the loader fills has the names until then.
        names = (
            (name, table or thunks) if name and thunks else None for table, name, thunks in entries
        )
        self._need(_IMPORTS, "imports", names)

    def _read_delayed(self) -> None:
        # Old linkers wrote absolute addresses.
        data = self._directory(_DELAYED, "delayed imports")
        entries = (
            (0 if flags & _IS_RELATIVE else self._base, *at)
            for flags, *at in whole_entries(_DELAY, data)
        )
        names = ((name - base, table - base) if name else None for base, name, table in entries)
        self._need(_DELAYED, "delayed imports", names)

    def _need(self, directory: int, subject: str, names: Iterable[tuple[int, int] | None]) -> None:
        """Read the library names and the symbols at these addresses.

        None marks the end of the table.
        """
        entries = list(names)
        if None not in entries:
            raise UnreadableError(f"{subject} not read: they have no end mark")
        addresses = list(filter(None, entries[: entries.index(None)]))
        if len(addresses) > NAMES_LIMIT:
            raise UnreadableError(f"imports not read: more than {NAMES_LIMIT:,}")
        for address, table in addresses:
            library = ""
            with self.losing("needed"):
                library = self._name(address, "imported library")
                self.found["needed"] += (library,) if library else ()
            with self.losing(SYMBOLS):
                strength = "delayed" if directory == _DELAYED else ""
                self._symbols.read_imports(library, strength, table)


class CoffReader(Reader):
    """Reader of one COFF object file.

    Its header may be usual or anonymous.
    """

    kind = "coff"
    declared = _DECLARED

    def read_tables(self) -> None:
        """Read the headers."""
        with self.losing():
            table = self.content.table
            data = table(0, _COFF.size, "header")
            if data.startswith(ANONYMOUS):
                *_, machine, _, kind, _ = _ANONYMOUS.unpack(table(0, _ANONYMOUS.size, "header"))
                self.found["machine"] = _machine_name(machine)
                if kind == BIG_CLASS:
                    *_, count, symbols, size = _BIG.unpack(table(0, _BIG.size, "header"))
                    self._read_sections(_BIG.size, count, symbols + size * _BIG_SYMBOL_SIZE)
            else:
                machine, count, _, symbols, size, optional, _ = _COFF.unpack(data)
                self.found["machine"] = _machine_name(machine)
                self._read_sections(_COFF.size + optional, count, symbols + size * _SYMBOL_SIZE)

    def _read_sections(self, start: int, count: int, strings: int) -> None:
        data = self.content.table(start, count * _SECTION.size, "section headers")
        long: list[tuple[int, int, int]] = []
        for raw, _, _, size, start_at, _, _, _, _, flags in _SECTION.iter_unpack(data):
            name = text_of_name(raw.rstrip(b"\0")) or ""
            if flags & _NO_BYTES or size == 0:
                continue
            if name.startswith("/") and name[1:].isascii() and name[1:].isdigit():
                long.append((start_at, size, int(name[1:])))
            else:
                self.sections.add(start_at, size, name)
        if long:
            stated = self.content.table(strings, _STRINGS_SIZE, "section names")
            size = min(int.from_bytes(stated, "little"), TABLE_LIMIT)
            self.sections.add_named(self.content.table(strings, size, "section names"), long)
