"""Compare the exported symbols of libraries in two releases."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.primitives import Place, place_name
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.symbols.label_ranges import KEY_SIZE

EXPORTS = "exports"
_Names: TypeAlias = tuple[str, ...]


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


class _Library(NamedTuple):
    name: str
    """The release, such as `cuda@12.9.1`."""
    package: str
    platform: str
    variant: str | None
    library: str | None
    """None if the archive was not inspected."""
    groups: str
    """The groups of exported symbols, as JSON. Empty if they are unknown."""


_LIBRARIES = Question(
    _Library,
    f"""
    SELECT redist || '@' || label AS name, package, platform, variant, library, (
        SELECT json_group_array(symbol_group) FROM archive_exports AS known
        WHERE archive = substr(sha256, 1, {KEY_SIZE}) AND known.library = found.library
            AND NOT is_stub
    ) AS groups
    FROM current_releases
    JOIN archives ON release = current_releases.id AND relative_path IS NOT NULL
    LEFT JOIN binaries AS found ON found.contents = archives.contents AND kind = 'library'
    WHERE name IN (SELECT value FROM json_each(?))
        AND (library IS NOT NULL OR archives.contents IS NULL)""",
)


class ReleaseExports:
    """The exports of the libraries in some releases, without the versions of symbols."""

    def __init__(
        self,
        index: Index,
        releases: Collection[str],
        names: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        """Read the libraries of releases, such as `cuda@12.9.1`.

        `names` contains the symbols of groups. By default, they are read if they differ. Raises
        `ReadError` and `InvalidFileError` for a table that cannot be read.
        """
        self._index = index
        self._names = names
        self._archives: dict[str, dict[tuple[str, Place], dict[str, frozenset[int]]]]
        self._archives = defaultdict(lambda: defaultdict(dict))
        """The groups of exported symbols by release, archive and library."""
        self._names_of = cache(self._read_names)
        for row in index.ask(_LIBRARIES, releases):
            # An archive that was not inspected gets one library without a name and symbols.
            place = place_name(row.platform, row.variant)
            libraries = self._archives[row.name][row.package, place]
            libraries[row.library or ""] = frozenset(json.loads(row.groups))
        index.check_symbols({library for library, _ in self._libraries()})

    def _libraries(self) -> Iterator[tuple[str, frozenset[int]]]:
        for archives in self._archives.values():
            for libraries in archives.values():
                yield from libraries.items()

    def unknown_libraries(self) -> tuple[str, ...]:
        """Return the libraries whose symbols are unknown in an archive, sorted."""
        return tuple(sorted({name for name, groups in self._libraries() if name and not groups}))

    def changes(self, old: str, new: str) -> ExportChanges:
        """Return the changes of libraries that both releases have for a platform and variant."""
        before, after = self._archives[old], self._archives[new]
        places: dict[tuple[str, str, _Names, _Names], list[Place]] = defaultdict(list)
        unknown = set()
        for package, place in sorted(before.keys() & after.keys()):
            old_libraries, new_libraries = before[package, place], after[package, place]
            # An archive that was not inspected has one library without a name.
            if "" in old_libraries or "" in new_libraries:
                unknown.add((package, place))
            for library in old_libraries.keys() & new_libraries.keys():
                old_groups, new_groups = old_libraries[library], new_libraries[library]
                if not old_groups or not new_groups:
                    unknown.add((package, place))
                elif old_groups != new_groups:
                    removed = self._without(old_groups, new_groups)
                    added = self._without(new_groups, old_groups)
                    if removed or added:
                        places[package, library, removed, added].append(place)
        changes = [
            ExportChange(package, library, removed, added, tuple(same))
            for (package, library, removed, added), same in places.items()
        ]
        ordered = sorted(changes, key=lambda change: (not change.removed, change))
        return ExportChanges(tuple(ordered), frozenset(unknown))

    def _without(self, groups: frozenset[int], others: frozenset[int]) -> _Names:
        """Return the names that are in some groups and not in others."""
        names = set[str]().union(*map(self._names_of, groups - others))
        return tuple(sorted(names.difference(*map(self._names_of, others)))) if names else ()

    def _read_names(self, group: int) -> set[str]:
        names = self._index.symbol_names([group]) if self._names is None else self._names
        return set(names.get(group, ()))


def add_exports(old: Comparable, new: Comparable, index: Index) -> None:
    """Add the exports that only one of the two releases has."""
    names = old.name, new.name
    changes = ReleaseExports(index, names).changes(*names)
    for change in changes.changes:
        for place in change.places:
            if (change.package, place) not in changes.unknown:
                for side, own in ((old, change.removed), (new, change.added)):
                    fields, key = side.packages[change.package], (EXPORTS, place)
                    exports = {f"{change.library}:{name}" for name in own}
                    fields[key] = frozenset(exports.union(fields.get(key, ())))
