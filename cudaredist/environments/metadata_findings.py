"""Differences between installed Python packages and their metadata.

The loader does not read METADATA and RECORD. But METADATA has the versions that work together, and
RECORD the size and hash of each file.
"""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement

from cudaredist.environments.consumers import release_of
from cudaredist.environments.installed import Distribution
from cudaredist.environments.load_all import exported_versions
from cudaredist.environments.loaded_libraries import LoadedLibraries
from cudaredist.environments.repairs import Repairs
from cudaredist.environments.requirements_in_use import (
    project_of,
    projects_of,
)
from cudaredist.grouping import grouped
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.program import AuditData, ProgramFile
from cudaredist.programs.repair import Install, Repair
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.wheel_projects import METAPACKAGES


class MetadataFindings:
    """The findings about the metadata of an environment's packages."""

    def __init__(self, libraries: LoadedLibraries, data: AuditData, repairs: Repairs) -> None:
        environment = libraries.files.environment
        self._packages, self._requirements = environment.distributions, libraries.requirements
        self._owners, self._repairs, self._data = libraries.files.owners, repairs, data
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
            repair, users = self._shared_fix(owners, self._owners.at(paths[0]))
            # Missing symbols in the installed file are a finding of their own.
            is_needed_twice = repair is None and len(users) > 1
            message += f"; both are required by {some_of(users)}" if is_needed_twice else ""
            yield Finding("shared-file", message, path, repair, is_warning=is_needed_twice)

    def _shared_fix(
        self, owners: Sequence[Distribution], installed: Distribution | None
    ) -> tuple[Repair | None, list[str]]:
        """Return the repair that keeps one package, and the packages that require any of them.

        It keeps the one that others require, or the owner of the installed file if none does. If
        others require several, no change of packages helps.
        """
        shared = {owner.project for owner in owners}
        users: dict[str, set[str]] = {}
        for package in self._packages.values():
            for project in projects_of(self._requirements[package.project]) & shared:
                if package not in owners:
                    users.setdefault(project, set()).add(package.title)
        titles = sorted(title for of_project in users.values() for title in of_project)
        required = [owner for owner in owners if owner.project in users]
        kept = required[0] if required else installed
        if len(required) > 1 or kept is None:
            return None, titles
        removed = [owner.project for owner in owners if owner is not kept]
        return self._repairs.repair(removed=removed, reinstalls=[kept]), titles

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

        It is a warning for packages of others than NVIDIA, and for files with the symbols of the
        release. They may be changed on purpose, such as their run paths, or after RECORD was
        written. A new installation may not help.
        """
        changed: dict[str, list[tuple[ProgramFile, str]]] = defaultdict(list)
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
                    changed[owner.project].append((file, sizes))
        for project, sizes_of_files in changed.items():
            owner = self._packages[project]
            texts = [f"{file.display_path} ({sizes})" for file, sizes in sizes_of_files]
            message = f"RECORD of {owner.title} has another size of {some_of(texts)}"
            first_path = sizes_of_files[0][0].display_path
            is_same = all(self._has_symbols_of_release(owner, file) for file, _ in sizes_of_files)
            if is_same:
                message += ". The symbols are those of the release, such as after patchelf"
            if project in self._projects and not is_same:
                repair = self._repairs.repair(reinstalls=[owner])
                yield Finding("changed-file", message, first_path, repair)
            else:
                yield Finding("changed-file", message, first_path, is_warning=True)

    def _has_symbols_of_release(self, owner: Distribution, file: ProgramFile) -> bool:
        """Check if a whole file exports the symbols of its package's release, by the data."""
        soname = file.binary.soname
        for library in self._data.catalog.wheels(owner.project):
            if library.soname == soname and str(wheel_version(library)) == owner.version:
                release = release_of(library, self._data)
                names = exported_versions(file).keys()
                return release is not None and file.is_whole and names == release.versions.keys()
        return False


def _plain(requirement: Requirement) -> str:
    """Return a requirement without its marker."""
    return f"{requirement.name}{requirement.specifier}"
