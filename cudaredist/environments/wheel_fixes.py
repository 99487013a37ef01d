"""Repairs that install the wheel with a library and its used symbols into an environment."""

from collections.abc import Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version as WheelVersion

from cudaredist.environments.installed import Distribution, Environment
from cudaredist.environments.repairs import Repairs
from cudaredist.environments.requirements_in_use import (
    extra_with,
    project_of,
    projects_of,
    requirements_with,
)
from cudaredist.programs.lowest_release import required_releases
from cudaredist.programs.needs import LibraryNeed
from cudaredist.programs.program import (
    AuditData,
    Catalog,
    KnownLibrary,
    Majors,
    ProgramFile,
    common_majors,
    majors_of,
    paths_of,
)
from cudaredist.programs.repair import Install, Repair
from cudaredist.programs.run_paths import wheel_folder
from cudaredist.programs.unlinked import stated_majors
from cudaredist.programs.wheel_requirements import pip_requirements, wheel_version


class WheelFix(NamedTuple):
    """A change that installs a wheel, or the reason for none."""

    repair: Repair | None = None
    conflict: str = ""
    """The requirement of another package that no version with the library fits."""
    folder: str = ""
    """The folder of the library in the wheel, below site-packages."""


def fix_for(
    soname: str,
    files: Sequence[ProgramFile],
    environment: Environment,
    data: AuditData,
    repairs: Repairs,
) -> WheelFix:
    """Return the repair of a library that some files need.

    There is none if the project is not known, no version has all symbols and fits the requirements
    of other packages, or the environment is a toolkit.
    """
    known = _providers(soname, files, environment, data.catalog)
    projects = {library.project for library in known}
    if environment.kind == "toolkit" or len(projects) != 1:
        return WheelFix()
    by = paths_of(files)
    need = LibraryNeed(
        soname=soname, kind="needed", status="provided", cuda=True, by=by, libraries=known
    )
    releases = required_releases([need], files, data.tables([soname]), Majors())
    (pip,) = pip_requirements([need], releases, Majors())
    if pip.lower_bound == "none":
        return WheelFix()
    project = projects.pop() or ""
    specifier, major = pip.specifier, project.rpartition("-cu")[2]
    if major.isdecimal():
        # The name of the project limits it already.
        specifier = specifier.removesuffix(f",<{int(major) + 1}")
    versions = SpecifierSet(specifier)
    merged = repairs.merge(project, [versions])
    if merged is None:
        return WheelFix(conflict=next(repairs.opponents(project, versions), ""))
    installed = environment.distributions.get(project)
    folder = _folder_in(known, merged)
    extra = _extra_repair(project, versions, files, environment, repairs)
    if installed is None and extra is not None:
        return WheelFix(extra, folder=folder)
    if installed is not None and merged.contains(installed.version, prereleases=True):
        return WheelFix(repairs.repair(reinstalls=[installed]))
    return WheelFix(repairs.repair(installs=[Install(project, merged)]), folder=folder)


def _folder_in(known: Sequence[KnownLibrary], versions: SpecifierSet) -> str:
    """Return the folder of a library in the newest of its wheels with one of some versions."""
    fitting = [each for each in known if (found := wheel_version(each)) and found in versions]
    return wheel_folder(fitting[-1]) if fitting else ""


def _extra_repair(
    project: str,
    versions: SpecifierSet,
    files: Sequence[ProgramFile],
    environment: Environment,
    repairs: Repairs,
) -> Repair | None:
    """Return the installation of the extra of the files' package that requires a project, if any.

    It also installs the other wheels that the package needs, so there is none if one of these is
    only a placeholder on the index.
    """
    all_owners = environment.owners()
    owners = [all_owners[file.path] for file in files if file.path in all_owners]
    if len({owner.project for owner in owners}) != 1 or not repairs.has_wheels:
        return None
    owner = owners[0]
    if any(map(repairs.is_placeholder, projects_of(requirements_with(owner)))):
        return None
    extra = extra_with(owner, project)
    stated = [each.specifier for each in owner.requires if project_of(each) == project]
    is_excluded = all(repairs.merge(project, [versions, each]) is None for each in stated)
    # A metapackage such as cuda-toolkit may state the version.
    if extra is None or (stated and is_excluded):
        return None
    pinned = SpecifierSet(f"=={owner.version}")
    return repairs.repair(installs=[Install(owner.project, pinned, (extra,))])


def newer_wheel(
    package: Distribution, known: Sequence[KnownLibrary], repairs: Repairs
) -> Repair | None:
    """Return the installation of the next version of a library that finds its parts.

    `known` are the wheels of the library's project. None: the installed version does, no newer one
    is known, or other packages require this one.
    """
    own: list[KnownLibrary] = []
    with_parts: list[WheelVersion] = []
    for library in known:
        version = wheel_version(library)
        if version is not None and str(version) == package.version:
            own.append(library)
        if version is not None and library.finds_parts:
            with_parts.append(version)
    # The version of an unknown wheel may be invalid.
    if not own or own[0].finds_parts:
        return None
    newer = [version for version in with_parts if version > WheelVersion(package.version)]
    if not newer:
        return None
    return repairs.install(package.project, SpecifierSet(f">={min(newer)}"))


def _providers(
    soname: str, files: Sequence[ProgramFile], environment: Environment, catalog: Catalog
) -> tuple[KnownLibrary, ...]:
    """Return the known wheels with a library, for the CUDA major of some files."""
    platforms = [platform for file in files for platform in file.platforms]
    known = [library for library in catalog.providers(soname, platforms) if library.project]
    all_owners = environment.owners()
    owners = [all_owners[file.path] for file in files if file.path in all_owners]
    declared = projects_of(each for owner in owners for each in requirements_with(owner))
    paths = {path for owner in owners for path in owner.files}
    siblings = [file for file in environment.files if file.path in paths]
    majors = common_majors(stated_majors(file, catalog) for file in files)
    sibling_majors = common_majors(stated_majors(file, catalog) for file in siblings)
    opened_majors = common_majors(_opened_majors(file, catalog) for file in siblings)
    # The surest evidence is first. It counts only if it selects a single project.
    choices = (
        [library for library in known if library.project in declared],
        [library for library in known if library.major in majors],
        [library for library in known if library.major in sibling_majors],
        [library for library in known if library.major in opened_majors],
        [library for library in known if library.project in environment.distributions],
    )
    for chosen in choices:
        if len({library.project for library in chosen}) == 1:
            return tuple(chosen)
    return tuple(known)


def _opened_majors(file: ProgramFile, catalog: Catalog) -> Majors:
    """Return the CUDA majors of the libraries that a file may open, if they agree."""
    provided = (catalog.providers(name, file.platforms) for name in file.binary.opens)
    return common_majors(map(majors_of, provided))
