"""Symbols that the libraries of a package export in one of two releases only."""

import json
from collections import defaultdict
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.primitives import Place, place_name
from cudaredist.store.facts_index import Index
from cudaredist.tables.symbols.symbol_table import KEY_SIZE

EXPORTS = "exports"
_Names: TypeAlias = tuple[str, ...]
_Archive: TypeAlias = tuple[str, AbstractSet[str] | None]
"""The beginning of its hash, and its libraries, None if it was not examined."""


class ExportChange(NamedTuple):
    """Names that a library of a package no longer exports, and new ones."""

    package: str
    library: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    places: tuple[Place, ...]


class ExportChanges(NamedTuple):
    """The changes of exports between two releases."""

    changes: tuple[ExportChange, ...]
    """Libraries with removed symbols are first."""
    unknown: frozenset[tuple[str, Place]]
    """Packages and places with symbols that are unknown in one of the two releases."""


class ReleaseExports:
    """The exports of the libraries in some releases, without the versions of symbols."""

    def __init__(self, index: Index, releases: Collection[str]) -> None:
        """Read the libraries of releases, such as `cuda@12.9.1`.

        Raises `ReadError` and `InvalidFileError` for a table that cannot be read.
        """
        self._index = index
        self._archives: dict[str, dict[tuple[str, Place], _Archive]] = defaultdict(dict)
        self._names: dict[int, set[str]] = {}
        query = f"""
            SELECT redist || '@' || label, package, platform, variant,
                substr(coalesce(sha256, ''), 1, {KEY_SIZE}), archives.contents,
                json_group_array(library)
            FROM releases JOIN archives ON release = releases.id
            LEFT JOIN binaries ON binaries.contents = archives.contents AND kind = 'library'
            WHERE layer = ? AND redist || '@' || label IN (SELECT value FROM json_each(?))
            GROUP BY archives.id"""
        for release, package, *where, key, contents, names in index.rows(
            query, index.layer, releases
        ):
            libraries = frozenset(json.loads(names)) - {None}
            if libraries or contents is None:
                known = None if contents is None else libraries
                self._archives[release][package, place_name(*where)] = key, known
        archives = [one for own in self._archives.values() for one in own.values()]
        self._libraries = {(name, key) for key, names in archives for name in names or ()}
        index.check_symbols({name for name, _ in self._libraries})
        query = """
            SELECT library, archive, json_group_array(symbol_group) FROM archive_exports
            WHERE NOT is_stub AND archive IN (SELECT value FROM json_each(?))
            GROUP BY library, archive"""
        self._groups = {
            (library, key): frozenset(json.loads(groups)) - {None}
            for library, key, groups in index.rows(query, {key for _, key in self._libraries})
        }

    def unknown_libraries(self) -> tuple[str, ...]:
        """Return the libraries whose symbols are unknown in an archive, sorted."""
        return tuple(sorted({name for name, _ in self._libraries - self._groups.keys()}))

    def changes(self, old: str, new: str) -> ExportChanges:
        """Return the changes of libraries that both releases have for a platform and variant."""
        before, after = self._archives[old], self._archives[new]
        places: dict[tuple[str, str, _Names, _Names], list[Place]] = defaultdict(list)
        unknown = set()
        for package, place in sorted(before.keys() & after.keys()):
            (old_key, libraries), (key, others) = before[package, place], after[package, place]
            if libraries is None or others is None:
                unknown.add((package, place))
                continue
            for library in libraries & others:
                first = self._groups.get((library, old_key))
                second = self._groups.get((library, key))
                if first is None or second is None:
                    unknown.add((package, place))
                elif first != second:
                    change = self._without(first, second), self._without(second, first)
                    places[package, library, *change].append(place)
        changes = [
            ExportChange(*key, tuple(names)) for key, names in places.items() if any(key[2:])
        ]
        changes.sort(key=lambda change: (not change.removed, change))
        return ExportChanges(tuple(changes), frozenset(unknown))

    def _without(self, groups: AbstractSet[int], others: AbstractSet[int]) -> _Names:
        """Return the names of some groups that others lack."""
        names = set[str]().union(*map(self._names_of, groups - others))
        return tuple(sorted(names.difference(*map(self._names_of, others)))) if names else ()

    def _names_of(self, group: int) -> set[str]:
        if group not in self._names:
            query = "SELECT name FROM symbols WHERE symbol_group = ?"
            self._names[group] = {name for (name,) in self._index.rows(query, str(group))}
        return self._names[group]


def add_exports(old: Comparable, new: Comparable, index: Index) -> None:
    """Add the names that libraries of both releases export in one of them only."""
    names = old.name, new.name
    changes = ReleaseExports(index, names).changes(*names)
    for change in changes.changes:
        for place in change.places:
            if (change.package, place) not in changes.unknown:
                for side, added in ((old, change.removed), (new, change.added)):
                    fields, key = side.packages[change.package], (EXPORTS, place)
                    known = fields.get(key, frozenset())
                    fields[key] = frozenset(known) | {f"{change.library}:{name}" for name in added}
