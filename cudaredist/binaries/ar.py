"""Reader of static libraries.

It supports `ar` of GNU and BSD, and Microsoft's `.lib`. All of them have the same format. Only the
first bytes of each member are examined. All device code in a library counts as declared, because
the sections of its object files would add no information.
"""

import re

from cudaredist.binaries import elf, pe
from cudaredist.binaries.file_content import FileContent, UnreadableError
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

    kind = "ar"

    def __init__(self, content: FileContent) -> None:
        super().__init__(content)
        self._is_thin = content.read(0, len(THIN_MAGIC)) == THIN_MAGIC
        self._members = 0
        self.found = {"objects": 0, "imports": 0}
        self._machines: set[str] = set()

    def read_tables(self) -> None:
        """Read the headers and first bytes of all members."""
        if self._is_thin:
            self.note("a thin library: its members are files of their own")
        position = len(AR_MAGIC)
        with self.losing():
            while position + _HEADER_SIZE <= self.content.size:
                position = self._member(position)
            # The padding byte after a last member of odd size is optional.
            if self.content.size not in {position, position - 1}:
                self.note("the library ends inside a member")
        if len(self._machines) == 1:
            self.found["machine"] = self._machines.pop()

    def _member(self, position: int) -> int:
        """Read a member, and return the position of the next one. Raises `UnreadableError`."""
        self._members += 1
        if self._members > _MEMBERS_LIMIT:
            raise UnreadableError(f"members not read beyond {_MEMBERS_LIMIT:,}")
        header = self.content.read(position, _HEADER_SIZE)
        digits = header[_SIZE].rstrip(b" ")
        if header[_END] != _HEADER_END or not digits.isdigit():
            raise UnreadableError("members not read to the end: a header is damaged")
        name = header[_NAME].rstrip(b" ")
        start, size = position + _HEADER_SIZE, int(digits)
        is_table = name in _TABLES or name.startswith(_BSD_TABLE)
        if self._is_thin and not is_table:
            self.found["objects"] += 1
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
        self.found["objects"] += 1
        self.found["imports"] += data.startswith(_IMPORT)
        is_elf = data.startswith(elf.ELF_MAGIC)
        machine = elf.machine_of(data) if is_elf else pe.machine_of_object(data)
        if machine is not None and len(self._machines) < _MACHINES_LIMIT:
            self._machines.add(machine)
