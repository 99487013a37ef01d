"""Files that lie in another package than before: splits, mergers and removals, told by content.

A file is told by its path below the package's root, whatever is in it, because what moves with a
release is built anew; and one that changed its folder too, by its name. Hashes of single files are
not kept anywhere.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from cudaredist.diffs.comparable import Comparable
from cudaredist.reports.answer_reports import Move

_Found: TypeAlias = dict[tuple[str, str], list[tuple[str, str]]]
"""By package before and package after: the paths of each file that moved between them."""


def moved_files(old: Comparable, new: Comparable) -> tuple[Move, ...]:
    """Return which files left which package for which other one, as far as files are known.

    A file counts where the package that had it has it no more, and the one that has it did not. By
    its name alone it counts where one package only lost, and one only gained, a file of that name.
    """
    gone, came = _one_sided(old, new), _one_sided(new, old)
    found: _Found = defaultdict(list)
    for path in gone.keys() & came.keys():
        for before in gone[path]:
            for after in came[path]:
                found[before, after].append((path, path))
    left, arrived = _by_name(gone, came), _by_name(came, gone)
    for name in left.keys() & arrived.keys():
        if len(left[name]) == len(arrived[name]) == 1:
            (before, path), (after, other) = left[name][0], arrived[name][0]
            if before != after:
                found[before, after].append((path, other))
    return tuple(
        Move(
            old=before,
            new=after,
            equal=tuple(sorted(path for path, other in pairs if path == other)),
            gone=tuple(sorted(path for path, other in pairs if path != other)),
            added=tuple(sorted(other for path, other in pairs if path != other)),
        )
        for (before, after), pairs in sorted(found.items())
    )


def _one_sided(side: Comparable, other: Comparable) -> dict[str, list[str]]:
    """Return the files that a package has on this side alone: the packages by path."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, files in side.files.items():
        if name in other.packages and name not in other.files:
            continue  # who knows what it has there
        for path in files - other.files.get(name, frozenset()):
            found[path].append(name)
    return found


def _by_name(
    files: Mapping[str, list[str]], others: Mapping[str, list[str]]
) -> dict[str, list[tuple[str, str]]]:
    """Return the files that the other side has nowhere, with their packages, by last part."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path, names in files.items():
        if path not in others:
            found[posixpath.basename(path)] += ((name, path) for name in names)
    return found


def origins_by_files(
    old: Comparable, new: Comparable, moves: tuple[Move, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the packages of one side only, each with the one of the other side that it is part of.

    That is the one it shares the most moved files with, if they are half of its own; else it is new
    or gone, and part of none.
    """
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for move in moves:
        count = len(move.equal) + len(move.gone)
        counts[move.old][move.new] = counts[move.new][move.old] = count
    for side, other in ((old, new), (new, old)):
        for name in sorted(side.files.keys() - other.packages.keys()):
            most = max(sorted(counts[name].items()), key=lambda found: found[1], default=("", 0))
            if most[1] and 2 * most[1] >= len(side.files[name]):
                yield name, most[0]
