"""Check that libraries which are used together have the symbols that they need of each other."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cudaredist.tables.symbols.library_release import LibraryRelease


class LinkedLibrary(NamedTuple):
    """One library among those that are used together."""

    soname: str
    owner: str
    """The package, or the file."""
    archive_sha256: str
    """The archive that has it."""


@dataclass(frozen=True, slots=True)
class MissingSymbols:
    """Symbols that a library needs of another one, which does not export them."""

    library: LinkedLibrary
    provider: LinkedLibrary
    names: tuple[str, ...]
    """With `@` and the version, if one is needed."""


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """The result of a check."""

    missing: tuple[MissingSymbols, ...]
    unknown: tuple[LinkedLibrary, ...]
    """Libraries whose symbols no table has."""


def check_links(libraries: Mapping[LinkedLibrary, LibraryRelease | None]) -> LinkCheck:
    """Check the imports of each library against the libraries that are there.

    What a library takes from others than these is not checked. A symbol without a version may
    come from any of them.
    """
    known = {library: found for library, found in libraries.items() if found is not None}
    by_soname: dict[str, list[LinkedLibrary]] = defaultdict(list)
    for library in libraries:
        by_soname[library.soname].append(library)
    missing: dict[tuple[LinkedLibrary, LinkedLibrary], list[str]] = defaultdict(list)
    for library, release in known.items():
        for one in release.imports():
            providers = by_soname.get(one.library, ())
            # A provider with unknown symbols may have it.
            if any(other not in known or known[other].exports_for(one) for other in providers):
                continue
            if providers and (
                one.version or not any(other.exports_name(one.name) for other in known.values())
            ):
                name = f"{one.name}@{one.version}" if one.version else one.name
                missing[library, providers[0]].append(name)
    return LinkCheck(
        tuple(
            MissingSymbols(library, provider, tuple(sorted(names)))
            for (library, provider), names in sorted(missing.items())
        ),
        tuple(sorted(library for library, release in libraries.items() if release is None)),
    )
