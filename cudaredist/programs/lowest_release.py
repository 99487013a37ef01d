"""The lowest release of each redistributable that has the libraries and symbols of a program."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from cudaredist.features.library_symbols import export_groups, import_groups
from cudaredist.grouping import grouped
from cudaredist.primitives import Version
from cudaredist.programs.needs import LibraryNeed
from cudaredist.programs.program import KnownLibrary, Majors, ProgramFile, Tables
from cudaredist.programs.report import AuditedRelease, BoundKind
from cudaredist.sets.library_names import key_of, stem_of
from cudaredist.tables.symbols.symbol_table import Import, SymbolColumns

_of_cxx_library = re.compile(r"_Z(?:T[IVSCT])?N?K?S[abdiost]|_Z(?:nw|na|dl|da)").match
"""Matches mangled names of `std` (`_ZNSs...`, `_ZTISt...`), and of `new` and `delete`."""
_find_namespace = re.compile(r"_Z(?:T[IVSCT])?NK?([0-9]{1,3})").match
"""Matches mangled names in a namespace, with the length of its name."""
_NAMES = 5
"""Symbols that are named."""
_PATCH = 2
"""Position of the patch in a label."""
_WITH_ALL_PATCHES = frozenset({"nccl"})
"""Redistributables whose patch releases are all in the shipped data."""


class RequiredRelease(NamedTuple):
    """The releases of one redistributable that fit a program."""

    redist: str
    cuda_majors: tuple[int, ...]
    """The CUDA majors of the files that need the libraries. Empty: any major."""
    fits_of: Mapping[str, Mapping[Version, bool | None]]
    """The releases that have each library, and whether they export all of its symbols."""
    first: Version | None
    """The oldest release with all of the libraries."""
    last: Version | None
    """The newest release with all of the libraries."""
    lowest: Version | None
    """The oldest release that exports all symbols. None: none does, or it is unknown."""
    may_be_earlier: bool
    """Whether a patch release before the lowest one, which is not in the data, may fit."""
    unknown: tuple[Version, ...]
    """The releases with unknown symbols."""
    lacking: Mapping[Version, tuple[str, ...]]
    """The releases that do not export all symbols, with some of those that they lack."""
    decisive: tuple[str, ...]
    """Some symbols that the release before the lowest one lacks."""
    unresolved: tuple[str, ...]
    """Some symbols that no release exports."""

    @property
    def sonames(self) -> tuple[str, ...]:
        """The libraries that the program needs."""
        return tuple(self.fits_of)

    @property
    def fits_none(self) -> bool:
        """Whether it is known that no release has all libraries and symbols."""
        return self.lowest is None and not self.unknown

    @property
    def lacks_library(self) -> bool:
        """Whether one of the libraries is in no release."""
        return not all(self.fits_of.values())

    @property
    def lower_bound(self) -> BoundKind:
        """The kind of lower bound for the requirement of a wheel."""
        if self.lowest is not None:
            return "symbols" if self.decisive else "oldest"
        if self.lacks_library:
            return "missing"
        return "none" if self.fits_none else "unknown"

    def absent(self, label: Version) -> tuple[str, ...]:
        """Return the libraries that a release does not have."""
        return tuple(soname for soname, labels in self.fits_of.items() if label not in labels)

    def report(self) -> AuditedRelease:
        """Return the entry of the report."""
        return AuditedRelease(
            redist=self.redist,
            cuda_majors=self.cuda_majors,
            sonames=self.sonames,
            lowest=None if self.lowest is None else str(self.lowest),
            may_be_earlier=self.may_be_earlier,
            first=None if self.first is None else str(self.first),
            last=None if self.last is None else str(self.last),
            unknown=tuple(map(str, self.unknown)),
            not_fitting=tuple(map(str, self.lacking)),
            decisive=self.decisive,
            unresolved=self.unresolved,
        )


def symbols_by_library(
    program: Sequence[ProgramFile], sonames: Collection[str], tables: Tables
) -> dict[str, set[Import]]:
    """Return the symbols that a program takes from each of some libraries.

    A symbol that does not state its library belongs to the first needed library that exports it in
    any release, unless a library of the program exports it. Those of C++'s own library do not
    count, as other libraries may contain parts of it. Nor do those in a namespace with the name of
    another needed library, such as `rapids_logger` of `librapids_logger.so`.
    """
    keys = {key_of(soname): soname for soname in sonames}
    stems = {stem_of(soname).removeprefix("lib") for soname in sonames}
    exported = {
        soname: {export.name for export in tables[soname].exports}
        for soname in sonames
        if soname in tables
    }
    imports: dict[str, set[Import]] = defaultdict(set)
    guessed: set[str] = set()
    for file in program:
        used = map(key_of, (*file.binary.needed, *file.unlinked))
        needed = [keys[key] for key in used if key in keys]
        others = {stem_of(name).removeprefix("lib") for name in file.binary.needed} - stems
        for names, version, library in import_groups(file.binary) if needed else ():
            if library:
                owner = keys.get(key_of(library))
                if owner is not None:
                    imports[owner].update(Import(name, version, library) for name in names)
                continue
            left = {name for name in names if not _of_cxx_library(name)}
            for soname in needed:
                taken = left & exported.get(soname, set())
                taken = {name for name in taken if _namespace_of(name) not in others}
                imports[soname].update(Import(name, version, "") for name in taken)
                guessed |= taken
                left -= taken
    own = exported_names(program, guessed)
    return {
        soname: {symbol for symbol in symbols if symbol.library or symbol.name not in own}
        for soname, symbols in imports.items()
    }


def _namespace_of(name: str) -> str:
    """Return the outermost namespace of a mangled name of C++, or an empty string."""
    match = _find_namespace(name)
    return name[match.end() :][: int(match[1])] if match else ""


def exported_names(program: Iterable[ProgramFile], names: Collection[str]) -> set[str]:
    """Return the given names that files of the program export."""
    if not names:
        return set()
    wanted = frozenset(names)
    groups = (group for file in program for group, _ in export_groups(file.binary))
    return set().union(*map(wanted.intersection, groups))


def required_releases(
    needs: Sequence[LibraryNeed], program: Sequence[ProgramFile], tables: Tables, majors: Majors
) -> tuple[RequiredRelease, ...]:
    """Return the releases that fit a program, for each redistributable that it needs.

    `needs` are those of the files for the given CUDA majors.
    """
    provided = [need for need in needs if need.status == "provided" and need.kind != "opened"]
    symbols = symbols_by_library(program, [need.soname for need in provided], tables)
    unreadable = (file.binary for file in program if "symbols" in file.binary.unread)
    unread = {key_of(name) for binary in unreadable for name in binary.needed}
    by_redist: dict[str, dict[str, _LibraryState]] = defaultdict(dict)
    for need in provided:
        soname = need.soname
        table = None if key_of(soname) in unread else tables.get(soname)
        for redist, libraries in grouped((lib.redist, lib) for lib in need.libraries).items():
            by_redist[redist][soname] = _LibraryState(libraries, table, symbols.get(soname, ()))
    for need in needs:
        for redist in set(need.products) & by_redist.keys():
            # No release has a missing library, so none has all libraries.
            by_redist[redist][need.soname] = _LibraryState((), None, ())
    return tuple(_required(*entry, majors) for entry in sorted(by_redist.items()))


class _LibraryState:
    """The releases of one library, and whether each exports the symbols."""

    def __init__(
        self, known: Iterable[KnownLibrary], table: SymbolColumns | None, symbols: Iterable[Import]
    ) -> None:
        self.fits: dict[Version, bool | None] = {}
        """Whether a release exports all symbols. None if it is unknown."""
        self._masks = _masks(table, set(symbols)) if table else {}
        self._bits: dict[Version, int] = defaultdict(int)
        columns = table.columns.items() if table else ()
        bits = {column.archive: bit for column, bit in columns if not column.provider.stub}
        for library in known:
            bit, label = bits.get(library.archive, 0), library.label
            self._bits[label] |= bit
            if bit == 0:
                self.fits.setdefault(label, None)
            else:
                # One platform that fits is enough.
                is_fitting = all(mask & bit for mask in self._masks.values())
                self.fits[label] = self.fits.get(label) is True or is_fitting

    def lacking(self, labels: Iterable[Version]) -> list[str]:
        """Return the symbols that none of the given releases exports."""
        bits = reduce(or_, (self._bits.get(label, 0) for label in labels), 0)
        return [symbol.name for symbol, mask in self._masks.items() if not mask & bits]


def _masks(table: SymbolColumns, symbols: Collection[Import]) -> dict[Import, int]:
    """Return the columns that export each symbol."""
    by_name = grouped((symbol.name, symbol) for symbol in symbols)
    masks = dict.fromkeys(symbols, 0)
    for export, mask in table.exports.items():
        for symbol in by_name.get(export.name, ()):
            if symbol.is_met_by(export.version):
                masks[symbol] |= mask
    return masks


def _required(redist: str, states: Mapping[str, _LibraryState], majors: Majors) -> RequiredRelease:
    labels = sorted(set.intersection(*(set(state.fits) for state in states.values())))
    verdicts = {label: {state.fits[label] for state in states.values()} for label in labels}
    fitting = [label for label in labels if verdicts[label] == {True}]
    lacking = [label for label in labels if False in verdicts[label]]
    unknown = [label for label in labels if label not in {*fitting, *lacking}]
    below = [label for label in lacking if fitting and label < fitting[0]]
    every = {label for state in states.values() for label in state.fits}
    has_all_patches = redist in _WITH_ALL_PATCHES

    def names(*labels: Version) -> tuple[str, ...]:
        missing = (name for state in states.values() for name in state.lacking(labels))
        return tuple(sorted(missing)[:_NAMES])

    return RequiredRelease(
        redist=redist,
        cuda_majors=tuple(sorted(majors)),
        fits_of={soname: state.fits for soname, state in states.items()},
        first=labels[0] if labels else None,
        last=labels[-1] if labels else None,
        lowest=fitting[0] if fitting else None,
        may_be_earlier=bool(below)
        and not has_all_patches
        and _earlier_patch_may_exist(fitting[0], every),
        unknown=tuple(unknown),
        lacking={label: names(label) for label in lacking},
        decisive=names(below[-1]) if below else (),
        unresolved=() if fitting or unknown else names(*every),
    )


def _earlier_patch_may_exist(lowest: Version, known: Iterable[Version]) -> bool:
    """Check if a release is x.y.1 or later, and the data has no earlier patch of x.y."""
    if len(lowest.components) <= _PATCH or lowest.components[_PATCH] == 0:
        return False
    minor = lowest.components[:_PATCH]
    return all(label.components[:_PATCH] != minor or label >= lowest for label in known)
