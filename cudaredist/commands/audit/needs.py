"""The libraries that a program needs, and their providers."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from cudaredist.commands.audit.program import AuditData, KnownLibrary, ProgramFile, paths_of
from cudaredist.commands.audit.report import NeedKind, NeedStatus
from cudaredist.formats.policy import Owner
from cudaredist.grouping import grouped
from cudaredist.sets.library_names import key_of

IS_OF_GPU = frozenset({"driver", "jetson"})
"""Owners of libraries that only machines with a GPU have."""


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

    Names of libraries in the data of a file are a guess. Only those of CUDA and of the driver count
    as opened, and not those that NVIDIA's own libraries open.
    """
    binaries = [file for file in program if file.binary.kind in {"elf", "pe"}]
    bundled = grouped((key_of(name), file) for file in binaries for name in file.names)
    names_of: dict[NeedKind, Callable[[ProgramFile], Iterable[str]]] = {
        "needed": lambda file: file.binary.needed,
        "opened": lambda file: () if data.catalog.is_copy(file) else file.binary.opens,
        "unlinked": lambda file: file.unlinked,
    }
    named = grouped(
        ((kind, key_of(name)), (name, file))
        for kind, names in names_of.items()
        for file in binaries
        for name in dict.fromkeys(names(file))
    )
    found = (
        _need(users[0][0], kind, [file for _, file in users], bundled.get(key, ()), data)
        for (kind, key), users in named.items()
        if kind != "opened" or ("needed", key) not in named
    )
    kept = (n for n in found if n.kind != "opened" or (n.cuda and n.status != "missing"))
    return tuple(sorted(kept, key=lambda need: (need.kind, key_of(need.soname))))


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
    is_of_gpu = owner in IS_OF_GPU
    is_known = bool(providers) or data.catalog.has_family(soname)
    conditions: dict[NeedStatus, object] = {
        "bundled": fitting,
        "provided": providers and not is_of_gpu,
        "external": owner,
        "missing": is_known,
        "unknown": True,
    }
    status = next(status for status, condition in conditions.items() if condition)
    return LibraryNeed(
        soname=soname,
        kind=kind,
        status=status,
        by=paths_of(by),
        bundled=tuple(file.display_path for file in fitting),
        libraries=providers if status == "provided" else (),
        products=data.catalog.products(soname) if status == "missing" else (),
        owner=owner if status == "external" else None,
        cuda=is_of_gpu or (is_known and (owner is None or bool(providers))),
    )
