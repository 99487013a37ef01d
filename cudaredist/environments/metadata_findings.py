"""Differences between installed Python packages and their metadata.

The loader does not read METADATA and RECORD. But METADATA has the versions that work together, and
RECORD the size and hash of each file.
"""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement

from cudaredist.environments.installed import Distribution
from cudaredist.environments.loaded_libraries import LoadedLibraries
from cudaredist.environments.repairs import Repairs
from cudaredist.environments.requirements_in_use import (
    project_of,
    projects_of,
)
from cudaredist.grouping import grouped
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.program import AuditData
from cudaredist.programs.repair import Install, Repair
from cudaredist.wheels import METAPACKAGES


class MetadataFindings:
    """The findings about the metadata of an environment's packages."""

    def __init__(self, libraries: LoadedLibraries, data: AuditData, repairs: Repairs) -> None:
        environment = libraries.files.environment
        self._packages, self._requirements = environment.distributions, libraries.requirements
        self._owners, self._repairs = libraries.files.owners, repairs
        self._projects = data.catalog.projects()
        self._checked = {*self._projects, *METAPACKAGES, *libraries.preloads.projects}
        self._files = {file.path: file for file in environment.files}

    def all(self, damaged: Collection[str]) -> Iterator[Finding]:
        """Yield the differences. Damaged files have findings already."""
        for package in self._packages.values():
            if not projects_of(package.requires).isdisjoint(self._checked):
                yield from self._requirement_findings(package)
        yield from self._shared_findings()
        yield from self._size_findings(damaged)

    def _requirement_findings(self, package: Distribution) -> Iterator[Finding]:
        """Yield a finding for required wheels of another version, and for missing ones.

        Missing wheels of NVIDIA are a finding if most of the required ones are installed.
        """
        required = self._requirements[package.project]
        wheels = [each for each in required if project_of(each) in self._projects]
        missing = [wheel for wheel in wheels if project_of(wheel) not in self._packages]
        installed_count = len(wheels) - len(missing)
        if missing and installed_count > len(missing):
            names = some_of([_plain(each) for each in missing])
            message = f"{package.title} requires {names}, which is not installed"
            yield Finding("requirement", message, repair=self._install(missing))
        by_project = grouped((project_of(each), each) for each in required)
        for project, same in by_project.items():
            other = self._packages.get(project)
            if other is None or project not in self._checked:
                continue
            # Extras may require different versions, of which one is installed.
            if not any(each.specifier.contains(other.version, prereleases=True) for each in same):
                words = f"requires {_plain(same[0])}, but {other.version} is installed"
                repair = self._install(same[:1])
                yield Finding("requirement", f"{package.title} {words}", repair=repair)

    def _shared_findings(self) -> Iterator[Finding]:
        """Yield a finding for packages that contain the same files."""
        groups = grouped(
            (tuple(sorted(owner.title for owner in owners)), path)
            for path, owners in self._owners.shared.items()
        )
        for titles, paths in groups.items():
            owners = self._owners.shared[paths[0]]
            names = some_of([self._files[path].display_path for path in paths])
            own = self._owners.title_of(self._files[paths[0]])
            message = f"{' and '.join(titles)} both contain {names}; installed is the one of {own}"
            path = self._files[paths[0]].display_path
            yield Finding("shared-file", message, path, self._shared_fix(owners))

    def _shared_fix(self, owners: Sequence[Distribution]) -> Repair | None:
        """Return the repair that keeps the one package that others require, if there is one."""
        others = [each for each in self._packages.values() if each not in owners]
        required = projects_of(
            each for package in others for each in self._requirements[package.project]
        )
        kept = [owner for owner in owners if owner.project in required]
        if len(kept) != 1:
            return None
        removed = [owner.project for owner in owners if owner is not kept[0]]
        return self._repairs.repair(removed=removed, reinstalls=kept)

    def _install(self, requirements: Sequence[Requirement]) -> Repair | None:
        """Return the installation of some requirements, None if other packages contradict them."""
        installs = []
        for each in requirements:
            project = project_of(each)
            own = [] if self._repairs.has_wheels else [each.specifier]
            merged = self._repairs.merge(project, own)
            if merged is None:
                return None
            installs.append(Install(project, merged))
        return self._repairs.repair(installs=installs)

    def _size_findings(self, damaged: Collection[str]) -> Iterator[Finding]:
        """Yield a finding for each package with files of other sizes than in its RECORD.

        It is a warning for packages of others than NVIDIA. Their files may be changed on purpose,
        such as their run paths, or after RECORD was written. A new installation may not help.
        """
        changed: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for path, file in self._files.items():
            owner = self._owners.at(path)
            if owner is None or path in damaged:
                continue
            size = owner.files[path].size
            if size is None:
                continue
            with contextlib.suppress(OSError):
                actual = Path(path).stat().st_size
                if actual != size:
                    sizes = f"{actual:,} bytes instead of {size:,}"
                    changed[owner.project].append((file.display_path, sizes))
        for project, sizes_of_files in changed.items():
            owner = self._packages[project]
            texts = [f"{path} ({sizes})" for path, sizes in sizes_of_files]
            message = f"RECORD of {owner.title} has another size of {some_of(texts)}"
            first_path, _ = sizes_of_files[0]
            if project in self._projects:
                repair = self._repairs.repair(reinstalls=[owner])
                yield Finding("changed-file", message, first_path, repair)
            else:
                yield Finding("changed-file", message, first_path, is_warning=True)


def _plain(requirement: Requirement) -> str:
    """Return a requirement without its marker."""
    return f"{requirement.name}{requirement.specifier}"
