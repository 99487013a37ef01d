"""The libraries that a program needs, and their providers."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from pydantic import SkipValidation

from cudaredist.cli.text import grouped
from cudaredist.commands.audit.library_names import original_name
from cudaredist.commands.audit.program import Catalog, KnownLibrary, ProgramFile, paths_of
from cudaredist.commands.audit.report import AuditedLibrary, NeedKind, NeedStatus
from cudaredist.formats.policy import LibraryPolicy
from cudaredist.sets.libraries import find_external, key_of

_Named: TypeAlias = tuple[str, list[ProgramFile]]

IS_OF_GPU = frozenset({"driver", "jetson"})
"""Owners of libraries that only machines with a GPU have."""


class LibraryNeed(AuditedLibrary):
    """A library that the program needs, may open, or uses without listing it.

    The base class has the fields of the report.
    """

    libraries: SkipValidation[tuple[KnownLibrary, ...]] = ()
    """The known libraries that provide it."""
    products: SkipValidation[tuple[str, ...]] = ()
    """The redistributables that have other versions of it, if it is missing."""


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
    bundled = grouped((key_of(name), file) for file in binaries for name in file.names)
    needed = _by_name((file, file.binary.needed) for file in binaries)
    opened = _by_name(
        (file, file.binary.opens) for file in binaries if not is_bundled_copy(file, catalog)
    )
    unlinked = _by_name((file, file.unlinked) for file in binaries)
    guesses = {key: entry for key, entry in opened.items() if key not in needed}
    by_kind: dict[NeedKind, dict[str, _Named]] = {
        "needed": needed,
        "opened": guesses,
        "unlinked": unlinked,
    }
    found = (
        _need(name, kind, files, bundled.get(key, ()), catalog, policy)
        for kind, names in by_kind.items()
        for key, (name, files) in names.items()
    )
    kept = (n for n in found if n.kind != "opened" or (n.cuda and n.status != "missing"))
    return tuple(sorted(kept, key=lambda need: (need.kind, key_of(need.soname))))


def _by_name(
    files: Iterable[tuple[ProgramFile, Iterable[str]]],
) -> dict[str, _Named]:
    """Return each library's name, and the files that name it."""
    found: dict[str, _Named] = {}
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
    is_of_gpu = outside is not None and outside.owner in IS_OF_GPU
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
        by=paths_of(by),
        bundled=tuple(file.display_path for file in fitting),
        libraries=providers if status == "provided" else (),
        products=catalog.products(soname) if status == "missing" else (),
        owner=outside.owner if outside is not None and status == "external" else None,
        cuda=is_of_gpu or (is_known and (outside is None or bool(providers))),
    )
