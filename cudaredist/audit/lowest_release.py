"""The lowest release of each redistributable that has the libraries and symbols of a program."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from cudaredist.audit.needs import LibraryNeed
from cudaredist.audit.program import KnownLibrary, ProgramFile
from cudaredist.features.library_symbols import exports_of, imports_of
from cudaredist.packagesets.libraries import key_of
from cudaredist.primitives import Version
from cudaredist.tables.symbols.symbol_table import Import, SymbolColumns

_of_cxx_library = re.compile(r"_Z(?:T[IVSCT])?N?K?S[abdiost]|_Z(?:nw|na|dl|da)").match
_NAMES = 5
"""Symbols that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredRelease:
    """The releases of one redistributable that fit a program."""

    redist: str
    sonames: tuple[str, ...]
    labels: tuple[Version, ...]
    """Releases that have all of the libraries, in ascending order."""
    fitting: tuple[Version, ...]
    """Those of them that also export all symbols."""
    unknown: tuple[Version, ...]
    """Those of them with unknown symbols."""
    lacking: Mapping[Version, tuple[str, ...]]
    """Some symbols that releases do not export."""
    labels_of: Mapping[str, frozenset[Version]]
    """The releases that have each library."""
    majors: frozenset[int]
    """The CUDA majors of the part of the program that needs them.

    Empty if it states none.
    """
    unresolved: tuple[str, ...] = ()
    """Symbols that no release exports, if all are known."""

    @property
    def lowest(self) -> Version | None:
        """The lowest fitting release. None if it is unknown, or there is none."""
        return self.fitting[0] if self.fitting else None

    @property
    def fits_none(self) -> bool:
        """Whether it is known that no release has all libraries and symbols."""
        return not self.fitting and not self.unknown

    @property
    def decisive(self) -> tuple[str, ...]:
        """Symbols that the newest release below the lowest fitting one lacks."""
        below = [label for label in self.lacking if self.fitting and label < self.fitting[0]]
        return self.lacking[max(below)] if below else ()

    def absent(self, label: Version) -> tuple[str, ...]:
        """Return the libraries that a release does not have."""
        return tuple(soname for soname in self.sonames if label not in self.labels_of[soname])


def symbols_by_library(
    program: Sequence[ProgramFile], sonames: Collection[str], tables: Mapping[str, SymbolColumns]
) -> dict[str, set[Import]]:
    """Return the symbols that a program takes from each of some libraries.

    A symbol that does not state its library belongs to the first needed library that exports it in
    any release, unless a library of the program exports it. Those of C++'s own library do not
    count, as other libraries may contain parts of it.
    """
    keys = {key_of(soname): soname for soname in sonames}
    exported = {
        soname: {export.name for export in tables[soname].exports}
        for soname in sonames
        if soname in tables
    }
    found: dict[str, set[Import]] = defaultdict(set)
    unowned: set[str] = set()
    for file in program:
        used = (*file.binary.needed, *file.unlinked)
        needed = [keys[key_of(name)] for name in used if key_of(name) in keys]
        for one in imports_of(file.binary) if needed else ():
            owner = keys.get(key_of(one.library)) if one.library else None
            if not one.library and not _of_cxx_library(one.name):
                owner = next((s for s in needed if one.name in exported.get(s, ())), None)
                unowned |= {one.name} if owner is not None else set()
            if owner is not None:
                found[owner].add(one)
    own = exported_names(program, unowned)
    return {
        soname: {one for one in symbols if one.library or one.name not in own}
        for soname, symbols in found.items()
    }


def exported_names(program: Iterable[ProgramFile], names: Collection[str]) -> set[str]:
    """Return those of some names that files of the program export."""
    if not names:
        return set()
    exports = (one.name for file in program for one in exports_of(file.binary))
    return {name for name in exports if name in names}


def required_releases(
    needs: Sequence[LibraryNeed],
    program: Sequence[ProgramFile],
    tables: Mapping[str, SymbolColumns],
    majors: frozenset[int],
) -> tuple[RequiredRelease, ...]:
    """Return the releases that fit a program, for each redistributable that it needs.

    `needs` are those of its part for some CUDA majors.
    """
    provided = [need for need in needs if need.status == "provided" and need.kind != "opened"]
    symbols = symbols_by_library(program, [need.soname for need in provided], tables)
    unread = {
        key_of(name)
        for file in program
        if "symbols" in file.binary.unread
        for name in file.binary.needed
    }
    by_redist: dict[str, list[tuple[str, list[KnownLibrary]]]] = defaultdict(list)
    for need in provided:
        for redist in dict.fromkeys(one.redist for one in need.providers):
            libraries = [one for one in need.providers if one.redist == redist]
            by_redist[redist].append((need.soname, libraries))
    found = []
    for redist, entries in sorted(by_redist.items()):
        states = {
            soname: _LibraryState(
                known,
                None if key_of(soname) in unread else tables.get(soname),
                symbols.get(soname, set()),
            )
            for soname, known in entries
        }
        found.append(_required(redist, states, majors))
    return tuple(found)


class _LibraryState:
    """The releases of one library, and whether each exports the symbols."""

    def __init__(
        self, known: Iterable[KnownLibrary], table: SymbolColumns | None, symbols: Iterable[Import]
    ) -> None:
        self.labels: dict[Version, bool | None] = {}
        """Whether a release exports all symbols. None if it is unknown."""
        self.masks = _masks(table, set(symbols)) if table else {}
        self._bits: dict[Version, int] = {}
        bits = {
            column.archive: bit
            for column, bit in (table.columns.items() if table else ())
            if not column.provider.is_stub
        }
        for library in known:
            bit = bits.get(library.archive)
            fits = None if bit is None else all(mask & bit for mask in self.masks.values())
            if bit is not None:
                self._bits[library.label] = self._bits.get(library.label, 0) | bit
            before = self.labels.get(library.label)
            self.labels[library.label] = before if fits is None else bool(before) or fits

    def lacking(self, label: Version) -> list[str]:
        """Return the symbols that a release does not export."""
        bits = self._bits.get(label, 0)
        return sorted(one.name for one, mask in self.masks.items() if not mask & bits)

    def unresolved(self) -> list[str]:
        """Return the symbols that no release exports."""
        bits = reduce(or_, self._bits.values(), 0)
        return sorted(one.name for one, mask in self.masks.items() if not mask & bits)


def _masks(table: SymbolColumns, symbols: Collection[Import]) -> dict[Import, int]:
    """Return the columns that export each symbol.

    A library without versions has a symbol for any version.
    """
    by_name: dict[str, list[Import]] = defaultdict(list)
    for one in symbols:
        by_name[one.name].append(one)
    masks = dict.fromkeys(symbols, 0)
    for export, mask in table.exports.items():
        for one in by_name.get(export.name, ()):
            if not one.version or export.version.lstrip("@") in {"", one.version}:
                masks[one] |= mask
    return masks


def _required(
    redist: str, states: Mapping[str, _LibraryState], majors: frozenset[int]
) -> RequiredRelease:
    common = set.intersection(*(set(state.labels) for state in states.values()))
    labels = tuple(sorted(common))
    verdicts = {label: [state.labels[label] for state in states.values()] for label in labels}
    fitting = tuple(label for label in labels if all(verdicts[label]))
    unknown = tuple(
        label for label in labels if None in verdicts[label] and False not in verdicts[label]
    )
    lacking = {
        label: tuple(sorted(n for state in states.values() for n in state.lacking(label))[:_NAMES])
        for label in labels
        if False in verdicts[label]
    }
    unresolved = [] if fitting or unknown else [n for s in states.values() for n in s.unresolved()]
    return RequiredRelease(
        redist=redist,
        sonames=tuple(states),
        labels=labels,
        fitting=fitting,
        unknown=unknown,
        lacking=lacking,
        labels_of={soname: frozenset(state.labels) for soname, state in states.items()},
        majors=majors,
        unresolved=tuple(sorted(unresolved)[:_NAMES]),
    )
