"""The libraries that a program needs, and their providers."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cudaredist.formats.library_policy import Owner
from cudaredist.grouping import grouped
from cudaredist.programs.program import AuditData, KnownLibrary, ProgramFile, paths_of
from cudaredist.programs.report import NeedKind, NeedStatus
from cudaredist.sets.library_names import DRIVER_OWNERS, key_of


class LibraryNeed(NamedTuple):
    """A library that the program needs, may open, or uses without listing it."""

    soname: str
    kind: NeedKind
    status: NeedStatus
    cuda: bool
    """Whether it is one of NVIDIA's libraries or of the driver."""
    by: tuple[str, ...]
    """The paths of the files that need it."""
    bundled: tuple[str, ...] = ()
    """The paths of the program's own files with the library."""
    libraries: tuple[KnownLibrary, ...] = ()
    """The known libraries that provide it."""
    products: tuple[str, ...] = ()
    """The redistributables that have other versions of it, if it is missing."""
    owner: Owner | None = None
    """The owner of an external library."""


def library_needs(program: Iterable[ProgramFile], data: AuditData) -> tuple[LibraryNeed, ...]:
    """Return the libraries that a program needs, sorted by name.

    The name of a library in the data of a file is only a guess that the file opens it. Only those
    of CUDA and of the driver count, and not those that NVIDIA's own libraries open.
    """
    binaries = [file for file in program if file.binary.kind in {"elf", "pe"}]
    bundled = grouped((key_of(name), file) for file in binaries for name in file.names)
    users: dict[tuple[NeedKind, str], list[tuple[str, ProgramFile]]] = defaultdict(list)
    for file in binaries:
        is_copy = data.catalog.is_copy(file)
        names_by_kind: dict[NeedKind, Iterable[str]] = {
            "needed": file.binary.needed,
            "opened": () if is_copy else file.binary.opens,
            "unlinked": file.unlinked,
        }
        for kind, names in names_by_kind.items():
            for name in dict.fromkeys(names):
                users[kind, key_of(name)].append((name, file))
    needs: list[LibraryNeed] = []
    for (kind, key), named in users.items():
        if kind == "opened" and ("needed", key) in users:
            continue
        soname, _ = named[0]
        need = _need(soname, kind, [file for _, file in named], bundled.get(key, ()), data)
        if kind != "opened" or (need.cuda and need.status != "missing"):
            needs.append(need)
    return tuple(sorted(needs, key=lambda need: (need.kind, key_of(need.soname))))


def _need(
    soname: str,
    kind: NeedKind,
    by: Sequence[ProgramFile],
    bundled: Iterable[ProgramFile],
    data: AuditData,
) -> LibraryNeed:
    platforms = tuple(dict.fromkeys(platform for file in by for platform in file.platforms))
    # A file for another machine is not a provider.
    fitting = tuple(file for file in bundled if not platforms or set(file.platforms) & {*platforms})
    providers = data.catalog.providers(soname, platforms)
    owner = data.owner_of(soname)
    is_of_driver = owner in DRIVER_OWNERS
    is_known = bool(providers) or data.catalog.has_family(soname)
    status: NeedStatus
    if fitting:
        status = "bundled"
    elif providers and not is_of_driver:
        status = "provided"
    elif owner:
        status = "external"
    else:
        status = "missing" if is_known else "unknown"
    return LibraryNeed(
        soname=soname,
        kind=kind,
        status=status,
        by=paths_of(by),
        bundled=tuple(file.display_path for file in fitting),
        libraries=providers if status == "provided" else (),
        products=data.catalog.products(soname) if status == "missing" else (),
        owner=owner if status == "external" else None,
        cuda=is_of_driver or (is_known and (owner is None or bool(providers))),
    )
