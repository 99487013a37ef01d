"""Check that libraries which are used together have the symbols that they need of each other."""

from collections import defaultdict
from collections.abc import Container, Mapping
from typing import NamedTuple

from cudaredist.tables.symbols.symbol_table import LibraryRelease


class LinkedLibrary(NamedTuple):
    """One library among those that are used together."""

    soname: str
    owner: str
    """The package, or the file."""
    archive_sha256: str
    """The archive that has it."""


class MissingSymbols(NamedTuple):
    """Symbols that a library needs of another one, which does not export them."""

    library: LinkedLibrary
    provider: LinkedLibrary
    names: tuple[str, ...]
    """With `@` and the version, if one is needed."""


class SymbolCheck(NamedTuple):
    """The result of a check."""

    missing: tuple[MissingSymbols, ...]
    unknown: tuple[LinkedLibrary, ...]
    """Libraries whose symbols no table has."""


def check_symbols(
    libraries: Mapping[LinkedLibrary, LibraryRelease | None],
    of: Container[LinkedLibrary] | None = None,
) -> SymbolCheck:
    """Check the imports of each library against the libraries that are there.

    What a library takes from others than these is not checked. A symbol without a version may
    come from any of them. `of` limits the check to the imports of some libraries.
    """
    known = {library: release for library, release in libraries.items() if release is not None}
    by_soname: dict[str, list[LinkedLibrary]] = defaultdict(list)
    for library in libraries:
        by_soname[library.soname].append(library)
    missing: dict[tuple[LinkedLibrary, LinkedLibrary], list[str]] = defaultdict(list)
    for library, release in known.items():
        if of is not None and library not in of:
            continue
        for symbol in release.imports():
            providers = by_soname.get(symbol.library, ())
            if not providers:
                continue
            # A provider with unknown symbols may have it.
            if any(one not in known or known[one].has(symbol) for one in providers):
                continue
            if not symbol.version and any(other.has(symbol) for other in known.values()):
                continue
            name = f"{symbol.name}@{symbol.version}" if symbol.version else symbol.name
            missing[library, providers[0]].append(name)
    lacking = (MissingSymbols(*pair, tuple(sorted(missing[pair]))) for pair in sorted(missing))
    return SymbolCheck(tuple(lacking), tuple(sorted(libraries.keys() - known.keys())))
