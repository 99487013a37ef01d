"""Libraries that installed packages load with their own function, such as torch at its import."""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path

from cudaredist.environments.environment_files import EnvironmentFiles
from cudaredist.environments.installed import Distribution, Environment
from cudaredist.environments.loader import FoundFile
from cudaredist.environments.loader_modules import calls_loader, module_rules
from cudaredist.environments.requirements_in_use import required_projects
from cudaredist.formats.library_policy import LibraryPolicy, Preload
from cudaredist.programs.library_names import family_of
from cudaredist.programs.program import ProgramFile
from cudaredist.sets.library_names import key_of
from cudaredist.store.files import foreign_text

_LIBRARY = ".so"
_DLL = ".dll"
_MODULE_LIMIT = 4 << 20
_is_common_folder = re.compile(r".*/cu[0-9]+/lib/[^/]+").fullmatch


class Preloads:
    """The functions of an environment's packages that load libraries.

    A package calls such a function when it is imported, or a program must call it.
    """

    def __init__(
        self,
        files: EnvironmentFiles,
        policy: LibraryPolicy,
    ) -> None:
        """Find the files in NVIDIA's wheels that packages load."""
        self._owners, self._by_name = files.owners, files.by_name
        environment = files.environment
        required = partial(required_projects, packages=environment.distributions)
        self._required_projects = lru_cache(maxsize=None)(required)
        self._optional = [rule for rule in policy.preloads if rule.is_optional]
        rules = list(_installed_rules(environment, policy))
        self._with_rules = {package.project for package, _ in rules}
        self._called = [(package, rule) for package, rule in rules if rule.is_called]
        """Packages with a function that loads libraries if a program calls it."""
        # Folders such as `nvidia/cu13` are searched last.
        nvidia_files = sorted(
            files.nvidia_files, key=lambda file: (bool(_is_common_folder(file.path)), file.path)
        )
        # The last rule counts, so those of the policy follow.
        at_import = [
            *module_rules(files, policy.preloads),
            *((package, rule) for package, rule in rules if not rule.is_called),
        ]
        self._at_import = [
            (package, dict(_loaded_by(rule, nvidia_files))) for package, rule in at_import
        ]
        """Packages that load libraries when they are imported, with these by soname."""

    @property
    def projects(self) -> Collection[str]:
        """The packages with functions that load libraries."""
        at_import = {package.project for package, _ in self._at_import}
        return at_import | {package.project for package, _ in self._called}

    @property
    def names(self) -> Collection[str]:
        """The libraries that packages load when they are imported."""
        return {name for _, by_name in self._at_import for name in by_name}

    def file_for(self, name: str) -> FoundFile | None:
        """Return the file that a package loads for a library when it is imported.

        If several packages load it, the last one counts, as in `before`.
        """
        for _, by_name in reversed(self._at_import):
            if name in by_name:
                return by_name[name]
        return None

    def before(self, file: ProgramFile) -> Mapping[str, FoundFile]:
        """Return the libraries that are surely loaded before a file."""
        package = self._owners.of(file)
        if package is None or not self._at_import:
            return {}
        # An extension of torch without requirements needs torch's libraries.
        needed = [each for name in file.binary.needed for each in self._by_name.get(name, ())]
        required = self._required_projects(package.project) | self._owners.projects_of(needed)
        loaded: dict[str, FoundFile] = {}
        for loader, by_name in self._at_import:
            if loader.project in required:
                loaded.update(by_name)
        return loaded

    def may_load(self, file: ProgramFile) -> bool:
        """Check if modules may load a library before a file, also one that is not installed."""
        package = self._owners.of(file)
        if package is None:
            return True
        required = self._required_projects(package.project)
        return not required.isdisjoint(self._with_rules) or calls_loader(package, [file])

    def call_for(self, soname: str, users: Iterable[ProgramFile]) -> str | None:
        """Return the call with which a program loads a library for the package of some files."""
        projects = self._owners.projects_of(users)
        for package, rule in self._called:
            # An opened name may have no version.
            is_loaded = any(
                fnmatchcase(soname, name) or name.startswith(f"{soname}.") for name in rule.names
            )
            if projects == {package.project} and is_loaded:
                module = rule.module.removesuffix(".py").removesuffix("/__init__")
                return f"{module.replace('/', '.')}.{rule.function}()"
        return None

    def is_optional(self, soname: str, user: ProgramFile) -> bool:
        """Check if the package of a file can be imported without a library."""
        projects = self._owners.projects_of([user])
        rules = (rule for rule in self._optional if not projects.isdisjoint(rule.projects))
        names = [name for rule in rules for name in rule.names]
        if key_of(soname).endswith(_DLL):
            # Rules have the names of Linux: `libcudnn.so.*` is also `cudnn64_9.dll`.
            families = {family_of(name).removeprefix("lib").lower() for name in names}
            return family_of(soname) in families
        return any(fnmatchcase(soname, name) for name in names)


def _installed_rules(
    environment: Environment, policy: LibraryPolicy
) -> Iterator[tuple[Distribution, Preload]]:
    """Yield the installed packages with a function that loads libraries, and its rule."""
    for rule in policy.preloads:
        # Modules state the optional libraries that they load themselves.
        for project in () if rule.is_optional else rule.projects:
            package = environment.distributions.get(project)
            if package is None:
                continue
            # The module is only read.
            text = foreign_text(Path(package.site, rule.module), _MODULE_LIMIT)
            if rule.function in text:
                yield package, _named_in(text, rule)


def _named_in(text: str, rule: Preload) -> Preload:
    """Return a rule with the libraries that this version of the module names, if it names any."""
    stems = {name: name.partition(_LIBRARY)[0] for name in rule.names}
    names = tuple(name for name, stem in stems.items() if f"{stem}{_LIBRARY}" in text)
    return rule.model_copy(update={"names": names or rule.names})


def _loaded_by(rule: Preload, files: Sequence[ProgramFile]) -> Iterator[tuple[str, FoundFile]]:
    """Yield the files that a rule loads, with their sonames."""
    text = f"{rule.module}: {rule.function}"
    for pattern in rule.names:
        for file in files:
            name = posixpath.basename(file.path)
            if fnmatchcase(name, pattern):
                library = FoundFile(found_by="preloaded", path=file.path, file=file, rule=text)
                yield file.binary.soname or name, library
                break
