"""Changes of packages that resolve the findings of an environment, by its installer."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice, product

from packaging.specifiers import SpecifierSet
from packaging.version import Version as WheelVersion

from cudaredist.environments.active import active_environments
from cudaredist.environments.installed import Distribution, Environment
from cudaredist.environments.requirements_in_use import RequirementsInUse, project_of
from cudaredist.grouping import grouped
from cudaredist.programs.program import Catalog
from cudaredist.programs.repair import COMMANDS, Install, Installer, Repair, specifier_text
from cudaredist.programs.wheel_requirements import wheel_version

_EQUAL = frozenset({"==", "==="})
_MAJOR_SUFFIX = re.compile(r"-cu[0-9]+$")
_CHOICES = 64
"""Combinations of requirements to try."""


class Repairs:
    """The changes that resolve the findings of one environment."""

    def __init__(
        self, environment: Environment, catalog: Catalog, requirements: RequirementsInUse
    ) -> None:
        """Take the known wheels."""
        self._environment, self._catalog, self._requirements = environment, catalog, requirements
        self._versions = lru_cache(maxsize=None)(self._known_versions)
        self.installer = _installer(environment, catalog.projects())
        has_python = environment.kind in {"virtual environment", "conda environment"}
        self._path = environment.path if has_python and not _is_active(environment) else None

    @property
    def has_wheels(self) -> bool:
        """Whether the libraries of the environment are in wheels."""
        return self._environment.kind != "toolkit" and self.installer != "conda"

    def repair(
        self,
        *,
        removed: Sequence[str] = (),
        installs: Sequence[Install] = (),
        reinstalls: Sequence[Distribution] = (),
    ) -> Repair | None:
        """Return a change of packages, None if the installer does not know one of them."""
        repair = Repair(
            installer=self.installer,
            environment=self._path,
            removed=tuple(removed),
            installs=tuple(installs),
            reinstalls=tuple((package.project, package.version) for package in reinstalls),
        )
        return repair if repair.is_possible else None

    def install(self, project: str, versions: SpecifierSet) -> Repair | None:
        """Return the installation of a project, with other requirements for it.

        None: other packages require different versions, or the installer does not know it.
        """
        merged = self.merge(project, [versions])
        return None if merged is None else self.repair(installs=[Install(project, merged)])

    def merge(self, project: str, versions: Iterable[SpecifierSet]) -> SpecifierSet | None:
        """Return the versions of a project that installed packages also require.

        A package may require different versions in several extras, of which one is enough.
        """
        pins = self._pins.get(project, {}).values() if self.has_wheels else ()
        known = self._versions(project)
        for choice in islice(product(*pins), _CHOICES):
            merged = _merged([*versions, *choice], known)
            if merged is not None:
                return merged
        return None

    def is_required(self, project: str) -> bool:
        """Check if an installed package requires a project in any version."""
        return project in self._pins

    def is_placeholder(self, project: str) -> bool:
        """Check if a project has the name of a component's wheel, but no known wheel.

        From CUDA 13 on, the wheel is `nvidia-cublas`. `nvidia-cublas-cu13` cannot be installed.
        """
        known, installed = self._catalog.projects(), self._environment.distributions
        plain = without_major(project)
        return plain != project and plain in known and project not in {*known, *installed}

    def opponents(self, project: str, versions: SpecifierSet) -> Iterator[str]:
        """Yield the packages that require other versions of a project."""
        known = self._versions(project)
        for title, pins in self._pins.get(project, {}).items():
            if all(_merged([versions, pin], known) is None for pin in pins):
                yield f"{title} requires {project}{specifier_text(pins[0])}"

    def combined(self, repairs: Iterable[Repair]) -> Repair | None:
        """Return all changes as one repair, None if there is at most one."""
        parts = [part for part in dict.fromkeys(repairs) if not part.has_placeholder]
        if len(parts) <= 1:
            return None
        installs = list(self._merged_installs(each for part in parts for each in part.installs))
        # The installation of an extra does not change the package itself.
        installed = {install.project for install in installs if not install.extras}
        removed = dict.fromkeys(project for part in parts for project in part.removed)
        again = dict.fromkeys(reinstall for part in parts for reinstall in part.reinstalls)
        changed = {*installed, *removed}
        return Repair(
            installer=self.installer,
            environment=self._path,
            removed=tuple(project for project in removed if project not in installed),
            installs=tuple(_with_all_extras(installs)),
            reinstalls=tuple(each for each in again if each[0] not in changed),
            commands=tuple(dict.fromkeys(line for part in parts for line in part.commands)),
        )

    def _merged_installs(self, installs: Iterable[Install]) -> Iterator[Install]:
        """Yield each project once for the same extras, with versions that fit all repairs."""
        by_extras = grouped(((each.project, each.extras), each.versions) for each in installs)
        for (project, extras), versions in by_extras.items():
            merged = _merged(versions, ()) if extras else self.merge(project, versions)
            if merged is not None:
                yield Install(project, merged, extras)

    def _known_versions(self, project: str) -> frozenset[WheelVersion]:
        """Return the known versions of a wheel."""
        wheels = {lib.wheel: lib for lib in self._catalog.wheels(project)}
        return frozenset(filter(None, map(wheel_version, wheels.values())))

    @cached_property
    def _pins(self) -> dict[str, dict[str, list[SpecifierSet]]]:
        """The versions that installed packages require, by project and the package's title."""
        pins_by_project: dict[str, dict[str, list[SpecifierSet]]] = {}
        for package in self._environment.distributions.values():
            for each in self._requirements[package.project]:
                pins = pins_by_project.setdefault(project_of(each), {})
                pins.setdefault(package.title, []).append(each.specifier)
        return pins_by_project


def without_major(project: str) -> str:
    """Return the name of a project without a CUDA major such as `-cu12`."""
    return _MAJOR_SUFFIX.sub("", project)


def _is_active(environment: Environment) -> bool:
    """Check if installers change this environment without an option."""
    active = set(map(os.path.realpath, active_environments()))
    return os.path.realpath(environment.path) in active


def _with_all_extras(installs: Iterable[Install]) -> Iterator[Install]:
    """Join the extras of each project, as in `onnxruntime-gpu[cuda,cudnn]`."""
    for project, parts in grouped((each.project, each) for each in installs).items():
        extras = sorted(extra for part in parts for extra in part.extras)
        yield Install(project, parts[-1].versions, tuple(extras))


def _merged(parts: Iterable[SpecifierSet], known: Collection[WheelVersion]) -> SpecifierSet | None:
    """Return the versions that fit several requirements, None if no version does."""
    limits = {limit for part in parts for limit in part}
    combined = SpecifierSet(",".join(map(str, limits)))
    pins = [each for each in limits if each.operator in _EQUAL and "*" not in each.version]
    if pins:
        pin = min(pins, key=str)
        return SpecifierSet(str(pin)) if combined.contains(pin.version, prereleases=True) else None
    lower = {WheelVersion(limit.version) for limit in limits if limit.operator == ">="}
    upper = {WheelVersion(limit.version) for limit in limits if limit.operator == "<"}
    candidates = [*known, *lower]
    if candidates and not any(combined.contains(each, prereleases=True) for each in candidates):
        return None
    kept = [str(limit) for limit in limits if limit.operator not in {">=", "<"}]
    kept += [f">={max(lower)}"] if lower else []
    kept += [f"<{min(upper)}"] if upper else []
    return SpecifierSet(",".join(kept))


def _installer(environment: Environment, projects: Collection[str]) -> Installer:
    """Return the program that installed NVIDIA's wheels, or else most packages."""
    packages = [package for package in environment.distributions.values() if package.installer]
    of_all = Counter(package.installer for package in packages)
    of_wheels = Counter(package.installer for package in packages if package.project in projects)
    if environment.kind == "conda environment" and not of_wheels:
        return "conda"
    counts = of_wheels or of_all
    name = max(counts, key=lambda name: counts[name], default="pip")
    return name if name in COMMANDS else "pip"  # type: ignore[return-value] # one of the keys
