"""NVIDIA's wheels that a wheel requires, compared with the libraries that its files need."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from email.parser import HeaderParser
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudaredist.archives.wheel_metadata import metadata_in
from cudaredist.errors import InvalidArchiveError
from cudaredist.primitives import Version
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.judge import JudgedProgram
from cudaredist.programs.lowest_release import RequiredRelease
from cudaredist.programs.needs import LibraryNeed
from cudaredist.programs.program import KnownLibrary
from cudaredist.programs.report import DeclaredWheel
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.redists import CUDA
from cudaredist.wheel_projects import METAPACKAGES
from cudaredist.wheels import applies_on, parse_requirements
from cudaredist.words import printable


class Declared(NamedTuple):
    """A requirement of a wheel."""

    package: str
    """The project and version of the wheel."""
    requirement: Requirement

    @property
    def project(self) -> str:
        """The required project."""
        return canonicalize_name(self.requirement.name)

    def __str__(self) -> str:
        """Return the requirement without its marker."""
        return printable(str(self.requirement).partition(";")[0].strip())

    def names(self, library: KnownLibrary) -> bool:
        """Check if it names the wheel with a library, in any version."""
        if self.project not in METAPACKAGES:
            return self.project == library.project
        # The version of a metapackage without a major in its name states the major.
        _, mark, major = self.project.rpartition("-cu")
        has_major = not mark or major == str(library.major)
        return has_major and self.names_any_major(library)

    def names_any_major(self, library: KnownLibrary) -> bool:
        """Check if it names the wheel with a library, for any CUDA major."""
        redist = METAPACKAGES.get(self.project)
        if redist is None:
            return without_major(self.project) == without_major(library.project or "")
        if library.redist != redist:
            return False
        if redist != CUDA:
            return True
        # The extras of the toolkit's metapackage select its components.
        component = library.package.removeprefix("lib").removeprefix("cuda_")
        return not self.requirement.extras.isdisjoint({component, "all"})

    def allows(self, library: KnownLibrary) -> bool:
        """Check if the required versions include that of a library's wheel."""
        is_metapackage = self.project in METAPACKAGES
        version = str(library.label) if is_metapackage else wheel_version(library)
        specifier = self.requirement.specifier
        return version is not None and specifier.contains(version, prereleases=True)


def read_declared(wheel: Path) -> list[Declared] | None:
    """Return the requirements of a wheel, None if its METADATA cannot be read."""
    try:
        data = metadata_in(wheel, wheel.name)
    except InvalidArchiveError:
        return None
    headers = HeaderParser().parsestr(data.decode(errors="replace"))
    title = printable(f"{headers.get('Name', wheel.name)} {headers.get('Version', '')}".strip())
    return [Declared(title, each) for each in parse_requirements(headers)]


def declared_wheels(
    judged: JudgedProgram, declared: Iterable[Declared]
) -> tuple[list[DeclaredWheel], list[Finding]]:
    """Return the declared wheels of NVIDIA, and their differences from the needed libraries."""
    platform = next(iter(judged.platforms), None)
    applying = [each for each in declared if applies_on(each.requirement, platform)]
    projects = judged.data.catalog.projects() | METAPACKAGES.keys()
    of_nvidia = [each for each in applying if each.project in projects]
    needs = [need for need in judged.needs if need.kind != "opened" and need.status == "provided"]
    required = {each.project for each in applying}
    preloads = judged.data.policy.preloads
    loaded = {name for rule in preloads if required & {*rule.projects} for name in rule.names}
    fitting = _fitting_labels(judged.releases)
    findings: list[Finding] = []
    for need in needs:
        if not any(fnmatchcase(need.soname, pattern) for pattern in loaded):
            findings += _findings(need, of_nvidia, fitting.get(need.soname))
    return [_reported(each, needs) for each in of_nvidia], findings


def _fitting_labels(releases: Iterable[RequiredRelease]) -> dict[str, set[tuple[str, Version]]]:
    """Return the redistributables and releases that may have all symbols of each library."""
    labels_of: dict[str, set[tuple[str, Version]]] = defaultdict(set)
    for release in releases:
        for soname, labels in release.fits_of.items():
            fitting = (label for label, fits in labels.items() if fits is not False)
            labels_of[soname].update((release.redist, label) for label in fitting)
    return labels_of


def _reported(declared: Declared, needs: Iterable[LibraryNeed]) -> DeclaredWheel:
    named = (need.soname for need in needs if any(map(declared.names, need.libraries)))
    return DeclaredWheel(
        package=declared.package,
        requirement=str(declared),
        is_optional="extra" in str(declared.requirement.marker or ""),
        sonames=tuple(dict.fromkeys(named)),
    )


def _findings(
    need: LibraryNeed, declared: Sequence[Declared], fitting: set[tuple[str, Version]] | None
) -> Iterator[Finding]:
    """Yield a finding if no declared wheel has a needed library, or none with its symbols."""
    known = [library for library in need.libraries if library.project is not None]
    if not known:
        return
    users = f"{need.soname}, which {some_of(need.by)} needs"
    projects = " or ".join(sorted({library.project or "" for library in known}))
    named = [each for each in declared if any(map(each.names, known))]
    nearest = named or [each for each in declared if any(map(each.names_any_major, known))]
    if not nearest:
        message = f"no declared requirement has {users}; it is in {projects}"
        yield Finding("undeclared", message, need.by[0])
        return
    shown = ", ".join(map(str, nearest))
    allowed = [lib for lib in known if any(each.names(lib) and each.allows(lib) for each in named)]
    if not allowed:
        message = f"the declared {shown} does not have {users}; it is in {projects}"
        yield Finding("declared", message, need.by[0])
        return
    newest = max(known, key=lambda library: library.label)
    if fitting is None or newest in allowed:
        return
    releases = {(library.redist, library.label) for library in allowed}
    if fitting.isdisjoint(releases):
        message = f"no known version of the declared {shown} has all symbols of {users}"
        yield Finding("declared", message, need.by[0])


def without_major(project: str) -> str:
    """Return a project's name without its CUDA major, such as `nvidia-cublas`."""
    name, mark, major = project.rpartition("-cu")
    return name if mark and major.isdecimal() else project
