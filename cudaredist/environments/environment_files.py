"""The files of an environment by their names and packages, before any of them is loaded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cudaredist.environments.file_owners import FileOwners
from cudaredist.environments.installed import Environment
from cudaredist.grouping import grouped
from cudaredist.programs.program import AuditData, ProgramFile


@dataclass(frozen=True, kw_only=True)
class EnvironmentFiles:
    """The files of an environment."""

    environment: Environment
    owners: FileOwners
    by_name: Mapping[str, Sequence[ProgramFile]]
    """The files by each of their names."""
    nvidia_files: frozenset[ProgramFile]
    """The files in NVIDIA's wheels."""
    platforms: tuple[str, ...]
    """The platforms that files run on."""
    cuda: frozenset[str]
    """The needed libraries that belong to NVIDIA's products."""

    @property
    def elf_files(self) -> list[ProgramFile]:
        """The files that the loader of glibc can load."""
        return [file for file in self.environment.files if file.binary.kind == "elf"]

    @property
    def pe_files(self) -> list[ProgramFile]:
        """The programs and libraries of Windows."""
        return [file for file in self.environment.files if file.binary.kind == "pe"]

    def for_user(self, user: ProgramFile, name: str) -> ProgramFile | None:
        """Return a file with a name for the machine of its user."""
        machine = user.binary.machine
        fitting = (file for file in self.by_name.get(name, ()) if file.binary.machine == machine)
        return next(fitting, None)

    def paths_named(self, names: Iterable[str]) -> list[str]:
        """Return the paths of the files with one of some names."""
        files = (file for name in names for file in self.by_name.get(name, ()))
        return list(dict.fromkeys(file.display_path for file in files))


def files_of(environment: Environment, data: AuditData) -> EnvironmentFiles:
    """Return the files of an environment, and those of NVIDIA among them."""
    files, projects = environment.files, data.catalog.projects()
    owners = FileOwners(environment)
    platforms = tuple(dict.fromkeys(each for file in files for each in file.platforms))
    needed = {name for file in files for name in file.binary.needed}
    return EnvironmentFiles(
        environment=environment,
        owners=owners,
        by_name=grouped((name, file) for file in files for name in file.names),
        nvidia_files=frozenset(file for file in files if owners.project_of(file) in projects),
        platforms=platforms,
        cuda=frozenset(name for name in needed if data.is_cuda_library(name, platforms)),
    )
