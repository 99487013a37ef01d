"""Known libraries that files use without listing them as needed."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from cudaredist.features.library_symbols import import_groups
from cudaredist.grouping import grouped
from cudaredist.programs.lowest_release import exported_names
from cudaredist.programs.program import (
    AuditData,
    Catalog,
    Majors,
    ProgramFile,
    common_majors,
    majors_of,
)


def with_unlinked(program: Sequence[ProgramFile], data: AuditData) -> list[ProgramFile]:
    """Add the symbols of libraries that files do not list as needed.

    Such a file works only if something else loads the library first. Symbols are assigned only if
    the needed libraries of the file agree on a CUDA major.
    """
    catalog = data.catalog
    platforms = tuple({platform for file in program for platform in file.platforms[:1]})
    majors = {file: stated_majors(file, catalog) for file in program}
    chosen = Majors().union(*majors.values())
    if not chosen:
        return list(program)
    sonames = [name for name in catalog.sonames(platforms) if ".so." in name]
    fitting = [name for name in sonames if _fits(catalog, name, platforms, chosen)]
    owners = data.exporters(fitting)

    def owner_of(name: str, file: ProgramFile) -> str:
        """Return the library that a file takes a symbol from, or an empty string."""
        known = owners[name]
        exporters = [each for each in known if _fits(catalog, each, file.platforms, majors[file])]
        if not set(exporters).isdisjoint(file.binary.needed):
            return ""
        # Variants such as `libnvrtc.alt.so.12` have the same symbols.
        return min(exporters, key=lambda soname: (".alt." in soname, soname), default="")

    undefined = [_undefined(file, owners.keys()) for file in program]
    owner_by_name = [
        {name: owner for name in sorted(names) if (owner := owner_of(name, file))}
        for file, names in zip(program, undefined, strict=True)
    ]
    own = exported_names(program, set().union(*owner_by_name))
    files = []
    for file, by_name in zip(program, owner_by_name, strict=True):
        unlinked = grouped((owner, name) for name, owner in by_name.items() if name not in own)
        files.append(replace(file, unlinked=unlinked))
    return files


def _undefined(file: ProgramFile, known: AbstractSet[str]) -> set[str]:
    """Return the known symbols that a file needs without naming a library."""
    # Files may have millions of other symbols.
    undefined: set[str] = set()
    if file.binary.kind != "elf":
        return undefined
    for names, _, library in import_groups(file.binary):
        if not library:
            undefined.update(name for name in names if name in known)
    return undefined


def stated_majors(file: ProgramFile, catalog: Catalog) -> Majors:
    """Return the CUDA majors that the needed libraries of a file state, if they agree."""
    provided = (catalog.providers(name, file.platforms) for name in file.binary.needed)
    return common_majors(map(majors_of, provided))


def _fits(catalog: Catalog, soname: str, platforms: Sequence[str], majors: Collection[int]) -> bool:
    """Check if a library belongs to CUDA itself, in one of some majors."""
    return not majors_of(catalog.providers(soname, platforms)).isdisjoint(majors)
