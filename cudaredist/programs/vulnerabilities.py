"""Known vulnerabilities of a program: those of installed packages and of bundled libraries."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.grouping import grouped
from cudaredist.primitives import Version
from cudaredist.programs.finding import Finding
from cudaredist.programs.program import Catalog
from cudaredist.programs.repair import Install, Repair
from cudaredist.programs.report import AuditedLibrary
from cudaredist.redists import CUDA, REDISTS
from cudaredist.store.facts_index import Index, Question
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.tables.advisories.answers import vulnerabilities_of
from cudaredist.tables.advisories.states import KnownVulnerabilities, State
from cudaredist.tables.advisories.texts import SERIOUS
from cudaredist.wheel_projects import package_of_project
from cudaredist.words import listed

_is_tensorrt = re.compile(r"tensorrt(-cu[0-9]+)?(-libs|-bindings)?").fullmatch
"""The projects of TensorRT's wheels. TensorRT-LLM is another product."""


class Subject(NamedTuple):
    """A package in a program, with the releases that it may be from."""

    title: str
    redist: str
    package: str
    labels: tuple[Version, ...]
    project: str | None = None
    """The installed project. None: a bundled library."""
    path: str | None = None


class _Release(NamedTuple):
    redist: str
    label: str
    version: str


_RELEASES = Question(
    _Release,
    """
    SELECT DISTINCT redist, label, version
    FROM archives JOIN current_releases ON release = current_releases.id
    WHERE package = ?""",
)


class ProgramVulnerabilities:
    """The known vulnerabilities, and the releases of packages."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @cached_property
    def known(self) -> KnownVulnerabilities:
        """The known vulnerabilities, read when the first program needs them."""
        return known_vulnerabilities(self._index.store)

    def installed(self, packages: Iterable[tuple[str, str]]) -> Iterator[Subject]:
        """Yield the installed packages, by project and version."""
        known = self.known.redists()
        for project, version in packages:
            name = canonicalize_name(project)
            package = "tensorrt" if _is_tensorrt(name) else package_of_project(name)
            rows = self._index.ask(_RELEASES, package)
            own = [row for row in rows if row.version == version]
            redists = {row.redist for row in own or rows}
            redists |= {r.name for r in REDISTS.values() if package in r.packages}
            for redist in sorted(redists.intersection(known)):
                labels = {Version.parse(row.label) for row in own if row.redist == redist}
                if not labels and redist != CUDA:
                    with suppress(ValueError):
                        labels = {Version.parse(version)}
                # The release of an unknown version can be any.
                labels = labels or {Version.parse(row.label) for row in rows}
                title = f"{project} {version}"
                yield Subject(title, redist, package, tuple(sorted(labels)), project)

    def bundled(
        self, libraries: Iterable[AuditedLibrary], catalog: Catalog, platforms: Sequence[str]
    ) -> Iterator[Subject]:
        """Yield the packages of bundled libraries, with all releases that have the soname."""
        for library in libraries:
            if not library.bundled:
                continue
            providers = catalog.providers(library.soname, platforms)
            packages = grouped(((one.redist, one.package), one.label) for one in providers)
            for (redist, package), own in packages.items():
                labels = tuple(sorted(set(own)))
                title, path = f"the copy of {library.soname}", library.bundled[0]
                yield Subject(title, redist, package, labels, path=path)

    def of_subject(
        self, subject: Subject, platforms: Sequence[str]
    ) -> tuple[PackageVulnerability, ...]:
        """Return the vulnerabilities that affect a package, or may affect it.

        If the release is not known, a vulnerability affects it only if all releases are affected.
        """
        platform = platforms[0] if len(platforms) == 1 else None
        if not subject.labels:
            return ()
        states: tuple[State, ...] = (*SERIOUS, "fixed", "not-affected")
        entries = vulnerabilities_of(
            self.known, subject.redist, subject.package, subject.labels, platform, states
        )
        result = []
        for own in grouped((entry.cve, entry) for entry in entries).values():
            own_states = {entry.state for entry in own}
            if own_states <= {"fixed", "not-affected"}:
                continue
            if len(own_states) == 1:
                result.append(own[0])
                continue
            serious = next(entry for entry in own if entry.state in SERIOUS)
            update = {"state": "unknown", "reason": "its release is not known"}
            result.append(serious.model_copy(update=update))
        return tuple(result)

    def findings(
        self, subject: Subject, entries: Sequence[PackageVulnerability], *, is_required: bool
    ) -> Iterator[Finding]:
        """Yield a finding for the affected and for the unknown vulnerabilities of a package."""
        for state, own in grouped((entry.state, entry) for entry in entries).items():
            names = listed([entry.cve for entry in own], 3)
            fixed = {entry.fixed for entry in own}
            stated = [Version.parse(text) for text in fixed if text is not None]
            newest = max(stated) if len(stated) == len(fixed) else None
            until = f", fixed in {subject.redist} {newest}" if newest else ""
            if state == "affected":
                message = f"{subject.title} has known vulnerabilities: {names}{until}"
                repair = None if newest is None else self._repair(subject, newest)
                yield Finding("vulnerability", message, subject.path, repair).counted(is_required)
            else:
                message = f"{subject.title} may have known vulnerabilities: {names}{until}"
                finding = Finding("unknown-vulnerability", message, subject.path)
                yield finding.counted(is_required)

    def _repair(self, subject: Subject, fixed: Version) -> Repair | None:
        """Return the installation of the first release with all fixes."""
        if subject.project is None:
            return None
        # The wheels of another CUDA major are another project.
        major = re.search(r"-cu([0-9]+)$", subject.project)
        if subject.redist == CUDA and major and int(major[1]) != fixed.components[0]:
            return None
        rows = self._index.ask(_RELEASES, subject.package)
        versions = {Version.parse(row.version) for row in rows if row.label == str(fixed)}
        version = min(versions, default=None if subject.redist == CUDA else fixed)
        if version is None:
            return None
        return Repair(installs=(Install(subject.project, SpecifierSet(f">={version}")),))
