"""The exports and imports of an archive's libraries, from its facts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.symbols import (
    DEFINED,
    EXPORTED,
    IMPORTED,
    SYMBOLS,
    UNDEFINED,
    Group,
    unpack_groups,
)
from cudaredist.features.archive_tree import build_tree
from cudaredist.features.facts import Facts
from cudaredist.features.placement import is_stub
from cudaredist.features.wheel import as_redistributable
from cudaredist.tables.symbols.symbol_table import Export, Import

_NAMES_KEPT = 1_000_000
"""Unpacked names that stay in memory, about 100 MB. An environment with torch has 283,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryBinary:
    """One shared library of an archive."""

    soname: str
    """Of a DLL, or of a library without a soname, the name of the file."""
    path: str
    is_stub: bool
    binary: Binary

    @property
    def has_symbols(self) -> bool:
        """Whether its symbols could be read. It may have none."""
        return SYMBOLS not in self.binary.unread

    def exports(self) -> Iterator[Export]:
        """Yield the symbols that other files can use."""
        groups = export_groups(self.binary)
        return (Export(name, version) for names, version in groups for name in names)

    def imports(self) -> Iterator[Import]:
        """Yield the symbols that it needs, with the library if the file states it."""
        groups = import_groups(self.binary)
        return (Import(name, version, lib) for names, version, lib in groups for name in names)


def libraries_of(facts: Facts) -> list[LibraryBinary]:
    """Return the shared libraries of an archive, one for each name, sorted.

    A library that is not a stub comes before one that is, and otherwise the first path counts.
    """
    members, _ = as_redistributable(facts.members)
    files = build_tree(members).files
    libraries: dict[str, LibraryBinary] = {}
    for is_in_stubs, path in sorted((is_stub(path), path) for path in files):
        binary = files[path].binary
        if binary is not None and binary.is_shared:
            name = path.rpartition("/")[2]
            soname = binary.soname if binary.kind == "elf" and binary.soname else name
            library = LibraryBinary(soname=soname, path=path, is_stub=is_in_stubs, binary=binary)
            libraries.setdefault(soname, library)
    return [libraries[soname] for soname in sorted(libraries)]


class _UnpackedSymbols:
    """The symbols of files by their packed text.

    An audit reads those of a file up to five times.
    """

    def __init__(self) -> None:
        self._groups: dict[str, list[Group]] = {}
        self._room = _NAMES_KEPT

    def groups(self, packed: str) -> Iterable[Group]:
        """Return the groups of a packed text."""
        return self._groups.get(packed) or self._unpack(packed)

    def _unpack(self, packed: str) -> Iterator[Group]:
        """Yield the groups, and keep them if there is room."""
        groups: list[Group] = []
        room = self._room
        for group in unpack_groups(packed):
            room -= len(group.names)
            if room >= 0:
                groups.append(group)
            yield group
        if room >= 0:
            self._groups[packed], self._room = groups, room


_unpacked = _UnpackedSymbols()


def export_groups(binary: Binary) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the symbols of a file that other files can use, as names with one version.

    The marks that a linker makes for the versions themselves are left out.
    """
    if not binary.symbols:
        return
    for group in _unpacked.groups(binary.symbols.packed):
        if group.kind == EXPORTED:
            # A line is a name and an ordinal, or only an ordinal.
            parts = (line.rpartition(" ") for line in group.names)
            yield _plain([name or f"#{ordinal}" for name, _, ordinal in parts]), ""
        elif group.kind == DEFINED:
            _, _, visibility, at, sign, version, library = group.properties
            if visibility in {"default", "protected"} and not library:
                names: Sequence[str] = group.names
                if at == "absolute":
                    names = [name for name in names if name != version]
                yield _plain(names), sign + version


def import_groups(binary: Binary) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yield the symbols that a file needs, as names with one version and library.

    Weak symbols are skipped.
    """
    if not binary.symbols:
        return
    for group in _unpacked.groups(binary.symbols.packed):
        if group.kind == IMPORTED:
            yield _plain(group.names), "", group.properties[0]
        elif group.kind == UNDEFINED and group.properties[0] != "weak":
            *_, version, library = group.properties
            yield _plain(group.names), version, library


def _plain(names: Sequence[str]) -> Sequence[str]:
    """Return names without blanks, which separate the names of a table."""
    # Files have 100,000 names, and almost none has a blank.
    if " " not in "".join(names):
        return names
    return [name.replace(" ", "\\x20") for name in names]
