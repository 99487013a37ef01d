"""The file that is loaded for each library that the files of an environment need."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cudaredist.environments.environment_files import EnvironmentFiles
from cudaredist.environments.loader import FoundFile, Loading
from cudaredist.environments.opened import DamagedLibrary, Unopened
from cudaredist.environments.preloads import Preloads
from cudaredist.environments.requirements_in_use import RequirementsInUse
from cudaredist.programs.program import ProgramFile


class Use(NamedTuple):
    """A library that a file needs, and the file that is loaded for it."""

    user: ProgramFile
    soname: str
    loaded: FoundFile
    lacking: Collection[str]
    """Symbols that no loaded file exports."""

    def is_unmet(self, cuda: Collection[str]) -> bool:
        """Check if the loader does not find a CUDA library, or the file lacks symbols."""
        is_missing = self.soname in cuda and self.loaded.found_by in {"none", "other-code"}
        return bool(self.lacking) or is_missing


@dataclass(frozen=True, kw_only=True)
class LoadedLibraries:
    """The needed and opened libraries of an environment, as the loader finds them."""

    files: EnvironmentFiles
    requirements: RequirementsInUse
    preloads: Preloads
    loadings: Mapping[str, Loading]
    """The libraries that are loaded for each file, by its path."""
    uses: Sequence[Use]
    """Each needed library of each file."""
    replaced: Mapping[ProgramFile, ProgramFile]
    """Unusable files for other CUDA releases, each with a usable one of the same package."""
    unopened: Sequence[Unopened]
    """The opened libraries to report as missing."""
    damaged: Sequence[DamagedLibrary]
    """The loaded files that are not whole ELF files."""
    unknown: Sequence[ProgramFile]
    """Files whose CUDA libraries, or the used parts of them, are unknown."""

    def title_of(self, file: ProgramFile) -> str:
        """Return the name and version of the package with a file, empty if there is none."""
        return self.files.owners.title_of(file)

    def loads(self, file: ProgramFile, soname: str) -> bool:
        """Check if a library is loaded with a file or before it."""
        loading = self.loadings.get(file.path)
        return loading is not None and soname in loading.by_name

    def other_copies(self, use: Use) -> list[str]:
        """Return the paths of other files with the name of a needed library."""
        paths = self.files.paths_named([use.soname])
        return [path for path in paths if path != use.loaded.display_path]
