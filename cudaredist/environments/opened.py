"""The libraries that the files of an environment open when they run, as the loader finds them.

The names are those in the data of the files, so a program may never open some of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from cudaredist.environments.file_owners import FileOwners
from cudaredist.environments.installed import Distribution, Environment
from cudaredist.environments.loader import FoundFile, Loaded, Loader, Loading, fitting_names
from cudaredist.environments.requirements_in_use import RequirementsInUse, projects_of
from cudaredist.features.library_symbols import import_groups
from cudaredist.formats.policy import LoadedLibrary
from cudaredist.grouping import grouped
from cudaredist.programs.library_names import original_name, possible_sonames
from cudaredist.programs.program import AuditData, ProgramFile
from cudaredist.sets.library_names import stem_of

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


class OpenedLibraries:
    """The opened libraries of an environment."""

    def __init__(
        self,
        environment: Environment,
        data: AuditData,
        loader: Loader,
        loadings: Mapping[str, Loading],
        preloaded: Collection[str],
        owners: FileOwners,
        requirements: RequirementsInUse,
    ) -> None:
        """Take the loaded libraries of each file, and the names that packages load first."""
        self._data, self._loader = data, loader
        self._loadings, self._preloaded = loadings, preloaded
        self._files = {file.path: file for file in environment.files}
        self._by_stem = grouped(
            (stem_of(name), file) for file in environment.files for name in file.names
        )
        self._owners, self._requirements = owners, requirements
        self._projects = data.catalog.projects()
        self._opened: dict[str, list[FoundFile]] = {}
        """The libraries that files open, by the paths of these files."""
        self.damaged: list[tuple[ProgramFile, FoundFile]] = []
        """Files that open a library that is not a whole ELF file."""

    def unopened(self, names: Mapping[str, Collection[str]]) -> Iterator[Unopened]:
        """Yield the opened libraries to report as missing.

        `names` are the opened names of files by path.
        """
        # The opened libraries of all files are known before `_caller` uses them.
        not_found = list(self._not_found(names))
        for user, name in not_found:
            opened = self._unopened(user, name)
            if opened is not None:
                yield opened

    def _not_found(self, names: Mapping[str, Collection[str]]) -> Iterator[tuple[ProgramFile, str]]:
        """Remember the files for opened names, and yield the names without a file."""
        for path, opened in names.items():
            loading = self._loadings[path]
            user = loading.files[0].file
            self._opened[path] = []
            for name in opened:
                found = self._found_alone(name, loading)
                if found is None:
                    yield user, name
                    continue
                self._opened[path].append(found)
                if found.found_by == "damaged":
                    self.damaged.append((user, found))

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
        if is_required or not self._is_nvidias(user) or (elsewhere and is_expected):
            return Unopened(user, name, is_required, caller, elsewhere)
        return None

    def _has_other_version(self, user: ProgramFile, name: str) -> bool:
        """Check if a file also needs or opens another version of a library, which is installed.

        It may support several CUDA majors, such as onnxruntime.
        """
        names = {*user.binary.opens, *user.binary.needed} - {name}
        others = (each for each in names if stem_of(each) == stem_of(name))
        return any(next(self._elsewhere(user, each), None) for each in others)

    def _is_nvidias(self, file: ProgramFile) -> bool:
        owner = self._owners.of(file)
        return self._data.catalog.is_copy(file) or (
            owner is not None and owner.project in self._projects
        )

    def _found_alone(self, name: str, loading: Loading) -> FoundFile | None:
        """Return the file for an opened name, if no other file loads its user."""
        user = loading.files[0]
        found = self._loader.open(name, user, loading.by_name)
        groups = () if found else import_groups(user.file.binary)
        if any(_OWN_PATH in names for names, *_ in groups):
            return self._loader.open_in_own_folder(name, user)
        return found

    def _is_in_own_package(self, user: ProgramFile, name: str) -> bool:
        """Check if a package opens a library of its own, which it may do by a path."""
        owner = self._owners.of(user)
        if owner is None or self._is_nvidias(user):
            return False
        return any(file.path in owner.files for file in self._elsewhere(user, name))

    def _elsewhere(self, user: ProgramFile, name: str) -> Iterator[ProgramFile]:
        for file in dict.fromkeys(self._by_stem.get(stem_of(name), ())):
            if fitting_names(name, file.names) and file.binary.machine == user.binary.machine:
                yield file

    # -- libraries that must be found

    def _is_required(self, user: ProgramFile, name: str) -> bool:
        """Check if a file surely needs an opened library that the policy has no rule for."""
        owner, catalog = self._owners.of(user), self._data.catalog
        if owner is not None and owner.project in self._projects:
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
        owner = self._owners.of(user)
        return owner is not None and any(self._owners.of(file) is owner for file in files)

    def _is_declared(self, owner: Distribution, name: str) -> bool:
        """Check if a package requires a wheel with a library, also in an extra that is used."""
        declared = projects_of(self._requirements[owner.project])
        return not declared.isdisjoint(self._data.catalog.projects_with(name))

    # -- other files that load the user

    def _caller(self, user: ProgramFile, name: str) -> ProgramFile | None:
        """Return a file with which a name is found if it loads or opens the user."""
        for loaded, by_name in self._contexts.get(user.path, ()):
            if loaded.parent is not None and self._loader.open(name, loaded, by_name):
                return loaded.parent.file
        for path, opened in self._opened.items():
            if any(found.file is user for found in opened):
                root = self._loadings[path].files[0]
                names = {found.path.rpartition("/")[2]: found for found in opened}
                by_name = {**self._loadings[path].by_name, **names}
                if self._loader.open(name, Loaded(user, user.path, root), by_name):
                    return root.file
        return None

    @cached_property
    def _contexts(self) -> dict[str, list[tuple[Loaded, Mapping[str, FoundFile]]]]:
        """The ways in which other files load each file, without libraries loaded before."""
        contexts: dict[str, list[tuple[Loaded, Mapping[str, FoundFile]]]] = defaultdict(list)
        for main in self._files.values():
            if main.binary.kind == "elf":
                known = self._loadings[main.path]
                loading = known if known.is_alone else self._loader.load(main, {})
                for loaded in loading.files[1:]:
                    contexts[loaded.file.path].append((loaded, loading.by_name))
        return contexts


def _is_variant(file: ProgramFile) -> bool:
    """Check if a file is a variant such as `libnvrtc.alt.so.13`, which programs rarely load."""
    return ".alt.so" in file.name
