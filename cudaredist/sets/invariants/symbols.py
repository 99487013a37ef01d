"""Invariant of symbols: the libraries of a set export all symbols that others of it need."""

from collections.abc import Iterator
from itertools import chain

from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.sets.invariants.documents import (
    Violation,
    is_additional_version,
)
from cudaredist.sets.libraries import warning
from cudaredist.store.symbol_folder import LayeredSymbols, table_name
from cudaredist.tables.symbols.symbol_check import (
    LinkedLibrary,
    MissingSymbols,
    SymbolCheck,
    check_symbols,
)
from cudaredist.tables.symbols.symbol_table import LibraryRelease
from cudaredist.words import listed

SYMBOL_INVARIANT = "I28"
_NAMES_SHOWN = 3


def check_set_symbols(package_set: PackageSet, symbols: LayeredSymbols) -> SymbolCheck:
    """Check the libraries of a set against each other.

    Further versions of a package are never installed next to the chosen one; each is checked with
    the other packages.
    """
    entries = list(package_set.available.values())
    chosen = [entry for entry in entries if not is_additional_version(entry)]
    missing: dict[tuple[str, str, str], MissingSymbols] = {}
    unknown: dict[LinkedLibrary, None] = {}
    further = [
        [entry, *(other for other in chosen if other.pname != entry.pname)]
        for entry in filter(is_additional_version, entries)
    ]
    for group in [chosen, *further]:
        libraries: dict[LinkedLibrary, LibraryRelease | None] = {}
        for library in chain.from_iterable(map(_libraries, group)):
            table = symbols.table(library.soname)
            libraries[library] = table.in_archive(library.archive_sha256) if table else None
        check = check_symbols(libraries)
        for lacking in check.missing:
            library, provider = lacking.library, lacking.provider
            missing.setdefault((library.owner, library.soname, provider.soname), lacking)
        unknown |= dict.fromkeys(check.unknown)
    return SymbolCheck(tuple(missing.values()), tuple(unknown))


def with_symbol_diagnostics(package_set: PackageSet, symbols: LayeredSymbols) -> PackageSet:
    """Return a set with a warning for each library that lacks symbols of another one."""
    found = [
        warning("missing-symbols", missing.library.owner, missing_text(missing))
        for missing in check_set_symbols(package_set, symbols).missing
    ]
    if not found:
        return package_set
    return package_set.model_copy(update={"diagnostics": (*package_set.diagnostics, *found)})


def symbol_violations(check: SymbolCheck) -> Iterator[Violation]:
    """Yield a violation for each library that lacks symbols of another one."""
    for missing in check.missing:
        yield Violation(SYMBOL_INVARIANT, missing.library.owner, missing_text(missing))


def unchecked_symbols(check: SymbolCheck) -> Iterator[str]:
    """Yield the libraries whose symbols are unknown, if there are any."""
    if check.unknown:
        count, first = len(check.unknown), check.unknown[0]
        libraries = "library" if count == 1 else "libraries"
        text = f"no table has the symbols of {count} {libraries}, such as {first.soname}"
        yield f"{SYMBOL_INVARIANT} in part: {text}"


def missing_text(missing: MissingSymbols) -> str:
    """Describe the symbols that a library needs and another one lacks."""
    names, provider = missing.names, missing.provider
    count = f"{len(names)} symbol{'' if len(names) == 1 else 's'}"
    return (
        f"{missing.library.soname} needs {count} that {provider.soname} of {provider.owner} "
        f"does not export: {listed(list(names), _NAMES_SHOWN)}"
    )


def _libraries(entry: SetPackage) -> Iterator[LinkedLibrary]:
    if entry.archive is not None:
        names = {table_name(provided) for provided in entry.provides if not provided.stub}
        for name in sorted(names):
            yield LinkedLibrary(name, entry.attr, entry.archive.sha256)
