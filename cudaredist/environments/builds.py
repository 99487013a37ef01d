"""Other releases of installed packages, which are built for the CUDA major of an environment.

The policy has the releases of packages whose builds differ, also by project, such as
mooncake-transfer-engine and mooncake-transfer-engine-cuda13, and the packages that follow another
one, such as torchaudio. Other projects state the major in their names: `nvidia-cudss-cu11`.
If a package has a file for each of several CUDA releases, such as bitsandbytes, but all are too
old, a later version may have one for the environment.
"""

import re
from collections.abc import Collection, Iterable

from packaging.specifiers import SpecifierSet

from cudaredist.environments.environment_files import EnvironmentFiles
from cudaredist.environments.installed import Distribution
from cudaredist.environments.repairs import Repairs
from cudaredist.programs.alternatives import groups_of_alternatives
from cudaredist.programs.cuda_majors import FileMajors
from cudaredist.programs.program import AuditData, Majors
from cudaredist.programs.repair import Install, Repair

_STATED_MAJOR = re.compile(r"(-cu(?:da)?)[0-9]{2}(x?)$")


class OtherBuilds:
    """The releases of an environment's packages for other CUDA majors."""

    def __init__(
        self,
        files: EnvironmentFiles,
        data: AuditData,
        repairs: Repairs,
        majors: Iterable[FileMajors],
    ) -> None:
        """Take the CUDA majors of files."""
        self._files, self._data, self._repairs = files, data, repairs
        self._packages = files.environment.distributions
        self._majors: dict[str, set[Majors]] = {}
        """The CUDA majors of the files of each package, by project."""
        owners = {file.display_path: files.owners.project_of(file) for file in files.elf_files}
        for file in majors:
            if owners.get(file.path):
                self._majors.setdefault(owners[file.path], set()).add(file.common)

    def for_environment(self, package: Distribution) -> tuple[Repair, str] | None:
        """Return the installation of a package's build for the environment, and the reason.

        None: the package is for the CUDA major of the other packages, or no build is known.
        """
        # Files of NVIDIA's own wheels are not judged, so the data has their majors.
        own = self._majors.get(package.project) or {self._majors_of(package.project)}
        # A file that is loaded with libraries of several majors has none in common.
        stated = own - {frozenset()}
        installed = self._installed_majors(package)
        if len(installed) != 1 or any(len(each) != 1 for each in stated) or not stated:
            return None
        built, (used,) = sorted(major for each in stated for major in each), installed
        if used in built:
            return None
        repair = self.repair(package, installed) if len(built) == 1 else None
        if repair is None and used > built[-1] and self._has_alternatives(package):
            later = SpecifierSet(f">{package.version}")
            repair = self._repairs.install(package.project, later)
        title = " and ".join(map(str, built))
        reason = f"{package.title} is built for CUDA {title}, and the environment has CUDA {used}"
        return None if repair is None else (repair, reason)

    def _has_alternatives(self, package: Distribution) -> bool:
        """Check if a package has files for different CUDA releases."""
        files = [file for file in self._files.elf_files if file.path in package.files]
        return bool(groups_of_alternatives(files))

    def repair(self, package: Distribution, majors: Collection[int]) -> Repair | None:
        """Return the installation of a package's build for one of some CUDA majors."""
        for rule in self._data.policy.companions:
            other = self._packages.get(rule.follows)
            if rule.project == package.project and other is not None:
                minor = ".".join(other.version.split(".")[:2])
                versions = SpecifierSet(f"=={minor}.*")
                if not versions.contains(package.version, prereleases=True):
                    return self._repairs.install(package.project, versions)
        for build in self._data.policy.builds:
            is_other = package.project in build.replaces
            if (is_other or build.project == package.project) and build.cuda in majors:
                merged = self._repairs.merge(build.project, [SpecifierSet(build.versions)])
                if merged is not None and not (is_other and self._is_required(package)):
                    install = Install(build.project, merged, build.extras)
                    removed = [package.project] if is_other else []
                    return self._repairs.repair(removed=removed, installs=[install])
        return self._renamed(package, majors)

    def _renamed(self, package: Distribution, majors: Collection[int]) -> Repair | None:
        """Return the installation of the project that states another CUDA major in its name."""
        known = self._data.catalog.projects().union(
            *(rule.projects for rule in self._data.policy.preloads)
        )
        if self._is_required(package):
            return None
        for major in majors:
            name = _STATED_MAJOR.sub(rf"\g<1>{major}\g<2>", package.project)
            if name in known and name != package.project:
                installs = [] if name in self._packages else [Install(name, SpecifierSet())]
                return self._repairs.repair(removed=[package.project], installs=installs)
        return None

    def _is_required(self, package: Distribution) -> bool:
        """Check if another package requires a package, which then has to stay."""
        return self._repairs.is_required(package.project)

    def _installed_majors(self, package: Distribution) -> Majors:
        """Return the CUDA majors of the wheels of NVIDIA other than a package."""
        others = self._packages.keys() - {package.project}
        majors = (self._majors_of(project) for project in others)
        return frozenset().union(*(each for each in majors if len(each) == 1))

    def _majors_of(self, project: str) -> Majors:
        """Return the CUDA majors of the wheels of a project of NVIDIA, in any version."""
        libraries = self._data.catalog.wheels(project)
        return frozenset(library.major for library in libraries if library.major is not None)
