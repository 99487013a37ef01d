"""Files that nothing in an environment loads, such as plugins of packages that are not installed.

Their missing libraries are warnings in two cases. An extra of their package that is not in use
requires the library, such as NCCL for `libcutensorMp.so.2`, and another file of the package needs
CUDA libraries, but none of such an extra. Or a Python extension of the package finds all libraries
that such a file lacks, so that they are loaded before the plugin.

In the first case, files of other packages may open the file, and it may be an extension of a
package that another one requires without the extra, such as cupy with cudf.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from packaging.requirements import Requirement

from cudaredist.environments.installed import Distribution
from cudaredist.environments.loaded_libraries import LoadedLibraries, Use
from cudaredist.environments.requirements_in_use import (
    project_of,
    projects_of,
    requirements_by_extra,
    requirements_with,
)
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
        missing = self._missing(file)
        openers = self._openers.get(stem_of(file.name), ())
        if any(map(self._is_of_unused_extra, missing)):
            is_main = is_extension(file) and not self._is_required(owner)
            return not is_main and owner not in openers and self._has_main_file(owner)
        if openers or is_extension(file):
            return False
        return self._is_served_by_extension(owner, missing)

    def _is_required(self, package: Distribution) -> bool:
        """Check if another installed package requires a package."""
        return any(
            project != package.project and package.project in projects_of(required)
            for project, required in self._libraries.requirements.items()
        )

    def _missing(self, file: ProgramFile) -> list[Use]:
        """Return the libraries that the loader does not find for a file, or that lack symbols."""
        return [use for use in self._uses.get(file, ()) if use.is_unmet(self._cuda)]

    def _has_main_file(self, owner: Distribution) -> bool:
        """Check if a file of a package needs CUDA libraries, but none of an unused extra."""
        return any(
            not any(map(self._is_of_unused_extra, self._missing(file)))
            and not self._cuda.isdisjoint(file.binary.needed)
            for file in self._uses
            if self._owners.of(file) is owner
        )

    def _is_of_unused_extra(self, use: Use) -> bool:
        """Check if only extras that are not in use require a missing library."""
        owner = self._owners.of(use.user)
        if owner is None or use.loaded.found_by != "none":
            return False
        in_extras = (each for listed in requirements_by_extra(owner).values() for each in listed)
        in_use = self._libraries.requirements[owner.project]
        unused = self._projects_of(in_extras) - self._projects_of(in_use)
        return not unused.isdisjoint(self._data.catalog.projects_with(use.soname))

    def _projects_of(self, requirements: Iterable[Requirement]) -> set[str]:
        """Return the projects of requirements, and those of their extras.

        `cupy-cuda12x[ctk]` requires `cuda-toolkit[cublas]`, and this the wheel of cuBLAS.
        """
        projects: set[str] = set()
        for requirement in requirements:
            other = self._libraries.files.environment.distributions.get(project_of(requirement))
            of_extras = () if other is None else requirements_with(other, requirement.extras)
            projects |= projects_of((requirement, *of_extras))
        return projects

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
    def _openers(self) -> dict[str, list[Distribution | None]]:
        """The packages with files that may open a library, by its name without version."""
        return grouped(
            (stem_of(name), self._owners.of(file))
            for file in self._libraries.files.elf_files
            for name in file.binary.opens
        )


def is_extension(file: ProgramFile) -> bool:
    """Check if Python can import a file."""
    groups = export_groups(file.binary)
    return any(name.startswith(_EXTENSION) for names, _ in groups for name in names)
