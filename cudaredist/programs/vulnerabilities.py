"""Known vulnerabilities of a program: those of installed packages and of bundled libraries."""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.grouping import grouped
from cudaredist.primitives import Version, parse_label
from cudaredist.programs.copied_releases import originals_of
from cudaredist.programs.finding import Finding
from cudaredist.programs.library_names import original_name
from cudaredist.programs.program import AuditData, ProgramFile
from cudaredist.programs.repair import Install, Repair
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


class _AnyRelease(NamedTuple):
    label: str
    version: str
    is_examined: bool


_ANY_RELEASES = Question(
    _AnyRelease,
    """
    SELECT label, version, max(contents IS NOT NULL) AS is_examined
    FROM archives JOIN documents ON release = documents.id
    WHERE package = ? AND name = ? AND version IS NOT NULL
    GROUP BY label, version""",
)
"""The releases of all channels, by their documents: a copy can be from an archive or a wheel."""


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
        self,
        copies: Mapping[str, Sequence[ProgramFile]],
        data: AuditData,
        platforms: Sequence[str],
    ) -> Iterator[Subject]:
        """Yield the packages of bundled libraries, by soname and the version in the file's name.

        Without the whole version, a copy can be of all releases that have its soname, symbols and
        device code, and of unexamined releases next to them.
        """
        redists = self.known.redists()
        for soname, files in copies.items():
            packages = grouped(
                ((one.redist, one.package), one.label)
                for one in data.catalog.providers(soname, platforms)
                if one.redist in redists
            )
            by_version = grouped((_version_of(file), file) for file in files)
            for (redist, package), labels in packages.items():
                rows = self._index.ask(_ANY_RELEASES, package, redist)
                for version, same in by_version.items():
                    exact = {parse_label(row.label) for row in rows if row.version == version}
                    originals = (one for file in same for one in originals_of(file, data))
                    fitting = {one.label for one in originals if one.redist == redist}
                    fitting = fitting or {*labels}
                    possible = exact or {*fitting, *_unexamined_between(rows, fitting)}
                    own, path = tuple(sorted(possible)), same[0].display_path
                    yield Subject(f"the copy of {soname}", redist, package, own, path=path)

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
            result.append(serious.changed(state="unknown", reason="its release is not known"))
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


def _version_of(file: ProgramFile) -> str:
    """Return the longest version in the names of a library, such as 12.3.3.54 or only 12."""
    return max((original_name(name).partition(".so.")[2] for name in file.names), key=len)


def _unexamined_between(
    rows: Iterable[_AnyRelease], labels: AbstractSet[Version]
) -> Iterator[Version]:
    """Yield the unexamined releases of a package that may have the soname of `labels`.

    They are next to a release with this soname: before, after or between such releases.
    """
    by_label = grouped((parse_label(row.label), row) for row in rows)
    examined_versions = {row.version for own in by_label.values() for row in own if row.is_examined}
    examined = sorted(
        label
        for label, own in by_label.items()
        if any(row.version in examined_versions for row in own)
    )
    for label in by_label.keys() - set(examined):
        place = bisect(examined, label)
        if labels & {*examined[max(place - 1, 0) : place + 1]}:
            yield label
