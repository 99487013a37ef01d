"""The requirements of installed packages that are in use, also those of their extras.

Metadata does not record the extras that a user installed. An extra is in use in these cases:

- Another package requires it, as in `cuda-toolkit[cublas]`. A requirement of an extra counts only
  if that extra is required, too.
- All of its requirements are installed, and a wheel of NVIDIA is one of them.
- It is the only reason for an installed wheel of NVIDIA: no other package requires this wheel, and
  no extra of the same package whose requirements are all installed.

The extras of metapackages name single projects, so only the first case applies to them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudaredist.environments.installed import Distribution
from cudaredist.wheel_projects import METAPACKAGES, package_of_project
from cudaredist.wheels import evaluate_marker

Packages: TypeAlias = Mapping[str, Distribution]
"""Installed packages by project."""
RequirementsInUse: TypeAlias = Mapping[str, Sequence[Requirement]]
"""The requirements of each installed package, by its project."""
_find_extras = re.compile(r"extra == \"([^\"]+)\"").findall


def requirements_in_use(packages: Packages, wheels: Collection[str]) -> RequirementsInUse:
    """Return the requirements of each installed package that are in use.

    `wheels` are the projects of NVIDIA's wheels.
    """
    required = _required_extras(packages, {})
    users = _users_by_project(packages)
    requirements: dict[str, Sequence[Requirement]] = {}
    for project, package in packages.items():
        extras = required[project]
        if project not in METAPACKAGES:
            extras = extras | _implied_extras(package, packages, wheels, users)
        requirements[project] = tuple(requirements_with(package, extras))
    return requirements


def project_of(requirement: Requirement) -> str:
    """Return the project that a requirement names."""
    return canonicalize_name(requirement.name)


def projects_of(requirements: Iterable[Requirement]) -> set[str]:
    """Return the projects that some requirements name."""
    return set(map(project_of, requirements))


# -- the extras in use


def _required_extras(
    packages: Packages, known: Mapping[str, Collection[str]]
) -> dict[str, set[str]]:
    """Return the extras that installed packages require, and `known` ones, by project."""
    extras = {project: {*known.get(project, ())} for project in packages}
    queue = [*packages.values()]
    while queue:
        package = queue.pop()
        for requirement in requirements_with(package, extras[package.project]):
            other = packages.get(project_of(requirement))
            if other is not None and not extras[other.project] >= requirement.extras:
                extras[other.project] |= requirement.extras
                queue.append(other)
    return extras


def _implied_extras(
    package: Distribution,
    packages: Packages,
    wheels: Collection[str],
    users: Mapping[str, Collection[str]],
) -> set[str]:
    """Return the extras of a package that installed wheels of NVIDIA imply."""
    installed, by_extra = packages.keys(), _projects_by_extra(package)
    whole = [projects for projects in by_extra.values() if projects <= installed]
    explained = set[str]().union(*whole)
    implied: set[str] = set()
    for extra, projects in by_extra.items():
        own_wheels = projects & installed & {*wheels}
        is_only_reason = any(
            {*users.get(wheel, ())} <= {package.project} for wheel in own_wheels - explained
        )
        if own_wheels and (projects <= installed or is_only_reason):
            implied.add(extra)
    return implied


def _users_by_project(packages: Packages) -> dict[str, set[str]]:
    """Return the installed packages that require each project.

    An extra counts if another package requires it, or if all of its requirements are installed.
    """
    whole = {project: _whole_extras(package, packages) for project, package in packages.items()}
    extras = _required_extras(packages, whole)
    users: dict[str, set[str]] = {}
    for project, package in packages.items():
        for required in projects_of(requirements_with(package, extras[project])):
            users.setdefault(required, set()).add(project)
    return users


def _whole_extras(package: Distribution, packages: Packages) -> set[str]:
    """Return the extras of a package whose requirements are all installed."""
    if package.project in METAPACKAGES:
        return set()
    by_extra = requirements_by_extra(package)
    return {extra for extra, required in by_extra.items() if _are_installed(required, packages)}


def _are_installed(requirements: Iterable[Requirement], packages: Packages) -> bool:
    """Check if some requirements are installed, with the extras that they name."""
    queue, known = [*requirements], set[tuple[str, str]]()
    while queue:
        requirement = queue.pop()
        package = packages.get(project_of(requirement))
        if package is None:
            return False
        extras = map(canonicalize_name, requirement.extras)
        new = {(package.project, extra) for extra in extras} - known
        if new:
            known |= new
            by_extra = requirements_by_extra(package).items()
            by_name = {canonicalize_name(extra): required for extra, required in by_extra}
            queue += (each for _, extra in new for each in by_name.get(extra, ()))
    return True


# -- the requirements of one package


def requirements_with(package: Distribution, extras: Collection[str] = ()) -> Iterator[Requirement]:
    """Yield the requirements of a package without an extra, or with some of them."""
    written: dict[str, str] = {canonicalize_name(extra): extra for extra in extras}
    for requirement in package.requires:
        marker = requirement.marker
        if marker is None or _applies(marker, ""):
            yield requirement
            continue
        named = _extras_of(marker)
        tried = [written[extra] for extra in named if extra in written]
        # Only unusual markers, such as `extra in "a b"`, name no extra of their own.
        if any(_applies(marker, extra) for extra in (tried if named else extras)):
            yield requirement


def requirements_by_extra(package: Distribution) -> dict[str, list[Requirement]]:
    """Return the requirements that a package has only with an extra, by extra."""
    by_extra: dict[str, list[Requirement]] = {extra: [] for extra in package.extras}
    written: dict[str, str] = {canonicalize_name(extra): extra for extra in package.extras}
    for requirement in package.requires:
        if requirement.marker is None:
            continue
        for extra in _extras_of(requirement.marker):
            if extra in written and _is_only_with(requirement.marker, written[extra]):
                by_extra[written[extra]].append(requirement)
    return by_extra


def extra_with(package: Distribution, project: str) -> str | None:
    """Return the extra of a package that requires a project, the one with the fewest others."""
    by_extra = requirements_by_extra(package)
    fitting = [
        extra
        for extra, required in by_extra.items()
        if any(_requires(each, project) for each in required)
    ]
    return min(fitting, key=lambda extra: (len(by_extra[extra]), extra), default=None)


def _requires(requirement: Requirement, project: str) -> bool:
    """Check if a requirement names a project, or an extra of a metapackage for it.

    `cuda-toolkit[nvrtc]==12.*` requires `nvidia-cuda-nvrtc-cu12`.
    """
    if project_of(requirement) not in METAPACKAGES:
        return project_of(requirement) == project
    component, major = package_of_project(project), project.rpartition("-cu")[2]
    is_extra = any(component.endswith(extra) for extra in requirement.extras)
    # The projects without a major in their name are for CUDA 13.
    return is_extra and requirement.specifier.contains(f"{major if major.isdecimal() else 13}.99")


def required_projects(project: str, packages: Packages) -> set[str]:
    """Return the installed projects that an installed project requires, and itself."""
    projects: set[str] = set()
    queue = [(packages[project], frozenset[str]())]
    while queue:
        user, extras = queue.pop()
        projects.add(user.project)
        for requirement in requirements_with(user, extras):
            other = packages.get(project_of(requirement))
            if other is not None and other.project not in projects:
                queue.append((other, frozenset(requirement.extras)))
    return projects


def _projects_by_extra(package: Distribution) -> dict[str, set[str]]:
    """Return the projects that a package requires only with an extra, by extra."""
    by_extra = requirements_by_extra(package)
    return {extra: projects_of(requirements) for extra, requirements in by_extra.items()}


def _is_only_with(marker: Marker, extra: str) -> bool:
    """Check if a marker applies with an extra, but not without."""
    return not _applies(marker, "") and _applies(marker, extra)


@cache
def _extras_of(marker: Marker) -> frozenset[str]:
    """Return the extras that a marker names."""
    return frozenset(map(canonicalize_name, _find_extras(str(marker))))


@cache
def _applies(marker: Marker, extra: str) -> bool:
    """Check if a marker applies on this machine, with an extra. Many packages have the same."""
    return evaluate_marker(marker, {"extra": extra})
