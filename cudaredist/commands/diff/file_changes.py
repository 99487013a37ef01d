"""Compare the files of two releases: files that vanished, moved or are new.

Each file of both sides is matched at most once: by the same path, then by the path in another
package, then by the longest equal end of a path, then by a name that has other numbers, and then
by the name of a library that got or lost a version.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.commands.diff.report import FileChange, FileKind, FileStatus, RunPathChange
from cudaredist.grouping import grouped
from cudaredist.primitives import natural_order

PackageFiles: TypeAlias = Mapping[str, Collection[str]]
"""Paths below the package's root, by package."""

_FOLDED = 3
"""The least number of files for which their folder is named instead."""
_CACHED = 1 << 16
"""Paths and names whose results stay in memory: releases and platforms have the same files."""
_ENDINGS: Mapping[FileKind, tuple[str, ...]] = {
    "static libraries": (".a",),
    "development libraries": (".so", ".lib"),
    "pkg-config files": (".pc",),
    "CMake files": (".cmake",),
    "headers": (".h", ".hpp", ".hh", ".cuh", ".inl", ".ipp"),
}
_KINDS_OF_FOLDERS: Mapping[str, FileKind] = {"include": "headers", "bin": "programs"}
_replace_numbers = re.compile(r"[0-9]+(?:[._][0-9]+)*").sub
_remove_version = re.compile(
    r"[._-][0-9]{1,9}(?:[._][0-9]{1,9}){0,4}(?=\.dll$|$)", re.IGNORECASE
).sub
_is_shared = re.compile(r".+(?:\.so(?:\.[0-9]+)*|\.dll)", re.IGNORECASE).fullmatch


class PackageFile(NamedTuple):
    """A file of a package."""

    package: str
    path: str


_Rule: TypeAlias = Callable[[PackageFile], Hashable]


class FilePair(NamedTuple):
    """The same file on both sides. None: only the other side has it."""

    old: PackageFile | None
    new: PackageFile | None


# -- the same file on both sides


def match_files(old: PackageFiles, new: PackageFiles) -> list[FilePair]:
    """Match the files of two sides. The result has each file of both sides once."""
    same = (
        PackageFile(package, path)
        for package, paths in old.items()
        for path in {*paths}.intersection(new.get(package, ()))
    )
    return sorted([*(FilePair(file, file) for file in same), *_match_others(old, new)], key=_place)


def changed_files(old: PackageFiles, new: PackageFiles) -> list[FilePair]:
    """Match the files of two sides that are not in the same place on both."""
    return sorted(_match_others(old, new), key=_place)


def _place(pair: FilePair) -> tuple[str, str]:
    return pair.old or pair.new or ("", "")


def _match_others(old: PackageFiles, new: PackageFiles) -> list[FilePair]:
    """Match the files of only one side each."""
    gone, came = _files_of_one(old, new), _files_of_one(new, old)
    lost, gained = _by_name(gone), _by_name(came)
    # Paths with an equal end have the same name, so that only files of one name are compared.
    pairs = [
        pair
        for name in lost.keys() & gained.keys()
        for pair in _match_by_ends(frozenset(lost[name]), frozenset(gained[name]))
    ]
    gone.difference_update(pair.old for pair in pairs if pair.old)
    came.difference_update(pair.new for pair in pairs if pair.new)
    pairs += _match_by_rules(gone, came, _RENAMES)
    pairs += (FilePair(file, None) for file in gone)
    pairs += (FilePair(None, file) for file in came)
    return pairs


def _files_of_one(packages: PackageFiles, other: PackageFiles) -> set[PackageFile]:
    """Return the files that the other side does not have in the same place."""
    return {
        PackageFile(package, path)
        for package, paths in packages.items()
        for path in {*paths}.difference(other.get(package, ()))
    }


def _by_name(files: Iterable[PackageFile]) -> dict[str, list[PackageFile]]:
    return grouped((file.path.rpartition("/")[2], file) for file in files)


@lru_cache(maxsize=_CACHED)
def _match_by_ends(
    gone: frozenset[PackageFile], came: frozenset[PackageFile]
) -> Sequence[FilePair]:
    """Match files of one name by the longest equal ends of their paths."""
    if len(gone) == len(came) == 1:
        (old,), (new,) = gone, came
        # A name alone may be another file in another package.
        is_same = old.package == new.package or _end(old, 2) == _end(new, 2)
        return [FilePair(old, new)] if is_same else []
    # Longer ends are whole paths on one side, which are compared first.
    depth = min(_depth(gone), _depth(came))
    return _match_by_rules({*gone}, {*came}, _rules_of_ends(depth))


def _match_by_rules(
    gone: set[PackageFile], came: set[PackageFile], rules: Iterable[_Rule]
) -> list[FilePair]:
    """Match files by what they have in common, the surest first, and remove them."""
    pairs: list[FilePair] = []
    for rule in rules:
        if not gone or not came:
            break
        found = list(_unique_pairs(gone, came, rule))
        pairs += found
        gone.difference_update(pair.old for pair in found if pair.old)
        came.difference_update(pair.new for pair in found if pair.new)
    return pairs


def _depth(files: Iterable[PackageFile]) -> int:
    """Return the largest number of parts in a path."""
    return max(file.path.count("/") + 1 for file in files)


def _rules_of_ends(depth: int) -> Iterator[_Rule]:
    """Yield the ends of paths that the same file has on both sides, the longest first."""
    yield lambda file: file.path
    for size in range(depth, 0, -1):
        yield partial(_package_and_end, size=size)
        if size > 1:
            yield partial(_end, size=size)


def _library_without_version(file: PackageFile) -> Hashable:
    """Return the package, folder and name of a library without its version, else the file."""
    folder, name = posixpath.split(file.path)
    if not _is_shared(name):
        return file
    return file.package, folder, _remove_version("", name)


def _end(file: PackageFile, size: int) -> tuple[str, ...]:
    """Return the last parts of a path."""
    return tuple(file.path.split("/")[-size:])


def _package_and_end(file: PackageFile, size: int) -> tuple[str, ...]:
    return file.package, *_end(file, size)


_RENAMES: Sequence[_Rule] = (
    lambda file: (file.package, _replace_numbers("#", file.path)),
    lambda file: (file.package, _replace_numbers("#", posixpath.basename(file.path))),
    _library_without_version,
)
"""What a renamed file has in common on both sides, the surest first."""


def _unique_pairs(
    gone: Iterable[PackageFile], came: Iterable[PackageFile], rule: _Rule
) -> Iterator[FilePair]:
    """Yield the files that have something in common with exactly one other."""
    lost = grouped((rule(file), file) for file in gone)
    gained = grouped((rule(file), file) for file in came)
    for key in lost.keys() & gained.keys():
        if len(lost[key]) == len(gained[key]) == 1:
            yield FilePair(lost[key][0], gained[key][0])


# -- the changes of two releases


def file_changes(old: Comparable, new: Comparable) -> tuple[FileChange, ...]:
    """Return the changed files of the platforms that both sides have, combined by folder."""
    places: dict[FileChange, list[str]] = defaultdict(list)
    for place in sorted(old.paths.keys() & new.paths.keys(), key=natural_order):
        for change in _folded(old.paths[place], new.paths[place]):
            places[change].append(place)
    changes = (change.changed(places=tuple(at)) for change, at in places.items())
    return tuple(sorted(changes, key=_order))


def _order(change: FileChange) -> tuple[object, ...]:
    paths = (natural_order(change.old or ""), natural_order(change.new or ""))
    return change.package, change.status, change.kind, *paths, change.places


def _folded(old: PackageFiles, new: PackageFiles) -> Iterator[FileChange]:
    """Yield the changes of one platform."""
    moved: dict[tuple[str, str, str, str], list[tuple[str, str]]] = defaultdict(list)
    gone: dict[str, list[str]] = defaultdict(list)
    came: dict[str, list[str]] = defaultdict(list)
    for before, after in changed_files(old, new):
        if before is None and after is not None:
            came[after.package].append(after.path)
        elif before is not None and after is None:
            gone[before.package].append(before.path)
        elif before is not None and after is not None:
            start, end = _prefixes(before.path, after.path)
            moved[before.package, after.package, start, end].append((before.path, after.path))
    for key, pairs in moved.items():
        yield from _moves(*key, pairs)
    yield from _one_sided("gone", gone, new)
    yield from _one_sided("added", came, old)


@lru_cache(maxsize=_CACHED)
def _prefixes(old: str, new: str) -> tuple[str, str]:
    """Return the different beginnings of two paths: `include/` and `include/cccl/`.

    Without an equal end, these are the whole paths.
    """
    before, after = old.split("/"), new.split("/")
    size = 0
    while size < min(len(before), len(after)) and before[-size - 1] == after[-size - 1]:
        size += 1
    if size == 0:
        return old, new
    end = "/".join(before[-size:])
    return old.removesuffix(end), new.removesuffix(end)


def _moves(
    package: str, other: str, start: str, end: str, pairs: list[tuple[str, str]]
) -> Iterator[FileChange]:
    """Yield the moved files of one pair of folders, with one entry for each folder below."""
    target = None if other == package else other
    is_renamed = posixpath.dirname(start) == posixpath.dirname(end) and not target
    status: FileStatus = "renamed" if is_renamed else "moved"
    by_folder = grouped((_top_folder(old.removeprefix(start)), (old, new)) for old, new in pairs)
    for top, files in by_folder.items():
        for kind, of_kind in grouped((kind_of(new), (old, new)) for old, new in files).items():
            is_folded = bool(top) and len(of_kind) >= _FOLDED
            folded = [(f"{start}{top}/**", f"{end}{top}/**")] if is_folded else sorted(of_kind)
            for old, new in folded:
                yield FileChange(
                    status=status,
                    kind=kind,
                    package=package,
                    new_package=target,
                    old=old,
                    new=new,
                    files=len(of_kind) if is_folded else 1,
                )


def _top_folder(path: str) -> str:
    """Return the first folder of a path, empty for a file at the top."""
    folder, mark, _ = path.partition("/")
    return folder if mark else ""


def _one_sided(
    status: FileStatus, packages: Mapping[str, list[str]], other: PackageFiles
) -> Iterator[FileChange]:
    """Yield files that only one side has. A folder that the other side lacks is one entry.

    Packages that the other side lacks are left out: that they are gone or added is enough.
    """
    for package, paths in packages.items():
        if package not in other:
            continue
        existing = {parent for path in other[package] for parent in _parents(path)}
        by_folder: dict[tuple[str, FileKind], list[str]] = defaultdict(list)
        for path in paths:
            lacking = [parent for parent in _parents(path) if parent not in existing]
            highest = lacking[0] if lacking else ""
            by_folder[highest, kind_of(path)].append(path)
        for (folder, kind), files in by_folder.items():
            is_folded = bool(folder) and len(files) >= _FOLDED
            for path in [f"{folder}/**"] if is_folded else sorted(files):
                yield FileChange(
                    status=status,
                    kind=kind,
                    package=package,
                    old=path if status == "gone" else None,
                    new=path if status == "added" else None,
                    files=len(files) if is_folded else 1,
                )


@lru_cache(maxsize=_CACHED)
def _parents(path: str) -> list[str]:
    """Return the folders of a path, the highest first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: size + 1]) for size in range(len(parts))]


@lru_cache(maxsize=_CACHED)
def kind_of(path: str) -> FileKind:
    """Return the kind of a file, by its name and folder."""
    name = posixpath.basename(path)
    for kind, endings in _ENDINGS.items():
        if name.endswith(endings):
            return kind
    if _is_shared(name):
        return "shared libraries"
    folder = path.partition("/")[0]
    return _KINDS_OF_FOLDERS.get(folder, "other files")


# -- run paths


def run_path_changes(old: Comparable, new: Comparable) -> tuple[RunPathChange, ...]:
    """Return the libraries and programs with another run path, on the same path or a moved one."""
    files: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for place in sorted(old.run_paths.keys() & new.run_paths.keys(), key=natural_order):
        before, after = old.run_paths[place], new.run_paths[place]
        for pair in match_files(before, after):
            if pair.old is not None and pair.new is not None:
                was = before[pair.old.package][pair.old.path]
                now = after[pair.new.package][pair.new.path]
                if was != now:
                    files[place, pair.new.package, was, now].append(pair.new.path)
    places: dict[RunPathChange, list[str]] = defaultdict(list)
    for (place, package, was, now), paths in files.items():
        change = RunPathChange(package=package, old=was, new=now, files=tuple(sorted(paths)))
        places[change].append(place)
    changes = (change.changed(places=tuple(at)) for change, at in places.items())
    return tuple(sorted(changes, key=lambda each: (each.package, each.old, each.new, each.places)))
