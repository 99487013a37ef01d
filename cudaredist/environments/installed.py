"""Installed environments: their kind, and the Python packages in them."""

import csv
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import HeaderParser
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudaredist.programs.program import ProgramFile
from cudaredist.programs.report import EnvironmentKind
from cudaredist.store.files import foreign_text
from cudaredist.wheels import METAPACKAGES, evaluate_marker, parse_requirements

_METADATA = "METADATA"
_DIST_INFO = ".dist-info"
_NAMES_OF_KINDS = frozenset({"pyvenv.cfg", "conda-meta", ".cudaredist.json", "etc", "usr"})
_TEXT_LIMIT = 16 << 20
_LINE_LIMIT = 1 << 16
_SIZE_DIGITS = 20
_find_extras = re.compile(r"extra == \"([^\"]+)\"").findall


class RecordedFile(NamedTuple):
    """A file in RECORD."""

    digest: str
    """Its hash, such as `sha256=...`. Empty if RECORD has none."""
    size: int | None


class Distribution(NamedTuple):
    """An installed Python package."""

    project: str
    version: str
    site: str
    """The folder that it is installed in, such as `site-packages`."""
    requires: tuple[Requirement, ...]
    extras: tuple[str, ...]
    files: Mapping[str, RecordedFile]
    """Its files other than modules by path, also removed ones."""
    installer: str = ""
    """The program that installed it, such as `pip`, `uv` or `conda`."""

    @property
    def title(self) -> str:
        """Its project and version."""
        return f"{self.project} {self.version}"

    def requirements(self, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
        """Yield the requirements without an extra, or with some of them."""
        written: dict[str, str] = {canonicalize_name(extra): extra for extra in extras}
        for requirement in self.requires:
            marker = requirement.marker
            if marker is None or _applies(marker, ""):
                yield requirement
                continue
            named = _extras_of(marker)
            tried = [written[extra] for extra in named if extra in written]
            # Only unusual markers, such as `extra in "a b"`, name no extra of their own.
            if any(_applies(marker, extra) for extra in (tried if named else extras)):
                yield requirement

    def extra_with(self, project: str) -> str | None:
        """Return the extra that requires a project, the one with the fewest others."""
        names_by_extra = self.names_by_extra()
        fitting = [extra for extra, names in names_by_extra.items() if project in names]
        return min(fitting, key=lambda extra: (len(names_by_extra[extra]), extra), default=None)

    def names_by_extra(self) -> dict[str, set[str]]:
        """Return the projects that only an extra requires, by extra."""
        return {
            extra: {canonicalize_name(each.name) for each in requirements}
            for extra, requirements in self.requirements_by_extra().items()
        }

    def requirements_by_extra(self) -> dict[str, list[Requirement]]:
        """Return the requirements that only an extra has, by extra."""
        found: dict[str, list[Requirement]] = {extra: [] for extra in self.extras}
        written: dict[str, str] = {canonicalize_name(extra): extra for extra in self.extras}
        for requirement in self.requires:
            if requirement.marker is None:
                continue
            for extra in _extras_of(requirement.marker):
                if extra in written and _is_of_extra(requirement, written[extra]):
                    found[written[extra]].append(requirement)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An installed environment."""

    path: str
    kind: EnvironmentKind
    root: str
    """The root of its file system."""
    files: list[ProgramFile] = field(default_factory=list)
    distributions: dict[str, Distribution] = field(default_factory=dict)
    """By project."""
    unreadable: list[str] = field(default_factory=list)
    """Libraries and folders that cannot be read."""
    _extras: dict[str, set[str]] = field(default_factory=dict)
    """The extras that packages require, by project. Empty: not yet known."""
    _users: dict[str, set[str]] = field(default_factory=dict)
    """The packages that require a project, by project. Empty: not yet known."""

    def add_package(self, folder: Path) -> None:
        """Add the package with a metadata folder. Other folders are ignored."""
        if folder.suffix == _DIST_INFO:
            found = _distribution(folder)
            self.distributions.setdefault(found.project, found)

    def owners(self) -> dict[str, Distribution]:
        """Return the packages of files by path."""
        packages = self.distributions.values()
        return {path: package for package in packages for path in package.files}

    def requirements_in_use(
        self, package: Distribution, projects: Collection[str]
    ) -> Iterator[Requirement]:
        """Yield the requirements of an installed package, also of each extra that is used.

        An extra is used if another package requires it, or if installed wheels imply it. The extras
        of metapackages name single projects, so only the first condition applies to them.
        """
        extras = self._requested_extras().get(package.project, set())
        if package.project not in METAPACKAGES:
            extras = extras | self._implied_extras(package, projects)
        yield from package.requirements(frozenset(extras))

    def _implied_extras(self, package: Distribution, projects: Collection[str]) -> set[str]:
        """Return the extras that installed wheels of some projects imply.

        Either all requirements of the extra are installed, or no other package, and no such extra
        of this package, requires one of these wheels.
        """
        installed, by_extra = self.distributions.keys(), package.names_by_extra()
        whole = [names for names in by_extra.values() if names <= installed]
        explained = set[str]().union(*whole)
        implied: set[str] = set()
        for extra, names in by_extra.items():
            wheels = names & installed & {*projects}
            is_only_user = any(
                self._users_of(name) <= {package.project} for name in wheels - explained
            )
            if wheels and (names <= installed or is_only_user):
                implied.add(extra)
        return implied

    def _users_of(self, project: str) -> set[str]:
        """Return the installed packages that require a project.

        An extra counts if another package requires it, or if all of its requirements are installed.
        """
        if not self._users:
            extras = self._extras_with(
                {each.project: self._whole_extras(each) for each in self.distributions.values()}
            )
            for package in self.distributions.values():
                for each in package.requirements(frozenset(extras[package.project])):
                    users = self._users.setdefault(canonicalize_name(each.name), set())
                    users.add(package.project)
        return self._users.get(project, set())

    def _whole_extras(self, package: Distribution) -> set[str]:
        """Return the extras of a package whose requirements are all installed."""
        if package.project in METAPACKAGES:
            return set()
        by_extra = package.requirements_by_extra()
        return {extra for extra, required in by_extra.items() if self._is_installed(required)}

    def _is_installed(self, requirements: Iterable[Requirement]) -> bool:
        """Check if some requirements are installed, with the extras that they name."""
        queue, known = [*requirements], set[tuple[str, str]]()
        while queue:
            requirement = queue.pop()
            package = self.distributions.get(canonicalize_name(requirement.name))
            if package is None:
                return False
            extras = map(canonicalize_name, requirement.extras)
            new = {(package.project, extra) for extra in extras} - known
            if new:
                known |= new
                by_extra = package.requirements_by_extra().items()
                by_name = {canonicalize_name(extra): required for extra, required in by_extra}
                queue += (each for _, extra in new for each in by_name.get(extra, ()))
        return True

    def _requested_extras(self) -> dict[str, set[str]]:
        """Return the extras that installed packages require, by project."""
        if not self._extras:
            self._extras.update(self._extras_with({}))
        return self._extras

    def _extras_with(self, others: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
        """Return the extras that installed packages require, and others, by project.

        The requirements of an extra count if the extra itself is required.
        """
        extras = {project: {*others.get(project, ())} for project in self.distributions}
        queue = [*self.distributions.values()]
        while queue:
            package = queue.pop()
            for requirement in package.requirements(frozenset(extras[package.project])):
                other = self.distributions.get(canonicalize_name(requirement.name))
                if other is not None and not extras[other.project] >= requirement.extras:
                    extras[other.project] |= requirement.extras
                    queue.append(other)
        return extras

    def required_by(self, project: str) -> set[str]:
        """Return the installed projects that an installed project requires, and itself."""
        found: set[str] = set()
        queue = [(self.distributions[project], frozenset[str]())]
        while queue:
            user, extras = queue.pop()
            found.add(user.project)
            for requirement in user.requirements(extras):
                other = self.distributions.get(canonicalize_name(requirement.name))
                if other is not None and other.project not in found:
                    queue.append((other, frozenset(requirement.extras)))
        return found


def find_environment(path: Path) -> Environment | None:
    """Return the environment in a folder, None if it is a folder of a program."""
    # The folder may have many other files.
    with os.scandir(path) as entries:
        names = {each.name for each in entries if _tells_kind(each.name)}
    real = os.path.realpath(path)

    def found(kind: EnvironmentKind, root: str = "/") -> Environment:
        return Environment(path=str(path), kind=kind, root=root)

    if "pyvenv.cfg" in names:
        return found("virtual environment")
    if "conda-meta" in names:
        return found("conda environment")
    if ".cudaredist.json" in names:
        return found("toolkit")
    if {"etc", "usr"} <= names:
        return found("root file system", real)
    if any(name.endswith(_DIST_INFO) for name in names):
        return found("packages")
    libraries = (path / name for name in sorted(names) if name.startswith("lib"))
    has_packages = any(any(each.glob("python3*/site-packages")) for each in libraries)
    return found("packages") if has_packages else None


def included_python(environment: Environment) -> str | None:
    """Return the Python whose packages a virtual environment includes, as text.

    Return None for an environment without `--system-site-packages`.
    """
    if environment.kind != "virtual environment":
        return None
    lines = foreign_text(Path(environment.path, "pyvenv.cfg"), _TEXT_LIMIT).splitlines()
    pairs = (line.partition("=") for line in lines)
    settings = {name.strip().lower(): value.strip() for name, _, value in pairs}
    includes = settings.get("include-system-site-packages", "").lower() == "true"
    if not includes:
        return None
    home = settings.get("home")
    return f"the Python in {home}" if home else "another Python"


def _tells_kind(name: str) -> bool:
    """Check if a name in a folder may tell which kind of environment it is."""
    return name in _NAMES_OF_KINDS or name.startswith("lib") or name.endswith(_DIST_INFO)


def _distribution(folder: Path) -> Distribution:
    """Return an installed package. Invalid requirements are left out."""
    headers = HeaderParser().parsestr(foreign_text(folder / _METADATA, _TEXT_LIMIT))
    name, _, version = folder.name.removesuffix(_DIST_INFO).partition("-")
    site = os.path.realpath(folder.parent)
    record = foreign_text(folder / "RECORD", _TEXT_LIMIT).splitlines()
    files: dict[str, RecordedFile] = {}
    for line in record:
        row = _row(line) if ".py" not in line and len(line) <= _LINE_LIMIT else []
        if row:
            name_in_site, *digest_and_size = row
            files[os.path.normpath(f"{site}/{name_in_site}")] = _recorded(*digest_and_size[:2])
    return Distribution(
        project=canonicalize_name(headers.get("Name", name)),
        version=headers.get("Version", version),
        site=site,
        requires=tuple(parse_requirements(headers)),
        extras=tuple(headers.get_all("Provides-Extra", ())),
        installer=foreign_text(folder / "INSTALLER", _LINE_LIMIT).strip(),
        files=files,
    )


def _row(line: str) -> list[str]:
    """Return the fields of a line of RECORD, none if it is invalid. No name has line breaks."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _is_of_extra(requirement: Requirement, extra: str) -> bool:
    """Check if only an extra has a requirement."""
    marker = requirement.marker
    if marker is None or canonicalize_name(extra) not in _extras_of(marker):
        return False
    return not _applies(marker, "") and _applies(marker, extra)


@cache
def _extras_of(marker: Marker) -> frozenset[str]:
    """Return the extras that a marker names."""
    return frozenset(map(canonicalize_name, _find_extras(str(marker))))


@cache
def _applies(marker: Marker, extra: str) -> bool:
    """Check if a marker applies on this machine, with an extra. Many packages have the same."""
    return evaluate_marker(marker, {"extra": extra})


def _recorded(digest: str = "", size: str = "") -> RecordedFile:
    is_number = size.isdecimal() and len(size) <= _SIZE_DIGITS
    return RecordedFile(digest, int(size) if is_number else None)
