"""Reader of static libraries.

It supports `ar` of GNU and BSD, and Microsoft's `.lib`. All of them have the same format. Only the
first bytes of each member are examined. All device code in a library counts as declared, because
the sections of its object files would add no information.
"""

import re

from cudaredist.binaries import elf, pe
from cudaredist.binaries.file_content import FileContent
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.reader import Reader

AR_MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"

_HEADER_SIZE = 60
_NAME = slice(0, 16)
_SIZE = slice(48, 58)
_END = slice(58, 60)
_HEADER_END = b"`\n"
_FIRST_BYTES = 64
_TABLES = frozenset({b"/", b"//", b"/SYM64/", b"/<ECSYMBOLS>/", b"/<XFGHASHMAP>/"})
"""Names of members that are symbol tables and the table of long names."""
_BSD_TABLE = b"__.SYMDEF"
_IMPORT = b"\0\0\xff\xff\0\0"
_MACHINES_LIMIT = 2
_MEMBERS_LIMIT = 1_000_000
_is_bsd_name = re.compile(rb"#1/([0-9]{1,9})").fullmatch


class ArReader(Reader):
    """Reader of one library."""

    def __init__(self, content: FileContent) -> None:
        super().__init__(content)
        self._is_thin = content.read(0, len(THIN_MAGIC)) == THIN_MAGIC
        self._members = 0
        self._objects = 0
        self._imports = 0
        self._machines: set[str] = set()

    def read(self) -> None:
        """Read the headers and first bytes of all members."""
        if self._is_thin:
            self.note("a thin library: its members are files of their own")
        place: int | None = len(AR_MAGIC)
        while place is not None and place + _HEADER_SIZE <= self.content.size:
            place = self._member(place)
        # The padding byte after a last member of odd size is optional.
        if place is not None and self.content.size not in {place, place - 1}:
            self.note("the library ends inside a member")

    def _member(self, place: int) -> int | None:
        """Read a member, and return the position of the next one, None to stop."""
        self._members += 1
        if self._members > _MEMBERS_LIMIT:
            self.note(f"members not read beyond {_MEMBERS_LIMIT:,}")
            return None
        header = self.content.read(place, _HEADER_SIZE)
        digits = header[_SIZE].rstrip(b" ")
        if header[_END] != _HEADER_END or not digits.isdigit():
            self.note("members not read to the end: a header is damaged")
            return None
        name = header[_NAME].rstrip(b" ")
        start, size = place + _HEADER_SIZE, int(digits)
        is_table = name in _TABLES or name.startswith(_BSD_TABLE)
        if self._is_thin and not is_table:
            self._objects += 1
            return start
        if not is_table:
            bsd = _is_bsd_name(name)
            name_size = min(int(bsd[1]), size) if bsd else 0
            with self.losing():
                first = min(size, name_size + _FIRST_BYTES)
                self._first_bytes(self.content.table(start, first, "member"), name_size)
        # Members begin at even positions.
        return start + size + size % 2

    def _first_bytes(self, data: bytes, name_size: int) -> None:
        if name_size and data.startswith(_BSD_TABLE):
            return
        data = data[name_size:]
        self._objects += 1
        self._imports += data.startswith(_IMPORT)
        is_elf = data.startswith(elf.ELF_MAGIC)
        machine = elf.machine_of(data) if is_elf else pe.machine_of_object(data)
        if machine is not None and len(self._machines) < _MACHINES_LIMIT:
            self._machines.add(machine)

    def binary(self) -> Binary:
        """Return the machine and the number of objects."""
        return Binary(
            kind="ar",
            machine=next(iter(self._machines)) if len(self._machines) == 1 else None,
            objects=self._objects,
            imports=self._imports,
        )
