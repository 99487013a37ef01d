"""The libraries that the files of an environment open when they run, as the loader finds them.

The names are those in the data of the files, so a program may never open some of them. Windows
searches for a DLL in folders that modules name when they are imported, so each DLL of an
environment counts as found. Then DLLs that files import are examined in the same way.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple, Self

from cudaredist.environments.environment_files import EnvironmentFiles
from cudaredist.environments.installed import Distribution
from cudaredist.environments.loader import FoundFile, Loaded, Loader, Loading, fitting_names
from cudaredist.environments.preloads import Preloads
from cudaredist.environments.requirements_in_use import RequirementsInUse, projects_of
from cudaredist.features.library_symbols import import_groups
from cudaredist.formats.library_policy import LoadedLibrary
from cudaredist.grouping import grouped
from cudaredist.programs.library_names import original_name, possible_sonames
from cudaredist.programs.program import AuditData, ProgramFile
from cudaredist.sets.library_names import key_of, stem_of

_OWN_PATH = "dladdr"
"""The function with which a library finds its own folder."""


class Unopened(NamedTuple):
    """A library that a file opens, although the loader does not find it by the file alone."""

    user: ProgramFile
    name: str
    is_required: bool
    caller: ProgramFile | None
    """A file whose run path leads to the library if this file loads the user."""
    elsewhere: tuple[ProgramFile, ...]
    """Installed files with the name."""


class DamagedLibrary(NamedTuple):
    """A library that is not a whole ELF file, although a file loads it."""

    user: ProgramFile
    path: str
    """The path that it was found by."""
    real_path: str
    """Its path without links."""

    @classmethod
    def of(cls, user: ProgramFile, library: FoundFile, loader: Loader) -> Self:
        """Return a damaged library that a file loads."""
        return cls(user, library.path, loader.real(library.path))


class OpenedLibraries:
    """The opened libraries of an environment."""

    def __init__(
        self,
        files: EnvironmentFiles,
        preloads: Preloads,
        requirements: RequirementsInUse,
        loader: Loader,
        loadings: Mapping[str, Loading],
        data: AuditData,
    ) -> None:
        """Take the libraries that packages load first, and the loaded libraries of each file."""
        self._files, self._preloads, self._requirements = files, preloads, requirements
        self._preloaded = preloads.names
        self._loader, self._loadings, self._data = loader, loadings, data
        self._knows_own_path = cache(_knows_own_path)
        # Many files open the same names, such as `libcuda.so.1`.
        self._is_cuda_library = cache(partial(data.is_cuda_library, platforms=files.platforms))
        all_files = files.environment.files
        self._dlls = DllFolders(files)
        self._by_stem = grouped((stem_of(name), file) for file in all_files for name in file.names)
        self._opened = {
            file: list(self._open_all(file)) for file in (*files.elf_files, *files.pe_files)
        }
        """The names of CUDA libraries that each file opens, with the files for them."""

    @property
    def damaged(self) -> Iterator[DamagedLibrary]:
        """The opened libraries that are not whole ELF files."""
        for user, opened in self._opened.items():
            for _, library in opened:
                if library is not None and library.found_by == "damaged":
                    yield DamagedLibrary.of(user, library, self._loader)

    def unopened(self) -> Iterator[Unopened]:
        """Yield the opened libraries to report as missing."""
        for user, opened in self._opened.items():
            for name, library in opened:
                missing = self._unopened(user, name) if library is None else None
                if missing is not None:
                    yield missing

    def _open_all(self, user: ProgramFile) -> Iterator[tuple[str, FoundFile | None]]:
        """Yield the names of CUDA libraries that a file opens, with the files for them."""
        is_dll = user.binary.kind == "pe"
        imported = user.binary.needed if is_dll else ()
        for name in dict.fromkeys((*imported, *user.binary.opens)):
            if self._is_cuda_library(name):
                found = (
                    self._dlls.find(name, user)
                    if is_dll
                    else self._found_alone(name, self._loadings[user.path])
                )
                yield name, found

    def _unopened(self, user: ProgramFile, name: str) -> Unopened | None:
        """Return an opened library to report, or None."""
        # It may open an older version of itself, such as `libcustatevec.so.0`.
        is_itself = name in possible_sonames(user.name) or stem_of(name) == stem_of(user.name)
        if is_itself or _is_variant(user) or self._is_in_own_package(user, name):
            return None
        rule = self._rule_for(user, name)
        is_required = self._is_required(user, name) if rule is None else not rule.is_optional
        caller, elsewhere = self._caller(user, name), tuple(self._elsewhere(user, name))
        if caller is not None:
            # A library should find the parts of its own package without its callers.
            is_part = rule is not None and self._has_one_owner(user, elsewhere)
            if not is_part:
                return None
        elif fitting_names(name, self._preloaded):
            return None
        if not is_required and not elsewhere and self._has_other_version(user, name):
            return None
        # NVIDIA's libraries may lack other products, such as cuFFT that of NVRTC.
        is_of_product = stem_of(name) in self._data.catalog.package_stems(user)
        is_expected = is_of_product or rule is not None
        if is_required or not self._is_of_nvidia(user) or (elsewhere and is_expected):
            return Unopened(user, name, is_required, caller, elsewhere)
        return None

    def _has_other_version(self, user: ProgramFile, name: str) -> bool:
        """Check if a file also needs or opens another version of a library, which is installed.

        It may support several CUDA majors, such as onnxruntime.
        """
        names = {*user.binary.opens, *user.binary.needed} - {name}
        others = (each for each in names if stem_of(each) == stem_of(name))
        return any(next(self._elsewhere(user, each), None) for each in others)

    def _is_of_nvidia(self, file: ProgramFile) -> bool:
        """Check if a file is in a wheel of NVIDIA, or a copy of a library of NVIDIA."""
        return file in self._files.nvidia_files or self._data.catalog.is_copy(file)

    def _found_alone(self, name: str, loading: Loading) -> FoundFile | None:
        """Return the file for an opened name, if no other file loads its user."""
        user = loading.files[0]
        library = self._loader.open(name, user, loading.by_name)
        if library is None and self._knows_own_path(user.file):
            return self._loader.open_in_own_folder(name, user)
        return library

    def _is_in_own_package(self, user: ProgramFile, name: str) -> bool:
        """Check if a package opens a library of its own, which it may do by a path."""
        owner = self._files.owners.of(user)
        if owner is None or self._is_of_nvidia(user):
            return False
        return any(file.path in owner.files for file in self._elsewhere(user, name))

    def _elsewhere(self, user: ProgramFile, name: str) -> Iterator[ProgramFile]:
        for file in dict.fromkeys(self._by_stem.get(stem_of(name), ())):
            if fitting_names(name, file.names) and file.binary.machine == user.binary.machine:
                yield file

    # -- libraries that must be found

    def _is_required(self, user: ProgramFile, name: str) -> bool:
        """Check if a file surely needs an opened library that the policy has no rule for."""
        if user.binary.kind == "pe" and name in user.binary.needed:
            return not self._preloads.is_optional(name, user)
        owner, catalog = self._files.owners.of(user), self._data.catalog
        if owner is not None and user in self._files.nvidia_files:
            return stem_of(name) in {stem_of(path.rpartition("/")[2]) for path in owner.files}
        if catalog.is_copy(user):
            return stem_of(name) in catalog.package_stems(user)
        return owner is not None and self._is_declared(owner, name)

    def _rule_for(self, user: ProgramFile, name: str) -> LoadedLibrary | None:
        """Return the rule of the policy that a file loads a library, if there is one."""
        names = (stem_of(original_name(user.name)), stem_of(name))
        rules = self._data.policy.loaded
        return next((rule for rule in rules if (rule.by, rule.loads) == names), None)

    def _has_one_owner(self, user: ProgramFile, files: Collection[ProgramFile]) -> bool:
        owners = self._files.owners
        owner = owners.of(user)
        return owner is not None and any(owners.of(file) is owner for file in files)

    def _is_declared(self, owner: Distribution, name: str) -> bool:
        """Check if a package requires a wheel with a library, also in an extra that is used."""
        declared = projects_of(self._requirements[owner.project])
        return not declared.isdisjoint(self._data.catalog.projects_with(name))

    # -- other files that load the user

    def _caller(self, user: ProgramFile, name: str) -> ProgramFile | None:
        """Return a file with which a name is found if it loads or opens the user."""
        if user.binary.kind == "pe":
            return None
        for loaded, by_name in self._contexts.get(user.path, ()):
            if loaded.parent is not None and self._loader.open(name, loaded, by_name):
                return loaded.parent.file
        for main in self._files.elf_files:
            opened = [library for _, library in self._opened[main] if library is not None]
            if any(library.file is user for library in opened):
                loading = self._loadings[main.path]
                root = loading.files[0]
                by_name = {**loading.by_name, **_by_file_name(opened)}
                if self._loader.open(name, Loaded(user, user.path, root), by_name):
                    return root.file
        return None

    @cached_property
    def _contexts(self) -> dict[str, list[tuple[Loaded, Mapping[str, FoundFile]]]]:
        """The ways in which other files load each file, without libraries loaded before."""
        contexts: dict[str, list[tuple[Loaded, Mapping[str, FoundFile]]]] = defaultdict(list)
        for main in self._files.elf_files:
            known = self._loadings[main.path]
            loading = known if known.is_alone else self._loader.load(main, {})
            for loaded in loading.files[1:]:
                contexts[loaded.file.path].append((loaded, loading.by_name))
        return contexts


class DllFolders:
    """The DLLs of an environment, and those in the folders of PATH and CUDA_PATH."""

    def __init__(self, files: EnvironmentFiles) -> None:
        names = ((key_of(name), file) for file in files.pe_files for name in file.names)
        self._by_name = grouped(names)
        folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep))]
        folders.append(Path(os.environ.get("CUDA_PATH", ""), "bin"))
        self._folders = [folder for folder in folders if folder.is_absolute()]

    def find(self, name: str, user: ProgramFile) -> FoundFile | None:
        """Return the file for a DLL, None if there is none."""
        for file in self._by_name.get(key_of(name), ()):
            if file.binary.machine == user.binary.machine:
                return FoundFile(found_by="other-code", path=file.path, file=file)
        paths = (folder / name for folder in self._folders)
        path = next((path for path in paths if path.is_file()), None)
        return None if path is None else FoundFile(found_by="system", path=str(path))


def _by_file_name(files: Sequence[FoundFile]) -> dict[str, FoundFile]:
    """Return found files by the names of these files."""
    return {each.path.rpartition("/")[2]: each for each in files}


def _knows_own_path(file: ProgramFile) -> bool:
    """Check if a file may open libraries in its own folder."""
    return any(_OWN_PATH in names for names, *_ in import_groups(file.binary))


def _is_variant(file: ProgramFile) -> bool:
    """Check if a file is a variant such as `libnvrtc.alt.so.13`, which programs rarely load."""
    return ".alt.so" in file.name
