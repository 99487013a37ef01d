"""The dynamic section of an ELF file, and the tables at its addresses.

The loaded segments map addresses to positions in the file.
"""

from collections.abc import Iterator
from struct import Struct
from typing import TypeAlias

from cudaredist.binaries.file_content import TABLE_LIMIT, FileContent, UnreadableError
from cudaredist.binaries.reader import whole_entries

_DT_NULL, _DT_NEEDED = 0, 1
DT_STRTAB, DT_SYMTAB, DT_STRSZ = 5, 6, 10
DT_VERDEF, DT_VERNEED = 0x6FFFFFFC, 0x6FFFFFFE

_VERSIONS_SIZE = 64 << 10
"""Bytes that are searched for versions. Their table does not state its size."""
_VERSIONS_LIMIT = 8192
"""Maximum entries of a table of versions."""
VERSION_NUMBER = 0x7FFF
"""The bits of a version's number without the flag for hidden ones."""


class ElfLayout:
    """The structures of one word size and byte order."""

    def __init__(self, word: str, order: str) -> None:
        self.is_wide, self.order = word == "Q", order
        # After the identification: type, machine, version, entry, phoff, shoff, flags, and sizes.
        self.header = Struct(f"{order}HHI{3 * word}I6H")
        # The type, offset, address, and size in the file.
        self.program = Struct(order + ("I4xQQ8xQ16x" if self.is_wide else "III4xI12x"))
        self.section = Struct(f"{order}II{4 * word}II{2 * word}")
        self.dynamic = Struct(f"{order}{2 * word}")


Segment: TypeAlias = tuple[int, int, int]
"""A part of the file: its offset, its address in memory, and its size."""


class Image:
    """The dynamic section and its tables."""

    def __init__(
        self, content: FileContent, layout: ElfLayout, segments: list[Segment], dynamic: bytes
    ) -> None:
        self.content, self.layout, self._segments = content, layout, segments
        self.tags: dict[int, int] = {}
        """Each tag's last value."""
        self.needed: list[int] = []
        """All values of DT_NEEDED."""
        for tag, value in whole_entries(layout.dynamic, dynamic):
            if tag == _DT_NULL:
                break
            if tag == _DT_NEEDED:
                self.needed.append(value)
            else:
                self.tags[tag] = value

    def place(self, address: int) -> tuple[int, int] | None:
        """Map an address to a position and a size in the file.

        The size is the number of bytes from the address to its segment's end.
        """
        for offset, start, size in self._segments:
            if start <= address < start + size:
                return offset + address - start, start + size - address
        return None

    def room(self, address: int, most: int) -> int:
        """Return the bytes from an address to its segment's end, at most `most`."""
        place = self.place(address)
        return most if place is None else min(place[1], most)

    def table(self, address: int, size: int, subject: str, limit: int = TABLE_LIMIT) -> bytes:
        """Return the table at an address. Raises `UnreadableError`."""
        place = self.place(address)
        if place is None or size > place[1]:
            raise UnreadableError(f"{subject} not read: their table is not in any segment")
        return self.content.table(place[0], size, subject, limit)

    def needed_versions(self, subject: str) -> Iterator[tuple[int, int, int, int]]:
        """Yield the library, name, flags and number of each needed version.

        The names are offsets in the string table. Raises `UnreadableError`.
        """
        for library, version in self._versions(DT_VERNEED, "HHIII", "IHHII", subject):
            _, flags, number, name, _ = version
            yield library[2], name, flags, number & VERSION_NUMBER

    def defined_versions(self, subject: str) -> Iterator[tuple[int, int, int]]:
        """Yield the name, flags and number of each defined version. Raises `UnreadableError`."""
        for version, names in self._versions(DT_VERDEF, "HHHHIII", "II", subject):
            _, flags, number, *_ = version
            yield names[0], flags, number & VERSION_NUMBER

    def _versions(
        self, tag: int, outer_form: str, inner_form: str, subject: str
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield the entries of a table of versions, each with every inner entry that is read.

        The last two fields of an entry are the offsets of its first inner entry and of the next
        entry. Raises `UnreadableError`, also for more than `_VERSIONS_LIMIT` entries.
        """
        if tag not in self.tags:
            return
        outer, inner = (Struct(self.layout.order + form) for form in (outer_form, inner_form))
        address = self.tags[tag]
        data = self.table(address, self.room(address, _VERSIONS_SIZE), subject)
        left = iter(range(_VERSIONS_LIMIT))

        def linked(form: Struct, at: int, count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
            for _ in range(count):
                if next(left, None) is None or at + form.size > len(data):
                    raise UnreadableError(f"{subject} not read: outside their table, or too many")
                fields = form.unpack_from(data, at)
                yield at, fields
                if fields[-1] == 0:
                    break
                at += fields[-1]

        # The next tag is the number of entries.
        for at, fields in linked(outer, 0, self.tags.get(tag + 1, _VERSIONS_LIMIT)):
            # Further names of a defined version are those of its parents.
            count = fields[1] if tag == DT_VERNEED else 1
            for _, further in linked(inner, at + fields[-2], count):
                yield fields, further
