"""Changes of an environment that resolve findings, as commands for its installer."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import islice, product
from shlex import quote
from typing import Literal, NamedTuple, TypeAlias

from packaging.specifiers import SpecifierSet
from packaging.version import Version as WheelVersion

from cudaredist.environments.installed import Distribution, Environment
from cudaredist.environments.requirements_in_use import RequirementsInUse, project_of
from cudaredist.grouping import grouped
from cudaredist.programs.program import Catalog
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.wheels import COMPONENTS, package_of

Installer: TypeAlias = Literal["pip", "uv", "conda"]

_ORDER = ("===", "==", "~=", ">=", ">", "!=", "<=", "<")
_CONDA_PRODUCTS = frozenset({"cudnn", "cutensor", "nccl"})
"""Products whose packages have the same names and versions in conda-forge."""
_COMMANDS: Mapping[Installer, tuple[str, str, str]] = {
    "pip": ("pip uninstall --yes", "pip install", "pip install --force-reinstall --no-deps"),
    "uv": ("uv pip uninstall", "uv pip install", "uv pip install --reinstall --no-deps"),
    "conda": ("conda remove", "conda install", "conda install --force-reinstall"),
}
"""Commands that remove, install, and install again."""
_CHOICES = 64
"""Combinations of requirements to try."""


class Repair(NamedTuple):
    """Changes of an environment."""

    removed: tuple[str, ...] = ()
    """Projects to remove."""
    installs: tuple[tuple[str, SpecifierSet], ...] = ()
    """Projects to install, with their versions."""
    reinstalls: tuple[tuple[str, str], ...] = ()
    """Projects and versions to install again."""
    commands: tuple[str, ...] = ()
    """Commands of other programs."""


class Repairs:
    """The changes that resolve the findings of one environment."""

    def __init__(
        self, environment: Environment, catalog: Catalog, requirements: RequirementsInUse
    ) -> None:
        """Take the known wheels."""
        self._environment, self._catalog, self._requirements = environment, catalog, requirements
        self._versions = lru_cache(maxsize=None)(self._known_versions)
        self._by_hint: dict[str, Repair] = {}
        self.installer = _installer(environment, catalog.projects())

    @property
    def has_wheels(self) -> bool:
        """Whether the libraries of the environment are in wheels."""
        return self._environment.kind != "toolkit" and self.installer != "conda"

    def hint(self, repair: Repair) -> str | None:
        """Return the command for a change, None if the installer does not know a package."""
        command = self._command(repair)
        if command is not None:
            self._by_hint[command] = repair
        return command

    def install(self, project: str, versions: SpecifierSet) -> str | None:
        """Return the command that installs a project, with other requirements for it.

        None: other packages require different versions.
        """
        merged = self.merge(project, [versions])
        return None if merged is None else self.hint(Repair(installs=((project, merged),)))

    def reinstall(self, package: Distribution) -> str | None:
        """Return the command that installs a package again."""
        return self.hint(Repair(reinstalls=((package.project, package.version),)))

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

    def opponents(self, project: str, versions: SpecifierSet) -> Iterator[str]:
        """Yield the packages that require other versions of a project."""
        known = self._versions(project)
        for title, pins in self._pins.get(project, {}).items():
            if all(_merged([versions, pin], known) is None for pin in pins):
                yield f"{title} requires {project}{specifier_text(pins[0])}"

    def combined(self, hints: Iterable[str | None]) -> str | None:
        """Return one command for several hints, None if there is at most one."""
        repairs = [self._by_hint[hint] for hint in dict.fromkeys(hints) if hint in self._by_hint]
        if len(repairs) <= 1:
            return None
        installs: dict[str, SpecifierSet] = {}
        for project, versions in grouped(n for each in repairs for n in each.installs).items():
            merged = self.merge(project, versions)
            if merged is not None:
                installs[project] = merged
        removed = tuple(dict.fromkeys(n for each in repairs for n in each.removed))
        again = dict.fromkeys(n for each in repairs for n in each.reinstalls)
        changed = {*installs, *removed}
        return self._command(
            Repair(
                removed=tuple(name for name in removed if name not in installs),
                installs=tuple(_with_all_extras(installs).items()),
                reinstalls=tuple(each for each in again if each[0] not in changed),
                commands=tuple(dict.fromkeys(n for each in repairs for n in each.commands)),
            )
        )

    def _command(self, repair: Repair) -> str | None:
        is_conda = self.installer == "conda"
        name_of = _conda_name if is_conda else str
        equals = "=" if is_conda else "=="
        packages = (
            [(project, "") for project in repair.removed],
            [(project, specifier_text(versions)) for project, versions in repair.installs],
            [(project, f"{equals}{version}") for project, version in repair.reinstalls],
        )
        parts = []
        for command, words in zip(_COMMANDS[self.installer], packages, strict=True):
            names = [(name_of(project), versions) for project, versions in words]
            if any(name is None for name, _ in names):
                return None
            if names:
                parts.append(" ".join([command, *(quote(f"{n}{v}") for n, v in names)]))
        return " && ".join([*parts, *repair.commands])

    def _known_versions(self, project: str) -> frozenset[WheelVersion]:
        """Return the known versions of a wheel."""
        wheels = {lib.wheel: lib for lib in self._catalog.wheels(project)}
        return frozenset(filter(None, map(wheel_version, wheels.values())))

    @cached_property
    def _pins(self) -> dict[str, dict[str, list[SpecifierSet]]]:
        """The versions that installed packages require, by project and the package's title."""
        found: dict[str, dict[str, list[SpecifierSet]]] = {}
        for package in self._environment.distributions.values():
            for each in self._requirements[package.project]:
                pins = found.setdefault(project_of(each), {})
                pins.setdefault(package.title, []).append(each.specifier)
        return found


def _with_all_extras(installs: Mapping[str, SpecifierSet]) -> dict[str, SpecifierSet]:
    """Join the extras of a project, as in `onnxruntime-gpu[cuda,cudnn]`."""
    extras: dict[str, list[str]] = {}
    for name in installs:
        project, _, extra = name.removesuffix("]").partition("[")
        extras.setdefault(project, []).extend([extra] if extra else [])
    joined = {}
    for name, versions in installs.items():
        project = name.partition("[")[0]
        of_project = ",".join(sorted(extras[project]))
        joined[f"{project}[{of_project}]" if of_project else project] = versions
    return joined


def specifier_text(versions: SpecifierSet) -> str:
    """Return versions as a requirement has them, lower bounds first."""
    parts = sorted(versions, key=lambda one: (_ORDER.index(one.operator), one.version))
    return ",".join(map(str, parts))


def _merged(parts: Iterable[SpecifierSet], known: Collection[WheelVersion]) -> SpecifierSet | None:
    """Return the versions that fit several requirements, None if no version does."""
    every = {each for part in parts for each in part}
    combined = SpecifierSet(",".join(map(str, every)))
    pins = [n for n in every if n.operator in {"==", "==="} and "*" not in n.version]
    if pins:
        pin = min(pins, key=str)
        return SpecifierSet(str(pin)) if combined.contains(pin.version, prereleases=True) else None
    lower = {WheelVersion(n.version) for n in every if n.operator == ">="}
    upper = {WheelVersion(n.version) for n in every if n.operator == "<"}
    candidates = [*known, *lower]
    if candidates and not any(combined.contains(n, prereleases=True) for n in candidates):
        return None
    kept = [str(n) for n in every if n.operator not in {">=", "<"}]
    kept += [f">={max(lower)}"] if lower else []
    kept += [f"<{min(upper)}"] if upper else []
    return SpecifierSet(",".join(kept))


def _installer(environment: Environment, projects: Collection[str]) -> Installer:
    """Return the program that installed NVIDIA's wheels, or else most packages."""
    packages = environment.distributions.values()
    of_all = Counter(package.installer for package in packages if package.installer)
    of_nvidias = Counter(
        package.installer
        for package in packages
        if package.installer and package.project in projects
    )
    if environment.kind == "conda environment" and not of_nvidias:
        return "conda"
    counts = of_nvidias or of_all
    name = max(counts, key=lambda name: counts[name], default="pip")
    return name if name in _COMMANDS else "pip"  # type: ignore[return-value] # one of the keys


def _conda_name(project: str) -> str | None:
    """Return the package of conda-forge with the libraries of a wheel, if it is known."""
    package, _ = package_of(project)
    is_known = package in _CONDA_PRODUCTS or package in COMPONENTS.values()
    return package.replace("_", "-") if is_known else None
