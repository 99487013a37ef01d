"""The file that is loaded for each library that the files of an environment need."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cudaredist.environments.file_owners import FileOwners
from cudaredist.environments.installed import Environment
from cudaredist.environments.loader import FoundFile, Loader, Loading
from cudaredist.environments.opened import OpenedLibraries
from cudaredist.environments.preloads import Preloads
from cudaredist.environments.requirements_in_use import requirements_in_use
from cudaredist.features.library_symbols import export_groups
from cudaredist.grouping import grouped
from cudaredist.programs.alternatives import groups_of_alternatives
from cudaredist.programs.lowest_release import symbols_by_library
from cudaredist.programs.program import AuditData, ProgramFile
from cudaredist.sets.library_names import DRIVER_OWNERS
from cudaredist.tables.symbols.symbol_table import Import


class Use(NamedTuple):
    """A library that a file needs, and the file that is loaded for it."""

    user: ProgramFile
    soname: str
    loaded: FoundFile
    lacking: Collection[str]
    """Symbols that no loaded file exports."""


class LoadedLibraries:
    """The needed and opened libraries of an environment, as the loader finds them."""

    def __init__(self, environment: Environment, data: AuditData) -> None:
        self._data = data
        owners = self.owners = FileOwners(environment)
        self.files = environment.files
        projects = data.catalog.projects()
        nvidias = [n for n in self.files if not projects.isdisjoint(owners.projects_of([n]))]
        self.nvidias = {file.path for file in nvidias}
        """The paths of the files in NVIDIA's wheels."""
        self.by_name = grouped((name, file) for file in self.files for name in file.names)
        """The files by each of their names."""
        self.platforms = tuple({each for file in self.files for each in file.platforms})
        names = {name for file in self.files for name in file.binary.needed}
        self.cuda = frozenset(filter(self._is_cuda, names))
        """The needed libraries that belong to NVIDIA's products."""
        self._tables = data.tables(sorted(self.cuda))
        self._exports = lru_cache(maxsize=None)(_exports)
        self.preloads = Preloads(environment, data.policy, owners, nvidias, self.by_name)
        self._loader = Loader(environment, self.cuda)
        elf = [file for file in self.files if file.binary.kind == "elf"]
        self._loadings = self._all_loadings(elf)
        self.uses = list(self._all_uses(elf))
        self.replaced = self._replaced()
        """Unusable files for other CUDA releases, each with a usable one of the same package."""
        self.requirements = requirements_in_use(environment.distributions, projects)
        opened = OpenedLibraries(
            environment,
            data,
            self._loader,
            self._loadings,
            self.preloads.names,
            owners,
            self.requirements,
        )
        opened_cuda = {file.path: list(filter(self._is_cuda, file.binary.opens)) for file in elf}
        self.unopened = [
            each for each in opened.unopened(opened_cuda) if each.user not in self.replaced
        ]
        """The opened libraries to report as missing."""
        self.damaged = [
            *((use.user, use.loaded) for use in self.uses if use.loaded.found_by == "damaged"),
            *opened.damaged,
        ]
        """The loaded files that are not whole ELF files, each with a file that loads it."""

    def title_of(self, file: ProgramFile) -> str:
        """Return the name and version of the package with a file, empty if there is none."""
        return self.owners.title_of(file)

    def loads(self, file: ProgramFile, soname: str) -> bool:
        """Check if a library is loaded with a file or before it."""
        loading = self._loadings.get(file.path)
        return loading is not None and soname in loading.by_name

    def exports_symbol(self, file: ProgramFile, name: str) -> bool:
        """Check if a file exports a symbol in any version."""
        return name in self._exports(file)

    def files_named(self, names: Iterable[str]) -> list[str]:
        """Return the paths of the files with one of some names."""
        files = (file for name in names for file in self.by_name.get(name, ()))
        return list(dict.fromkeys(file.display_path for file in files))

    def other_copies(self, use: Use) -> list[str]:
        """Return the paths of other files with the name of a needed library."""
        return [path for path in self.files_named([use.soname]) if path != use.loaded.display_path]

    def real(self, path: str) -> str:
        """Return a path without links."""
        return self._loader.real(path)

    def is_unmet(self, use: Use) -> bool:
        """Check if the loader does not find a CUDA library, or the found one lacks symbols."""
        is_missing = use.soname in self.cuda and use.loaded.found_by in {"none", "other-code"}
        return bool(use.lacking) or is_missing

    def is_cuda_unknown(self, file: ProgramFile) -> bool:
        """Check if the CUDA libraries of a file, or the used parts of them, are unknown."""
        unread = file.binary.unread
        if "needed" in unread:
            return True
        needs_cuda = not self.cuda.isdisjoint(file.binary.needed)
        if "symbols" in unread and needs_cuda:
            return True
        opens_cuda = any(map(self._is_cuda, file.binary.opens))
        return "runpath" in unread and (needs_cuda or opens_cuda)

    def _is_cuda(self, name: str) -> bool:
        owner = self._data.owner_of(name)
        if owner is None:
            return self._data.catalog.has_family(name)
        # A distribution may have libraries such as NCCL, too.
        is_known = bool(self._data.catalog.providers(name, self.platforms))
        return owner not in DRIVER_OWNERS and is_known

    # -- the loaded files

    def _all_loadings(self, files: Sequence[ProgramFile]) -> dict[str, Loading]:
        """Return what is loaded for each file, by its path.

        A file may need a library that the loader does not find, such as `libraft.so`, because other
        code loads it first. The CUDA libraries of this library are then loaded already.
        """
        before = {file.path: self.preloads.before(file) for file in files}
        alone = {file.path: self._loader.load(file, before[file.path]) for file in files}
        loadings = dict(alone)
        for file in files:
            loaded: dict[str, FoundFile] = {}
            for other in self._loaded_elsewhere(file, alone):
                for name, found in alone[other.path].by_name.items():
                    if name in self.cuda:
                        loaded.setdefault(name, found)
            if loaded:
                first = {**loaded, **before[file.path]}
                loadings[file.path] = self._loader.load(file, first)
        return loadings

    def _loaded_elsewhere(
        self, file: ProgramFile, alone: Mapping[str, Loading]
    ) -> list[ProgramFile]:
        """Return the files that other code must load before a file.

        These are the needed libraries that the loader does not find, and those that they need in
        turn. `alone` is what the loader finds for each file by itself.
        """
        queue, found = [file], dict[str, ProgramFile]()
        while queue:
            user = queue.pop()
            for name in user.binary.needed:
                if name in alone[user.path].by_name or name in self.cuda:
                    continue
                other = self._file_for(name, user)
                if other is not None and other.path in alone and other.path not in found:
                    found[other.path] = other
                    queue.append(other)
        return [other for other in found.values() if other is not file]

    # -- the uses

    def _all_uses(self, files: Sequence[ProgramFile]) -> Iterator[Use]:
        """Yield each needed library of each file with the file that is loaded for it.

        A library that other files load is loaded with their run paths.
        """
        direct: dict[tuple[str, str], FoundFile] = {}
        indirect: dict[tuple[str, str], FoundFile] = {}
        scopes: dict[str, dict[str, ProgramFile]] = defaultdict(dict)
        for main in files:
            for user, name, loaded in self._loadings[main.path].needs:
                found = direct if user is main else indirect
                found.setdefault((user.path, name), loaded)
                if loaded.file is not None:
                    scopes[main.path][loaded.path] = loaded.file
        for user in files:
            scope = [user, *scopes[user.path].values()]
            cuda = [name for name in user.binary.needed if name in self.cuda]
            symbols = symbols_by_library([user], cuda, self._tables) if cuda else {}
            for name in dict.fromkeys(user.binary.needed):
                key = (user.path, name)
                loaded = direct.get(key) or indirect.get(key) or self._without_loader(name, user)
                lacking = self._not_exported(symbols.get(name, ()), loaded.file, scope)
                yield Use(user, name, loaded, lacking)

    def _not_exported(
        self, symbols: Iterable[Import], file: ProgramFile | None, scope: Sequence[ProgramFile]
    ) -> set[str]:
        """Return the symbols that neither a library nor another loaded file exports."""
        if file is not None and "symbols" in file.binary.unread:
            return set()
        files = [*scope] if file is None else [file, *scope]
        return {
            symbol.name
            for symbol in symbols
            if not any(_is_exported(symbol, self._exports(each)) for each in files)
        }

    def _without_loader(self, name: str, user: ProgramFile) -> FoundFile:
        """Return the file for a library that the loader does not find, if there is one."""
        if self._data.owner_of(name) in DRIVER_OWNERS:
            return FoundFile(found_by="driver")
        preloaded = self.preloads.file_for(name) if name in self.cuda else None
        if preloaded is not None:
            return preloaded
        file = self._file_for(name, user)
        if file is None:
            return FoundFile(found_by="none")
        return FoundFile(found_by="other-code", path=file.path, file=file)

    def _file_for(self, name: str, user: ProgramFile) -> ProgramFile | None:
        """Return a file with a name for the machine of its user."""
        files = self.by_name.get(name, ())
        return next((n for n in files if n.binary.machine == user.binary.machine), None)

    def _replaced(self) -> dict[ProgramFile, ProgramFile]:
        """Return files that lack libraries or symbols, each with another file that does not.

        Both are in one package, for different CUDA releases, such as in bitsandbytes.
        """
        lacking = {use.user for use in self.uses if self.is_unmet(use)}
        own = (file for file in self.files if file.path not in self.nvidias)
        packages = grouped((self.owners.title_of(file), file) for file in own)
        packages.pop("", None)
        replaced: dict[ProgramFile, ProgramFile] = {}
        for files in packages.values():
            for by_release in groups_of_alternatives(files):
                whole = [file for file in by_release.values() if file not in lacking]
                for file in by_release.values():
                    if whole and file in lacking:
                        replaced[file] = whole[-1]
        return replaced


def _exports(file: ProgramFile) -> dict[str, set[str]]:
    """Return the versions of the symbols that a file exports."""
    versions: dict[str, set[str]] = defaultdict(set)
    for names, version in export_groups(file.binary):
        for name in names:
            versions[name].add(version.lstrip("@"))
    return versions


def _is_exported(symbol: Import, exports: Mapping[str, Collection[str]]) -> bool:
    """Check if a file exports a symbol."""
    return any(map(symbol.is_met_by, exports.get(symbol.name, ())))
