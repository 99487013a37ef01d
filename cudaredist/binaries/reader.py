"""The common base of all readers of binaries."""

import abc
import contextlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from struct import Struct

from cudaredist.binaries.fatbin import FatbinScanner
from cudaredist.binaries.file_content import FileContent, UnreadableError, text_of_name
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.opened_names import OpenedNames

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


class Reader(abc.ABC):
    """A reader of a file's facts.

    `feed` takes all bytes in order, and searches them for device code and names of libraries. Then
    `finish` reads the tables at their positions. Invalid bytes never raise an error.
    """

    opened_names: OpenedNames | None = None
    """The names of libraries in its data, if files of this kind may open libraries."""
    _content: FileContent

    def __init__(self) -> None:
        self.scanner = FatbinScanner()
        self._notes: set[str] = set()
        self._lost: set[str] = set()
        """The facts that depend on a table that could not be read completely."""

    def feed(self, block: bytes) -> None:
        """Search the next bytes."""
        self.scanner.feed(block)
        if self.opened_names is not None:
            self.opened_names.feed(block)

    def finish(self, content: FileContent) -> Binary:
        """Read the tables and return the facts, after the last bytes. Raises `ReadError`."""
        self.scanner.finish()
        if self.opened_names is not None and self.opened_names.is_cut:
            self.lose("opened libraries not read: too many names", "opens")
        self._content = content
        self._read()
        return self._facts()

    def note(self, text: str) -> None:
        """Add a note, unless it exists already."""
        self._notes.add(text)

    def lose(self, text: str, *facts: str) -> None:
        """Mark facts as unread, with a note."""
        self.note(text)
        self._lost.update(facts)

    @contextlib.contextmanager
    def losing(self, *facts: str) -> Iterator[None]:
        """Mark facts as unread if the block raises `UnreadableError`."""
        try:
            yield
        except UnreadableError as error:
            self.lose(str(error), *facts)

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes, sorted."""
        return tuple(sorted({*self._notes, *self.scanner.notes}))

    @property
    def unread(self) -> tuple[str, ...]:
        """The unreadable facts, sorted."""
        return tuple(sorted(self._lost))

    def opens_besides(self, soname: str | None, needed: Iterable[str]) -> tuple[str, ...]:
        """Return the library names in its data.

        Its own name and needed ones are excluded.
        """
        names = () if self.opened_names is None else self.opened_names.names()
        known = {soname, *needed}
        return tuple(name for name in names if name not in known)

    @abc.abstractmethod
    def _read(self) -> None:
        """Read the tables."""

    @abc.abstractmethod
    def _facts(self) -> Binary: ...


class FatbinReader(Reader):
    """Reader of a file of only device code."""

    def _read(self) -> None:
        """Do nothing, because the file has no tables."""

    def _facts(self) -> Binary:
        code = self.scanner.by_section(lambda _: ("", True))
        images = self.scanner.images()
        return Binary(kind="fatbin", device_code=code, images=images, notes=self.notes)


class Sections:
    """The sections of a file by position."""

    def __init__(self, declared: frozenset[str]) -> None:
        self._declared = declared
        self._places: list[tuple[int, int, str]] = []
        self._starts: list[int] | None = None

    def add(self, start: int, size: int, name: str) -> None:
        """Add a section if it has bytes in the file."""
        if size > 0:
            self._places.append((start, size, name))
            self._starts = None

    def add_named(self, table: bytes, sections: Iterable[tuple[int, int, int]]) -> None:
        """Add sections by start, size, and position of the name.

        The name is in `table`.
        """
        names: dict[int, str] = {}
        for start, size, name in sections:
            if name not in names:
                names[name] = section_name(table, name)
            self.add(start, size, names[name])

    def at(self, place: int) -> tuple[str, bool]:
        """Return the section at a byte.

        The result is its name, and whether it is for device code.
        """
        if self._starts is None:
            self._places.sort()
            self._starts = [start for start, _, _ in self._places]
        index = bisect_right(self._starts, place) - 1
        if index >= 0:
            start, size, name = self._places[index]
            if place < start + size:
                return name, name in self._declared
        return "", False
