"""The CUDA majors that parts of a program are for."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from cudaredist.audit.needs import LibraryNeed, is_bundled_copy
from cudaredist.audit.program import Catalog, KnownLibrary, ProgramFile
from cudaredist.packagesets.libraries import key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMajors:
    """The CUDA majors of the libraries that a file is loaded with."""

    file: ProgramFile
    common: frozenset[int]
    """The majors that all of them fit. Empty if they contradict each other."""
    single: Mapping[int, tuple[str, ...]]
    """The libraries that fit one major only."""


def file_majors(
    program: Sequence[ProgramFile], needs: Iterable[LibraryNeed], catalog: Catalog
) -> tuple[FileMajors, ...]:
    """Return the CUDA majors of each file with libraries that state one.

    The libraries of a file are those that it needs, and those that the program's own libraries
    among them need. If no file needs any, libraries that files may open count.
    """
    by_name = {key_of(need.soname): need for need in needs if need.kind == "needed"}
    stated = {file.shown: dict(_stated(file, by_name, catalog)) for file in program}
    found = _with_loaded(program, by_name, stated)
    if found:
        return found
    opened = [(need, frozenset(_paths(need))) for need in needs if need.kind == "opened"]
    for file in program:
        stated[file.shown] = {
            need.soname: majors
            for need, paths in opened
            if file.shown in paths and (majors := _majors(need.providers))
        }
    return tuple(_majors_of(file, stated[file.shown]) for file in program if stated[file.shown])


def _with_loaded(
    program: Sequence[ProgramFile],
    needs: Mapping[str, LibraryNeed],
    stated: Mapping[str, Mapping[str, frozenset[int]]],
) -> tuple[FileMajors, ...]:
    """Return the majors of files together with the program's own libraries that they need.

    What is known of a library is passed to the files that need it until nothing changes.
    """
    users: dict[str, list[str]] = defaultdict(list)
    for file in program:
        for name in file.binary.needed:
            need = needs.get(key_of(name))
            for library in need.bundled[:1] if need is not None else ():
                users[library.shown].append(file.shown)
    files = {file.shown: file for file in program}
    found = {path: _majors_of(files[path], stated[path]) for path in files if stated[path]}
    queue = list(found)
    while queue:
        path = queue.pop()
        for user in users[path]:
            before = found.get(user)
            joined = replace(found[path], file=files[user])
            if before is not None:
                joined = replace(
                    before,
                    common=before.common & joined.common,
                    single={**joined.single, **before.single},
                )
            if (
                before is None
                or before.common != joined.common
                or (before.single.keys() != joined.single.keys())
            ):
                found[user] = joined
                queue.append(user)
    return tuple(found[file.shown] for file in program if file.shown in found)


def major_groups(majors: Sequence[FileMajors]) -> tuple[frozenset[int], ...]:
    """Return the CUDA majors that parts of the program are for, as sets that exclude each other.

    A program may contain a library for each of several majors, and load one of them.
    """
    fitting = [one.common for one in majors if one.common]
    pinned = {next(iter(common)) for common in fitting if len(common) == 1}
    if pinned:
        return tuple(frozenset({major}) for major in sorted(pinned))
    return (reduce(frozenset.intersection, fitting),) if fitting else (frozenset(),)


def needs_of(
    needs: Iterable[LibraryNeed], majors: frozenset[int], files: Sequence[FileMajors]
) -> tuple[LibraryNeed, ...]:
    """Return the libraries that are provided to the part of a program for some CUDA majors."""
    excluded = {one.file.shown for one in files if majors and not one.common & majors}
    found = []
    for need in needs:
        by = tuple(file for file in need.by if file.shown not in excluded)
        fitting = tuple(
            one for one in need.providers if not majors or one.major is None or one.major in majors
        )
        if by and fitting:
            found.append(replace(need, by=by, providers=fitting))
    return tuple(found)


def _stated(
    file: ProgramFile, needs: Mapping[str, LibraryNeed], catalog: Catalog
) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield the libraries of a file that state CUDA majors, and the file if it is one."""
    for name in file.binary.needed:
        need = needs.get(key_of(name))
        majors = _majors(need.providers) if need is not None else frozenset[int]()
        if majors:
            yield name, majors
    soname = catalog.soname_of(file.name) if is_bundled_copy(file, catalog) else None
    if soname is not None:
        majors = _majors(catalog.providers(soname, file.platforms))
        if majors:
            yield soname, majors


def _paths(need: LibraryNeed) -> Iterator[str]:
    return (file.shown for file in need.by)


def _majors(libraries: Iterable[KnownLibrary]) -> frozenset[int]:
    return frozenset(one.major for one in libraries if one.major and one.redist == "cuda")


def _majors_of(file: ProgramFile, stated: Mapping[str, frozenset[int]]) -> FileMajors:
    single: dict[int, list[str]] = defaultdict(list)
    for name, majors in sorted(stated.items()):
        if len(majors) == 1:
            single[next(iter(majors))].append(name)
    return FileMajors(
        file=file,
        common=reduce(frozenset.intersection, stated.values()),
        single={major: tuple(single[major]) for major in sorted(single)},
    )
