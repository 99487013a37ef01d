"""The wheels of NVIDIA's that a wheel declares, compared with the libraries that its files need."""

from collections.abc import Iterable, Iterator, Sequence
from email.parser import HeaderParser
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudaredist.archives.wheel_metadata import metadata_in
from cudaredist.commands.audit.lowest_release import RequiredRelease
from cudaredist.commands.audit.needs import LibraryNeed
from cudaredist.commands.audit.program import Catalog, KnownLibrary
from cudaredist.commands.audit.report import (
    AuditFinding,
    AuditReport,
    DeclaredWheel,
)
from cudaredist.commands.audit.wheel_requirements import wheel_version
from cudaredist.errors import EXIT_FINDINGS, InvalidArchiveError, printable, shortened
from cudaredist.formats.policy import Preload
from cudaredist.formats.settings import AuditFindingKind
from cudaredist.redists import CUDA
from cudaredist.wheels import METAPACKAGES, applies_on, parse_requirements

_SHOWN = 3


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
        major = self.project.rpartition("-cu")[2]
        return self.names_other_major(library) and major in {self.project, str(library.major)}

    def names_other_major(self, library: KnownLibrary) -> bool:
        """Check if it names the wheel with a library, for any CUDA major."""
        redist = METAPACKAGES.get(self.project)
        if redist is None:
            return _without_major(self.project) == _without_major(library.project or "")
        component = library.package.removeprefix("lib").removeprefix("cuda_")
        has_component = redist != CUDA or {component, "all"} & self.requirement.extras
        return library.redist == redist and bool(has_component)

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


def with_declared(
    report: AuditReport, declared: Iterable[Declared], catalog: Catalog, preloads: Iterable[Preload]
) -> AuditReport:
    """Add the declared wheels of NVIDIA, and their differences from the needed libraries."""
    platform = next(iter(report.platforms), None)
    applying = [each for each in declared if applies_on(each.requirement, platform)]
    projects = catalog.projects() | METAPACKAGES.keys()
    nvidias = [each for each in applying if each.project in projects]
    needs = [
        need
        for need in report.libraries
        if isinstance(need, LibraryNeed) and need.kind != "opened" and need.status == "provided"
    ]
    required = {each.project for each in applying}
    loaded = {name for rule in preloads if required & {*rule.projects} for name in rule.names}
    fitting = _fitting_labels(report)
    findings = list(report.findings)
    for need in needs:
        if not any(fnmatchcase(need.soname, pattern) for pattern in loaded):
            findings += _findings(need, nvidias, fitting.get(need.soname))
    return report.with_findings(findings, declared=tuple(_reported(nvidias, needs)))


def _fitting_labels(report: AuditReport) -> dict[str, set[tuple[str, str]]]:
    """Return the redistributables and releases that may have all symbols of each library."""
    found: dict[str, set[tuple[str, str]]] = {}
    for release in report.releases:
        if isinstance(release, RequiredRelease):
            for soname, labels in release.labels_of.items():
                fitting = (label for label, fits in labels.items() if fits is not False)
                found.setdefault(soname, set()).update((release.redist, str(n)) for n in fitting)
    return found


def _reported(
    declared: Iterable[Declared], needs: Sequence[LibraryNeed]
) -> Iterator[DeclaredWheel]:
    for each in declared:
        named = (need.soname for need in needs if any(map(each.names, need.libraries)))
        yield DeclaredWheel(
            package=each.package,
            requirement=str(each),
            is_optional="extra" in str(each.requirement.marker or ""),
            sonames=tuple(dict.fromkeys(named)),
        )


def _findings(
    need: LibraryNeed, declared: Sequence[Declared], fitting: set[tuple[str, str]] | None
) -> Iterator[AuditFinding]:
    """Yield a finding if no declared wheel has a needed library, or none with its symbols."""
    known = [library for library in need.libraries if library.project is not None]
    if not known:
        return
    named = [each for each in declared if any(map(each.names, known))]
    allowed = [lib for lib in known if any(d.names(lib) and d.allows(lib) for d in named)]
    others = [each for each in declared if any(map(each.names_other_major, known))]
    users = f"{need.soname}, which {', '.join(shortened(list(need.by), _SHOWN))} needs"
    projects = " or ".join(sorted({library.project or "" for library in known}))
    newest = max(known, key=lambda library: library.label)
    may_be_newer = any(d.names(newest) and d.allows(newest) for d in named)
    if not named and not others:
        message = f"no declared requirement has {users}; it is in {projects}"
    elif not allowed and not may_be_newer:
        shown = ", ".join(map(str, named or others))
        message = f"the declared {shown} does not have {users}; it is in {projects}"
    elif (
        fitting is not None
        and not may_be_newer
        and not any((lib.redist, str(lib.label)) in fitting for lib in allowed)
    ):
        shown = ", ".join(map(str, named))
        message = f"no known version of the declared {shown} has all symbols of {users}"
    else:
        return
    kind: AuditFindingKind = "undeclared" if not named and not others else "declared"
    yield AuditFinding(kind=kind, message=message, path=need.by[0], exit_code=EXIT_FINDINGS)


def _without_major(project: str) -> str:
    name, mark, major = project.rpartition("-cu")
    return name if mark and major.isdecimal() else project
