"""Load the libraries of an environment's files, as the loader of glibc does."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from cudaredist.environments.environment_files import EnvironmentFiles, files_of
from cudaredist.environments.installed import Environment
from cudaredist.environments.loaded_libraries import LoadedLibraries, Use
from cudaredist.environments.loader import FoundFile, Loader, Loading
from cudaredist.environments.opened import DamagedLibrary, OpenedLibraries
from cudaredist.environments.preloads import Preloads
from cudaredist.environments.requirements_in_use import requirements_in_use
from cudaredist.features.library_symbols import export_groups
from cudaredist.grouping import grouped
from cudaredist.programs.alternatives import groups_of_alternatives
from cudaredist.programs.lowest_release import symbols_by_library
from cudaredist.programs.program import AuditData, ProgramFile
from cudaredist.sets.library_names import DRIVER_OWNERS
from cudaredist.tables.symbols.symbol_table import Import

Exports: TypeAlias = Mapping[str, Collection[str]]
"""The versions of each symbol that a file exports."""


def load_all(environment: Environment, data: AuditData) -> LoadedLibraries:
    """Return the file that is loaded for each library that files of an environment need."""
    files = files_of(environment, data)
    requirements = requirements_in_use(environment.distributions, data.catalog.projects())
    preloads = Preloads(files, data.policy)
    loader = Loader(environment, files.cuda)
    loadings = load_each(files, preloads, loader)
    uses = list(find_uses(files, preloads, loadings, data))
    replaced = replaced_files(files, uses)
    opened = OpenedLibraries(files, preloads, requirements, loader, loadings, data)
    damaged = (use for use in uses if use.loaded.found_by == "damaged")
    return LoadedLibraries(
        files=files,
        requirements=requirements,
        preloads=preloads,
        loadings=loadings,
        uses=uses,
        replaced=replaced,
        unopened=[each for each in opened.unopened() if each.user not in replaced],
        damaged=[
            *(DamagedLibrary.of(use.user, use.loaded, loader) for use in damaged),
            *opened.damaged,
        ],
        unknown=list(unknown_files(files, data)),
    )


# -- the loaded files


def load_each(files: EnvironmentFiles, preloads: Preloads, loader: Loader) -> dict[str, Loading]:
    """Return the libraries that are loaded for each file, by its path.

    A file may need a library that the loader does not find, such as `libraft.so`, because other
    code loads it first. The CUDA libraries of this library are then loaded already.
    """
    before = {file.path: preloads.before(file) for file in files.elf_files}
    alone = {file.path: loader.load(file, before[file.path]) for file in files.elf_files}
    loadings = dict(alone)
    for file in files.elf_files:
        loaded: dict[str, FoundFile] = {}
        for other in _loaded_elsewhere(file, files, alone):
            for name, library in alone[other.path].by_name.items():
                if name in files.cuda:
                    loaded.setdefault(name, library)
        if loaded:
            first = {**loaded, **before[file.path]}
            loadings[file.path] = loader.load(file, first)
    return loadings


def _loaded_elsewhere(
    file: ProgramFile, files: EnvironmentFiles, alone: Mapping[str, Loading]
) -> list[ProgramFile]:
    """Return the files that other code must load before a file.

    These are the needed libraries that the loader does not find, and those that they need in turn.
    `alone` are the libraries that the loader finds for each file by itself.
    """
    queue, elsewhere = [file], dict[str, ProgramFile]()
    while queue:
        user = queue.pop()
        for name in user.binary.needed:
            if name in alone[user.path].by_name or name in files.cuda:
                continue
            other = files.for_user(user, name)
            if other is not None and other.path in alone and other.path not in elsewhere:
                elsewhere[other.path] = other
                queue.append(other)
    return [other for other in elsewhere.values() if other is not file]


# -- the needed libraries


def find_uses(
    files: EnvironmentFiles, preloads: Preloads, loadings: Mapping[str, Loading], data: AuditData
) -> Iterator[Use]:
    """Yield each needed library of each file with the file that is loaded for it.

    A library that other files load is loaded with their run paths.
    """
    direct: dict[tuple[str, str], FoundFile] = {}
    indirect: dict[tuple[str, str], FoundFile] = {}
    scopes: dict[str, dict[str, ProgramFile]] = defaultdict(dict)
    for main in files.elf_files:
        for user, name, loaded in loadings[main.path].needs:
            needs = direct if user is main else indirect
            needs.setdefault((user.path, name), loaded)
            if loaded.file is not None:
                scopes[main.path][loaded.path] = loaded.file
    tables = data.tables(sorted(files.cuda))
    exports_of = lru_cache(maxsize=None)(exported_versions)
    for user in files.elf_files:
        scope = [user, *scopes[user.path].values()]
        cuda = [name for name in user.binary.needed if name in files.cuda]
        symbols = symbols_by_library([user], cuda, tables) if cuda else {}
        for name in dict.fromkeys(user.binary.needed):
            key = (user.path, name)
            library = direct.get(key) or indirect.get(key)
            if library is None:
                library = _found_otherwise(name, user, files, preloads, data)
            lacking = _not_exported(symbols.get(name, ()), library.file, scope, exports_of)
            yield Use(user, name, library, lacking)


def _found_otherwise(
    name: str, user: ProgramFile, files: EnvironmentFiles, preloads: Preloads, data: AuditData
) -> FoundFile:
    """Return the file for a library that the loader does not find, if there is one."""
    if data.owner_of(name) in DRIVER_OWNERS:
        return FoundFile(found_by="driver")
    preloaded = preloads.file_for(name) if name in files.cuda else None
    if preloaded is not None:
        return preloaded
    file = files.for_user(user, name)
    if file is None:
        return FoundFile(found_by="none")
    return FoundFile(found_by="other-code", path=file.path, file=file)


# -- their symbols


def _not_exported(
    symbols: Iterable[Import],
    file: ProgramFile | None,
    scope: Sequence[ProgramFile],
    exports_of: Callable[[ProgramFile], Exports],
) -> set[str]:
    """Return the symbols that neither a library nor another loaded file exports."""
    if file is not None and "symbols" in file.binary.unread:
        return set()
    exporters = [*scope] if file is None else [file, *scope]
    return {
        symbol.name
        for symbol in symbols
        if not any(_is_exported(symbol, exports_of(exporter)) for exporter in exporters)
    }


def exported_versions(file: ProgramFile) -> Exports:
    """Return the versions of the symbols that a file exports."""
    versions: dict[str, set[str]] = defaultdict(set)
    for names, version in export_groups(file.binary):
        for name in names:
            versions[name].add(version.lstrip("@"))
    return versions


def _is_exported(symbol: Import, exports: Exports) -> bool:
    """Check if a file exports a symbol."""
    return any(map(symbol.is_met_by, exports.get(symbol.name, ())))


# -- files that cannot be used, or whose libraries are unknown


def replaced_files(files: EnvironmentFiles, uses: Iterable[Use]) -> dict[ProgramFile, ProgramFile]:
    """Return files that lack libraries or symbols, each with another file that does not.

    Both are in one package, for different CUDA releases, such as in bitsandbytes. If no file has
    all libraries, the one with the fewest missing ones counts, the newest of several.
    """
    unmet = grouped((use.user, use) for use in uses if use.is_unmet(files.cuda))
    own = (file for file in files.environment.files if file not in files.nvidia_files)
    packages = grouped((files.owners.title_of(file), file) for file in own)
    packages.pop("", None)
    replaced: dict[ProgramFile, ProgramFile] = {}
    for of_package in packages.values():
        for by_release in groups_of_alternatives(of_package):
            alternatives = list(by_release.values())[::-1]
            best = min(alternatives, key=lambda file: _faults(unmet.get(file, ())))
            replaced.update((file, best) for file in alternatives if file in unmet)
            replaced.pop(best, None)
    return replaced


def _faults(unmet: Sequence[Use]) -> tuple[int, int]:
    """Return the number of libraries that no package has, and of all that are not usable."""
    return sum(use.loaded.found_by == "none" for use in unmet), len(unmet)


def unknown_files(files: EnvironmentFiles, data: AuditData) -> Iterator[ProgramFile]:
    """Yield the files whose CUDA libraries, or the used parts of them, are unknown.

    Run paths and symbols only count in files that need or open CUDA libraries.
    """
    for file in files.environment.files:
        unread = file.binary.unread
        needs_cuda = not files.cuda.isdisjoint(file.binary.needed)
        opens = (data.is_cuda_library(name, files.platforms) for name in file.binary.opens)
        if (
            "needed" in unread
            or ("symbols" in unread and needs_cuda)
            or ("runpath" in unread and (needs_cuda or any(opens)))
        ):
            yield file
