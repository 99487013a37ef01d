"""The libraries that a program needs, and their providers."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudaredist.audit.library_names import original_name
from cudaredist.audit.program import Catalog, KnownLibrary, ProgramFile
from cudaredist.packagesets.libraries import find_external, key_of
from cudaredist.schema.policy import LibraryPolicy, Owner

NeedStatus: TypeAlias = Literal["bundled", "provided", "external", "missing", "unknown"]
NeedKind: TypeAlias = Literal["needed", "opened", "unlinked"]

_OF_GPU = frozenset({"driver", "jetson"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryNeed:
    """A library that files of the program need, may open, or use without listing it."""

    soname: str
    kind: NeedKind
    status: NeedStatus
    by: tuple[ProgramFile, ...]
    bundled: tuple[ProgramFile, ...] = ()
    providers: tuple[KnownLibrary, ...] = ()
    owner: Owner | None = None
    is_cuda: bool = False
    """Whether it is a library of NVIDIA's, or of the driver."""


def is_bundled_copy(file: ProgramFile, catalog: Catalog) -> bool:
    """Check if a file of the program is a copy of a library of NVIDIA's packages."""
    if not file.binary.is_shared:
        return False
    if catalog.soname_of(file.name) is not None:
        return True
    has_version = ".so." in file.name or original_name(file.name) != file.name
    return has_version and catalog.has_family(file.name)


def library_needs(
    program: Sequence[ProgramFile], catalog: Catalog, policy: LibraryPolicy
) -> tuple[LibraryNeed, ...]:
    """Return the libraries that a program needs, sorted by name.

    Names of libraries in the data of a file are a guess. Only those of CUDA and of the driver count
    as opened, and not those that NVIDIA's own libraries open.
    """
    binaries = [file for file in program if file.binary.kind in {"elf", "pe"}]
    bundled: dict[str, list[ProgramFile]] = defaultdict(list)
    for file in binaries:
        for name in file.names:
            bundled[key_of(name)].append(file)
    needed = _by_name((file, file.binary.needed) for file in binaries)
    opened = _by_name(
        (file, file.binary.opens) for file in binaries if not is_bundled_copy(file, catalog)
    )
    found = [
        _need(name, "needed", files, bundled.get(key, ()), catalog, policy)
        for key, (name, files) in needed.items()
    ]
    guesses = [
        _need(name, "opened", files, bundled.get(key, ()), catalog, policy)
        for key, (name, files) in opened.items()
        if key not in needed
    ]
    found += [need for need in guesses if need.is_cuda and need.status != "missing"]
    unlinked = _by_name((file, file.unlinked) for file in binaries)
    found += [
        _need(name, "unlinked", files, bundled.get(key, ()), catalog, policy)
        for key, (name, files) in unlinked.items()
    ]
    return tuple(sorted(found, key=lambda need: (need.kind, key_of(need.soname))))


def _by_name(
    files: Iterable[tuple[ProgramFile, Iterable[str]]],
) -> dict[str, tuple[str, list[ProgramFile]]]:
    """Return each library's name, and the files that name it."""
    found: dict[str, tuple[str, list[ProgramFile]]] = {}
    for file, names in files:
        for name in dict.fromkeys(names):
            found.setdefault(key_of(name), (name, []))[1].append(file)
    return found


def _need(
    soname: str,
    kind: NeedKind,
    by: Sequence[ProgramFile],
    bundled: Sequence[ProgramFile],
    catalog: Catalog,
    policy: LibraryPolicy,
) -> LibraryNeed:
    platforms = tuple(dict.fromkeys(platform for file in by for platform in file.platforms))
    # A file for another machine is not a provider.
    fitting = tuple(file for file in bundled if not platforms or set(file.platforms) & {*platforms})
    outside = find_external(soname, policy)
    providers = catalog.providers(soname, platforms)
    is_of_gpu = outside is not None and outside.owner in _OF_GPU
    is_known = bool(providers) or catalog.has_family(soname)
    status: NeedStatus = "unknown"
    if fitting:
        status = "bundled"
    elif is_of_gpu:
        status = "external"
    elif providers:
        status = "provided"
    elif outside is not None:
        status = "external"
    elif is_known:
        status = "missing"
    return LibraryNeed(
        soname=soname,
        kind=kind,
        status=status,
        by=tuple(sorted(by, key=lambda file: file.shown)),
        bundled=fitting,
        providers=providers if status == "provided" else (),
        owner=outside.owner if outside is not None and status == "external" else None,
        is_cuda=is_of_gpu or (is_known and (outside is None or bool(providers))),
    )
