"""Find files that moved between packages: splits, mergers and renames.

Files are compared by their path in the package. Contents are not compared, because a new release
is a new build, and because single files have no hashes. If a file also moved to another
folder, its name is compared.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TypeAlias

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.commands.diff.report import Move
from cudaredist.grouping import grouped

_Moves: TypeAlias = dict[tuple[str, str], list[tuple[str, str]]]
"""Old and new path of each file, by old and new package."""


def moved_files(old: Comparable, new: Comparable) -> tuple[Move, ...]:
    """Return the files that moved from one package to another.

    A file moved if one package lost it, and another one gained it. A file name counts if exactly
    one package lost a file with this name, and exactly one gained it. Packages without known files
    are skipped.
    """
    gone, came = _one_sided(old, new), _one_sided(new, old)
    moves: _Moves = defaultdict(list)
    for path in gone.keys() & came.keys():
        for packages in product(gone[path], came[path]):
            moves[packages].append((path, path))
    left, arrived = _by_name(gone, came), _by_name(came, gone)
    for name in left.keys() & arrived.keys():
        if len(left[name]) == len(arrived[name]) == 1:
            before, old_path = left[name][0]
            after, new_path = arrived[name][0]
            if before != after:
                moves[before, after].append((old_path, new_path))
    return tuple(
        Move(
            old=before,
            new=after,
            equal=tuple(sorted(path for path, other in pairs if path == other)),
            gone=tuple(sorted(path for path, other in pairs if path != other)),
            added=tuple(sorted(other for path, other in pairs if path != other)),
        )
        for (before, after), pairs in sorted(moves.items())
    )


def _one_sided(side: Comparable, other: Comparable) -> dict[str, list[str]]:
    """Return the packages of each path that only this side has."""
    return grouped(
        (path, name)
        for name, files in side.files.items()
        # Otherwise, the other side's files are unknown.
        if name not in other.packages or name in other.files
        for path in files - other.files.get(name, frozenset())
    )


def _by_name(
    files: Mapping[str, list[str]], others: Mapping[str, list[str]]
) -> dict[str, list[tuple[str, str]]]:
    """Return package and path of one-sided files, by name."""
    return grouped(
        (posixpath.basename(path), (name, path))
        for path, names in files.items()
        if path not in others
        for name in names
    )


def origins_by_files(
    old: Comparable, new: Comparable, moves: tuple[Move, ...]
) -> Iterator[tuple[str, str]]:
    """Yield each one-sided package with its origin.

    The origin is the package with the most moved files in common, if these are at least half of the
    package's files. Otherwise the package has no origin.
    """
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for move in moves:
        count = len(move.equal) + len(move.gone)
        counts[move.old][move.new] = counts[move.new][move.old] = count
    for side, other in ((old, new), (new, old)):
        for name in sorted(side.files.keys() - other.packages.keys()):
            in_common = counts[name]
            if not in_common:
                continue
            origin = max(sorted(in_common), key=lambda package: in_common[package])
            if 2 * in_common[origin] >= len(side.files[name]):
                yield name, origin
