"""What the readers of all kinds share: one pass, a window on the tables, a scan for device code."""

import abc
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from struct import Struct

from cudaredist.binaries.fatbin import FatbinScanner
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.opened_names import OpenedNames
from cudaredist.binaries.range_buffer import Window, text_of_name

NAMES_LIMIT = 1024
"""The most names of one table; a real file has a few dozen."""
_SECTION_NAME_LIMIT = 256


def section_name(table: bytes, start: int) -> str:
    """Return the name in a table that begins at a place; empty where it is none, or too long.

    Thousands of sections may name the same mebibyte.
    """
    end = table.find(b"\0", start, start + _SECTION_NAME_LIMIT + 1)
    return (text_of_name(table[start:end]) or "") if end >= 0 else ""


def whole_entries(layout: Struct, data: bytes) -> Iterator[tuple[int, ...]]:
    """Return the entries of a table, without one that is cut off."""
    return layout.iter_unpack(data[: len(data) - len(data) % layout.size])


class Reader(abc.ABC):
    """Takes a file's bytes in order and gives its facts at the end; never raises over them."""

    opened_names: OpenedNames | None = None
    """The names of libraries in its data, if it is of a kind that may open any."""

    def __init__(self) -> None:
        self.window = Window()
        self.scanner = FatbinScanner()

    def feed(self, block: bytes) -> None:
        """Take the next bytes."""
        self.window.feed(block)
        self.scanner.feed(block)
        if self.opened_names is not None:
            self.opened_names.feed(block)

    def finish(self) -> Binary:
        """Return what was read; no more bytes come."""
        self.window.finish()
        self.scanner.finish()
        if self.opened_names is not None and self.opened_names.is_cut:
            self.window.lose("opened libraries not read: too many names", "opens")
        return self._facts()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd, in an order that does not depend on that of the tables."""
        return tuple(sorted({**self.window.notes, **self.scanner.notes}))

    @property
    def unread(self) -> tuple[str, ...]:
        """The facts that could not be read."""
        return tuple(sorted(self.window.unread))

    def opens_besides(self, soname: str | None, needed: Iterable[str]) -> tuple[str, ...]:
        """Return the names of libraries in its data, without its own and those that it needs."""
        names = () if self.opened_names is None else self.opened_names.names()
        known = {soname, *needed}
        return tuple(name for name in names if name not in known)

    @abc.abstractmethod
    def _facts(self) -> Binary: ...


class FatbinReader(Reader):
    """Reads a file that is device code from its first byte."""

    def _facts(self) -> Binary:
        code = self.scanner.by_section(lambda _: ("", True))
        images = self.scanner.images()
        return Binary(kind="fatbin", device_code=code, images=images, notes=self.notes)


class Sections:
    """The sections of a file, by their places; answers in which one a byte stands."""

    def __init__(self, declared: frozenset[str]) -> None:
        self._declared = declared
        self._places: list[tuple[int, int, str]] = []
        self._starts: list[int] | None = None

    def add(self, start: int, size: int, name: str) -> None:
        """Remember a section that has bytes in the file."""
        if size > 0:
            self._places.append((start, size, name))
            self._starts = None

    def add_named(self, table: bytes, sections: Iterable[tuple[int, int, int]]) -> None:
        """Remember sections by start, size, and the position of the name in a table."""
        names: dict[int, str] = {}
        for start, size, name in sections:
            if name not in names:
                names[name] = section_name(table, name)
            self.add(start, size, names[name])

    def at(self, place: int) -> tuple[str, bool]:
        """Return the name of the section at a byte, and whether it is meant for device code."""
        if self._starts is None:
            self._places.sort()
            self._starts = [start for start, _, _ in self._places]
        index = bisect_right(self._starts, place) - 1
        if index >= 0:
            start, size, name = self._places[index]
            if place < start + size:
                return name, name in self._declared
        return "", False
