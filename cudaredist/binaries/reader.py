"""The common base of all readers of binaries."""

import contextlib
import functools
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from struct import Struct
from typing import Any, ClassVar

from cudaredist.binaries.cubin import read_cubins
from cudaredist.binaries.fatbin import CodeScanner
from cudaredist.binaries.file_content import FileContent, UnreadableError, text_of_name
from cudaredist.binaries.file_facts import Binary, BinaryKind
from cudaredist.binaries.opened_names import LibraryNames, opened_names

ENDS_EARLY = "the file ends at byte"
"""The beginning of the note on a file that is shorter than its headers state."""
NAMES_LIMIT = 1024
"""Maximum names of one table. A real file has a few dozen."""
_SECTION_NAME_LIMIT = 256


def section_name(table: bytes, start: int) -> str:
    """Return the name at a position of a table.

    It is empty if it is invalid or too long. Without a limit, a hostile file with thousands of
    sections that share one long name would use too much memory.
    """
    end = table.find(b"\0", start, start + _SECTION_NAME_LIMIT + 1)
    return (text_of_name(table[start:end]) or "") if end >= 0 else ""


def whole_entries(layout: Struct, data: bytes) -> Iterator[tuple[int, ...]]:
    """Return the complete entries of a table."""
    return layout.iter_unpack(data[: len(data) - len(data) % layout.size])


class Reader:
    """A reader of one file's facts. Invalid bytes never raise an error.

    This class reads a file of only device code. The others also read tables.
    """

    kind: ClassVar[BinaryKind] = "fatbin"
    declared: ClassVar = frozenset({""})
    """The sections for device code. Files without sections have all code in the section ""."""
    opens: LibraryNames | None = None
    """The form of the names of libraries that it may open, None if it does not open any."""

    def __init__(self, content: FileContent) -> None:
        self.content = content
        self.sections = Sections(self.declared)
        self.are_sections_read = True
        self.skipped: list[tuple[int, int]] = []
        """Ranges that contain neither device code nor names of libraries that it may open."""
        self.found: dict[str, Any] = {}
        """The facts of its tables, by field of `Binary`."""
        self.lost: set[str] = set()
        """The facts that depend on a table that could not be read completely."""
        self._notes: set[str] = set()

    def facts(self) -> Binary:
        """Return the facts. Raises `ReadError`."""
        self.read_tables()
        self.sections.ranges.sort()
        code = CodeScanner(self.content, self.sections.at)
        with self.losing():
            code.search(self.skipped)
        self.skipped += code.ranges
        cubins = None
        with self.losing():
            cubins = read_cubins(self.content, self.skipped)
        self._notes.update(code.notes())
        sections = tuple(code.sections())
        if sections and not self.are_sections_read:
            self.note("section of device code unknown: the section headers are not read")
        facts = {field: fact for field, fact in self.found.items() if field not in self.lost}
        if self.opens is not None:
            own = {facts.get("soname"), *facts.get("needed", ())}
            with self.losing("opens"):
                names = opened_names(self.content, self.skipped, self.opens)
                facts["opens"] = tuple(sorted(names - own))
        return Binary(
            kind=self.kind,
            **facts,
            device_code=sections,
            images=code.images(),
            cubins=cubins,
            unread=tuple(sorted(self.lost)),
            notes=tuple(sorted(self._notes)),
        )

    def note(self, text: str) -> None:
        """Add a note, unless it exists already."""
        self._notes.add(text)

    def note_end(self, end: int) -> None:
        """Add a note if the file is shorter than its headers state."""
        if end > self.content.size:
            self.note(f"{ENDS_EARLY} {self.content.size:,} of {end:,}")

    @contextlib.contextmanager
    def losing(self, *facts: str) -> Iterator[None]:
        """Mark facts as unread if the block raises `UnreadableError`."""
        try:
            yield
        except UnreadableError as error:
            self.note(str(error))
            self.lost.update(facts)

    def read_tables(self) -> None:
        """Read the tables, if the format has any."""


class Sections:
    """The sections of a file by position."""

    def __init__(self, declared: frozenset[str]) -> None:
        self._declared = declared
        self.ranges: list[tuple[int, int, str]] = []
        """The start, size and name of each section. `at` requires them sorted."""

    def add(self, start: int, size: int, name: str) -> None:
        """Add a section if it has bytes in the file."""
        if size > 0:
            self.ranges.append((start, size, name))

    def add_named(self, table: bytes, sections: Iterable[tuple[int, int, int]]) -> None:
        """Add sections by start, size, and position of the name.

        The name is in `table`.
        """
        name_at = functools.cache(functools.partial(section_name, table))
        for start, size, name in sections:
            self.add(start, size, name_at(name))

    def at(self, position: int) -> tuple[str, bool]:
        """Return the section at a byte.

        The result is its name, and whether it is for device code.
        """
        index = bisect_right(self.ranges, position, key=itemgetter(0)) - 1
        start, size, name = self.ranges[index] if index >= 0 else (0, 0, "")
        name = name if position < start + size else ""
        return name, name in self._declared
