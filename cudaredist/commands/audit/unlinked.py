"""Known libraries that files use without listing them as needed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from cudaredist.cli.text import grouped
from cudaredist.commands.audit.lowest_release import exported_names
from cudaredist.commands.audit.program import Catalog, ProgramFile, common_majors, majors_of
from cudaredist.features.library_symbols import import_groups
from cudaredist.tables.symbols.symbol_table import SymbolColumns

_OTHERS = ("_Z", "Py", "_Py")
"""Prefixes of C++ and Python names. CUDA exports C functions."""


def with_unlinked(
    program: Sequence[ProgramFile],
    catalog: Catalog,
    tables: Callable[[Sequence[str]], Mapping[str, SymbolColumns]],
) -> list[ProgramFile]:
    """Add the symbols of libraries that files do not list as needed.

    Such a file works only if something else loads the library first. Symbols are assigned only if
    the needed libraries of the file agree on a CUDA major.
    """
    platforms = tuple({platform for file in program for platform in file.platforms[:1]})
    majors = {file.display_path: stated_majors(file, catalog) for file in program}
    chosen = frozenset[int]().union(*majors.values())
    if not chosen:
        return list(program)
    sonames = [name for name in catalog.sonames(platforms) if ".so." in name]
    fitting = [name for name in sonames if _fits(catalog, name, platforms, chosen)]
    owners = _owners(tables(fitting))
    # Only names of known libraries are kept, because files may have millions of others.
    taken = [set().union(*map(owners.keys().__and__, _undefined(file))) for file in program]
    own = exported_names(program, set().union(*taken))
    return [
        replace(file, unlinked=dict(_unlinked(file, names - own, owners, majors, catalog)))
        for file, names in zip(program, taken, strict=True)
    ]


def _undefined(file: ProgramFile) -> Iterator[list[str]]:
    """Yield groups of symbols that a file needs without naming a library."""
    if file.binary.kind == "elf":
        yield from (names for names, _, library in import_groups(file.binary) if not library)


def stated_majors(file: ProgramFile, catalog: Catalog) -> frozenset[int]:
    """Return the CUDA majors that the needed libraries of a file state, if they agree."""
    provided = (catalog.providers(name, file.platforms) for name in file.binary.needed)
    return common_majors(map(majors_of, provided))


def _fits(catalog: Catalog, soname: str, platforms: Sequence[str], majors: Collection[int]) -> bool:
    """Check if a library belongs to CUDA itself, in one of some majors."""
    providers = catalog.providers(soname, platforms)
    return not majors_of(providers).isdisjoint(majors)


def _owners(tables: Mapping[str, SymbolColumns]) -> dict[str, list[str]]:
    """Return the libraries that export each C function."""
    return grouped(
        (name, soname)
        for soname, table in sorted(tables.items())
        for name in {e.name for e in table.exports if not e.name.startswith(_OTHERS)}
    )


def _unlinked(
    file: ProgramFile,
    names: Collection[str],
    owners: Mapping[str, Sequence[str]],
    majors: Mapping[str, frozenset[int]],
    catalog: Catalog,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        fitting = [
            soname
            for soname in owners.get(name, ())
            if _fits(catalog, soname, file.platforms, majors[file.display_path])
        ]
        if fitting and not {*fitting} & {*file.binary.needed}:
            # Variants such as `libnvrtc.alt.so.12` have the same symbols.
            found[min(fitting, key=lambda soname: (".alt." in soname, soname))].append(name)
    for soname, symbols in found.items():
        yield soname, tuple(symbols)
