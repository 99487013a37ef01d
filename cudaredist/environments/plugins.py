"""Files that nothing in an environment loads, such as plugins of packages that are not installed.

Their missing libraries are warnings in two cases. An extra of their package that is not in use
requires the library, such as NCCL for `libcutensorMp.so.2`, and other files of the package find all
of their libraries. Or a Python extension of the package finds all libraries that such a file lacks,
so that they are loaded before the plugin.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache

from cudaredist.environments.installed import Distribution
from cudaredist.environments.loaded_libraries import LoadedLibraries, Use
from cudaredist.environments.requirements_in_use import projects_of, requirements_by_extra
from cudaredist.features.library_symbols import export_groups
from cudaredist.grouping import grouped
from cudaredist.programs.program import AuditData, ProgramFile
from cudaredist.sets.library_names import stem_of

_EXTENSION = "PyInit_"
"""The beginning of the function with which Python imports an extension."""


class Plugins:
    """The files of an environment that no other file needs or opens."""

    def __init__(self, libraries: LoadedLibraries, data: AuditData) -> None:
        self._libraries, self._data = libraries, data
        self._owners, self._cuda = libraries.files.owners, libraries.files.cuda
        self._uses = grouped((use.user, use) for use in libraries.uses)
        self.is_optional = lru_cache(maxsize=None)(self._is_optional)

    def _is_optional(self, file: ProgramFile) -> bool:
        """Check if a file may lack libraries because nothing in the environment loads it."""
        owner = self._owners.of(file)
        if owner is None or not file.binary.is_shared or file in self._loaded:
            return False
        if stem_of(file.name) in self._opened or is_extension(file):
            return False
        missing = self._missing(file)
        if any(map(self._is_of_unused_extra, missing)):
            return self._has_complete_file(owner)
        return self._is_served_by_extension(owner, missing)

    def _missing(self, file: ProgramFile) -> list[Use]:
        """Return the libraries that the loader does not find for a file, or that lack symbols."""
        return [use for use in self._uses.get(file, ()) if use.is_unmet(self._cuda)]

    def _has_complete_file(self, owner: Distribution) -> bool:
        """Check if a file of a package needs CUDA libraries, and the loader finds all of them."""
        return any(
            not self._missing(file) and not self._cuda.isdisjoint(file.binary.needed)
            for file in self._uses
            if self._owners.of(file) is owner
        )

    def _is_of_unused_extra(self, use: Use) -> bool:
        """Check if only extras that are not in use require a missing library."""
        owner = self._owners.of(use.user)
        if owner is None or use.loaded.found_by != "none":
            return False
        in_extras = (each for listed in requirements_by_extra(owner).values() for each in listed)
        unused = projects_of(in_extras) - projects_of(self._libraries.requirements[owner.project])
        return not unused.isdisjoint(self._data.catalog.projects_with(use.soname))

    def _is_served_by_extension(self, owner: Distribution, missing: Sequence[Use]) -> bool:
        """Check if an extension of a package finds all libraries that a plugin lacks."""
        if any(use.loaded.found_by != "other-code" for use in missing):
            return False
        names = {use.soname for use in missing}
        return bool(names) and any(
            self._owners.of(file) is owner
            and names <= self._libraries.loadings[file.path].by_name.keys()
            for file in self._extensions
        )

    @cached_property
    def _extensions(self) -> list[ProgramFile]:
        """The extensions of Python."""
        files = self._libraries.files
        others = (file for file in files.elf_files if file not in files.nvidia_files)
        return [file for file in others if is_extension(file)]

    @cached_property
    def _loaded(self) -> frozenset[ProgramFile]:
        """The files that others need."""
        files = (use.loaded.file for use in self._libraries.uses)
        return frozenset(file for file in files if file is not None)

    @cached_property
    def _opened(self) -> frozenset[str]:
        """The names that files may open, without versions."""
        opens = (name for file in self._libraries.files.elf_files for name in file.binary.opens)
        return frozenset(map(stem_of, opens))


def is_extension(file: ProgramFile) -> bool:
    """Check if Python can import a file."""
    groups = export_groups(file.binary)
    return any(name.startswith(_EXTENSION) for names, _ in groups for name in names)
