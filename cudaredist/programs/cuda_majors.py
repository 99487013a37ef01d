"""The CUDA majors that parts of a program are for."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from cudaredist.grouping import grouped
from cudaredist.programs.needs import LibraryNeed
from cudaredist.programs.program import (
    Catalog,
    Majors,
    ProgramFile,
    common_majors,
    majors_of,
)
from cudaredist.sets.library_names import key_of


class FileMajors(NamedTuple):
    """The CUDA majors of the libraries that a file is loaded with."""

    path: str
    common: Majors
    """The majors that all of them fit. Empty if they contradict each other."""
    single: Mapping[int, Sequence[str]]
    """The libraries that fit one major only."""


def file_majors(
    program: Sequence[ProgramFile], needs: Iterable[LibraryNeed], catalog: Catalog
) -> tuple[FileMajors, ...]:
    """Return the CUDA majors of each file with libraries that state one.

    The libraries of a file are those that it needs, and those that the program's own libraries
    among them need. Copies that no file needs count only if no other library is for one major. If
    no file needs any library, the libraries that files may open count.
    """
    by_name = {key_of(need.soname): need for need in needs if need.kind == "needed"}
    loaded = {path for need in by_name.values() for path in need.bundled}
    stated = {file.display_path: dict(_stated(file, by_name, catalog)) for file in program}
    without_copies = {
        file.display_path: stated[file.display_path]
        for file in program
        if file.display_path in loaded or not catalog.is_copy(file)
    }
    of_files = _with_loaded(program, by_name, without_copies)
    if not any(each.single for each in of_files):
        of_files = _with_loaded(program, by_name, stated)
    if of_files:
        return of_files
    for need in needs:
        majors = majors_of(need.libraries)
        if need.kind == "opened" and majors:
            for path in need.by:
                stated[path][need.soname] = majors
    return tuple(_majors_of(path, names) for path, names in stated.items() if names)


def _with_loaded(
    program: Sequence[ProgramFile],
    needs: Mapping[str, LibraryNeed],
    stated: Mapping[str, Mapping[str, Majors]],
) -> tuple[FileMajors, ...]:
    """Return the majors of files together with the program's own libraries that they need.

    What is known of a library is passed to the files that need it until nothing changes.
    """
    users = grouped(
        (path, file.display_path)
        for file in program
        for name in file.binary.needed
        if key_of(name) in needs
        for path in needs[key_of(name)].bundled[:1]
    )
    by_path = {path: _majors_of(path, names) for path, names in stated.items() if names}
    queue = list(by_path)
    while queue:
        library = by_path[queue.pop()]
        for user in users.get(library.path, ()):
            known = by_path.get(user)
            joined = FileMajors(user, library.common, library.single)
            if known is not None:
                single = {**library.single, **known.single}
                joined = FileMajors(user, known.common & library.common, single)
            if joined != known:
                by_path[user] = joined
                queue.append(user)
    return tuple(by_path[file.display_path] for file in program if file.display_path in by_path)


def major_groups(majors: Sequence[FileMajors]) -> tuple[Majors, ...]:
    """Return the CUDA majors that parts of the program are for, as sets that exclude each other.

    A program may contain a library for each of several majors, and load one of them.
    """
    pinned: set[int] = set()
    for file in majors:
        if len(file.common) == 1:
            pinned |= file.common
    if pinned:
        return tuple(frozenset({major}) for major in sorted(pinned))
    return (common_majors(file.common for file in majors),)


def needs_of(
    needs: Iterable[LibraryNeed], majors: Majors, excluded: Collection[str]
) -> tuple[LibraryNeed, ...]:
    """Return the needs of the part of a program for some CUDA majors.

    They are the provided libraries that fit these majors, and the missing ones.
    """
    of_part: list[LibraryNeed] = []
    for need in needs:
        by = tuple(path for path in need.by if path not in excluded)
        fitting = tuple(lib for lib in need.libraries if not majors or lib.major in {None, *majors})
        if by and (fitting or need.status == "missing"):
            of_part.append(need._replace(by=by, libraries=fitting))
    return tuple(of_part)


def _stated(
    file: ProgramFile, needs: Mapping[str, LibraryNeed], catalog: Catalog
) -> Iterator[tuple[str, Majors]]:
    """Yield the libraries of a file that state CUDA majors, and the file if it is one."""
    for name in file.binary.needed:
        need = needs.get(key_of(name))
        if need is not None and (majors := majors_of(need.libraries)):
            yield name, majors
    soname = catalog.soname_of(file) if catalog.is_copy(file) else None
    if soname is not None and (majors := majors_of(catalog.providers(soname, file.platforms))):
        yield soname, majors


def _majors_of(path: str, stated: Mapping[str, Majors]) -> FileMajors:
    pinned = ((max(majors), name) for name, majors in stated.items() if len(majors) == 1)
    common = reduce(frozenset.intersection, stated.values())
    return FileMajors(path, common, single=grouped(sorted(pinned)))
