"""Releases of NVIDIA's packages that only use symbols of the installed libraries.

If other packages require the installed version of a library, the package that uses it is changed
instead. The tables of symbols contain the symbols that each release exports and uses.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

from packaging.specifiers import SpecifierSet

from cudaredist.environments.load_all import exported_versions
from cudaredist.environments.loaded_libraries import LoadedLibraries
from cudaredist.environments.repairs import Repairs
from cudaredist.grouping import grouped
from cudaredist.programs.lowest_release import symbols_by_library
from cudaredist.programs.program import AuditData, KnownLibrary, ProgramFile
from cudaredist.programs.repair import Install, Repair
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.sets.library_names import key_of
from cudaredist.tables.symbols.symbol_table import Import, LibraryRelease


class Consumers:
    """The packages of NVIDIA that use libraries of other packages."""

    def __init__(self, libraries: LoadedLibraries, data: AuditData, repairs: Repairs) -> None:
        self._libraries, self._data, self._repairs = libraries, data, repairs
        self._owners = libraries.files.owners
        self._exports = lru_cache(maxsize=None)(exported_versions)

    def repair(self, users: Collection[ProgramFile]) -> Repair | None:
        """Return the installation of other releases of the users' packages.

        None: a user is not in a wheel of NVIDIA, no release fits the installed libraries, or other
        packages require the installed release.
        """
        by_project = grouped((self._owners.project_of(file), file) for file in users)
        installs = [self._install(project, files[0]) for project, files in by_project.items()]
        fitting = [install for install in installs if install is not None]
        return self._repairs.repair(installs=fitting) if len(fitting) == len(installs) else None

    def _install(self, project: str, user: ProgramFile) -> Install | None:
        """Return the installation of the newest release of a user's project that fits."""
        known = self._data.catalog.wheels(project)
        wheels = grouped((wheel_version(each), each) for each in known)
        wheels.pop(None, None)
        for version in sorted(filter(None, wheels), reverse=True):
            own = [each for each in wheels[version] if each.platform in user.platforms]
            pinned = self._repairs.merge(project, [SpecifierSet(f"=={version}")])
            if pinned is not None and self._serves_users(project, own) and self._fits(own, user):
                return Install(project, pinned)
        return None

    def _fits(self, libraries: Sequence[KnownLibrary], user: ProgramFile) -> bool:
        """Check if installed libraries export all symbols that the libraries of a release use."""
        releases = [self._release(library) for library in libraries]
        own = {key_of(library.soname) for library in libraries}
        return all(
            release is not None
            and all(
                key_of(symbol.library) in own or self._is_exported(symbol, user)
                for symbol in release.imports()
            )
            for release in releases
        )

    def _is_exported(self, symbol: Import, user: ProgramFile) -> bool:
        """Check if the installed file of a symbol's library exports it.

        Libraries of the system are not examined.
        """
        file = self._libraries.files.for_user(user, symbol.library)
        if file is None:
            return not self._data.is_cuda_library(symbol.library, user.platforms)
        exported = self._exports(file)
        return any(map(symbol.is_met_by, exported.get(symbol.name, ())))

    def _serves_users(self, project: str, libraries: Sequence[KnownLibrary]) -> bool:
        """Check if a release exports all symbols that installed files use of its project."""
        by_name = {key_of(library.soname): library for library in libraries}
        for use in self._libraries.uses:
            file = use.loaded.file
            if file is None or self._owners.project_of(file) != project:
                continue
            library = by_name.get(key_of(use.soname))
            release = None if library is None else self._release(library)
            if release is None:
                return False
            # The libraries of a release are changed together.
            if self._owners.project_of(use.user) == project:
                continue
            tables = self._data.tables([use.soname])
            symbols = symbols_by_library([use.user], [use.soname], tables)
            if not all(map(release.has, symbols.get(use.soname, ()))):
                return False
        return True

    def _release(self, library: KnownLibrary) -> LibraryRelease | None:
        return release_of(library, self._data)


def release_of(library: KnownLibrary, data: AuditData) -> LibraryRelease | None:
    """Return the symbols of a library in its wheel, None if they are unknown."""
    table = data.tables([library.soname]).get(library.soname)
    return None if table is None else table.in_archive(library.archive)
