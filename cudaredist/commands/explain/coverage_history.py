"""explain gpu: releases of each package that run on a GPU.

Reads the local feature files.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cudaredist.commands.explain.report import PackageCoverage, ReleaseCoverage, ReleaseSpan
from cudaredist.formats.coverage import Coverage, CoverageValue
from cudaredist.formats.tables import Gpus
from cudaredist.grouping import grouped
from cudaredist.primitives import ArchiveId, Platform, Version
from cudaredist.redists import CUDA
from cudaredist.store.absence import since, until
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.gpus.coverage import CoverageRules, cuda_major_of, describe_coverage

_BEST_FIRST: tuple[CoverageValue, ...] = ("native", "ptx", "lto", "partial", "unknown", "none")
_EVERY_MAJOR = 0
"""The key for archives that are not built for one CUDA major."""


class _Code(NamedTuple):
    contents: int
    code: str | None
    """Device code by file, as JSON. None if it is unknown."""


_CODE = Question(_Code, "SELECT id AS contents, code FROM contents WHERE has_code")


class _FileImages(NamedTuple):
    modules: Mapping[str, int]
    unpacked: Mapping[str, int]


def _images_in(code: str) -> tuple[_FileImages, ...]:
    """Return the device code of files."""
    files = json.loads(code).values()
    return tuple(_FileImages(one["modules"], one["unpacked"]) for one in files)


class ArchiveCoverage(NamedTuple):
    """The GPUs that run the device code of an archive."""

    redist: str
    label: Version
    archive: ArchiveId
    by_capability: Mapping[str, Coverage]
    """Without the capabilities that no GPU of the platform has."""


def read_coverage(
    capabilities: Iterable[str], index: Index, gpus: Gpus, rules: CoverageRules
) -> tuple[ArchiveCoverage, ...]:
    """Return the coverage of all archives with device code.

    A feature file in the data folder replaces the shipped one. Raises `ReadError` or
    `InvalidFileError` if a feature file cannot be read.
    """
    names = frozenset(gpus.capabilities[name].base for name in capabilities)

    @cache
    def names_on(platform: str) -> frozenset[str]:
        return names.intersection(map(str, rules.capabilities_on(Platform(platform))))

    codes = {row.contents: row.code for row in index.ask(_CODE)}

    @cache
    def covered(
        contents: int, platform: str, major: int | None, release: Version | None
    ) -> dict[str, Coverage]:
        code, present = codes[contents], names_on(platform)
        if code is None:
            return dict.fromkeys(present, Coverage(value="unknown"))
        parts = rules.cover(_images_in(code), present, major, release)
        return {name: part for name, part in parts.items() if part.value != "host-only"}

    newest_release = cache(rules.newest_release)
    coverage = []
    for row in index.with_device_code():
        label = Version.parse(row.label)
        archive = ArchiveId(row.package, row.platform, row.variant)
        major = cuda_major_of(row.redist, label, row.variant)
        # Other products run with all releases of their major, so the newest one decides.
        release = label if row.redist == CUDA else newest_release(major)
        by_capability = covered(row.contents, row.platform, major, release)
        coverage.append(ArchiveCoverage(row.redist, label, archive, by_capability))
    return tuple(coverage)


def coverage_of_releases(
    capabilities: Iterable[str],
    archives: Iterable[ArchiveCoverage],
    gpus: Gpus,
    index: Index,
) -> tuple[PackageCoverage, ...]:
    """Return the releases of each package that run on GPUs.

    Only packages with device code have an entry. If builds for several CUDA majors differ, each has
    its own entry. The best archive of a release counts.
    """
    without_code, known = index.without_device_code(), index.package_releases()
    packages = grouped(((one.redist, one.archive.package), one) for one in archives)
    coverage: list[PackageCoverage] = []
    for name in capabilities:
        base = gpus.capabilities[name].base
        for (redist, package), own in sorted(packages.items()):
            releases = _Releases(
                known=known.get((redist, package), ()),
                without_code=without_code.get((redist, package), ()),
            )
            coverage += _summaries(name, base, redist, package, own, releases)
    return tuple(coverage)


class _Releases(NamedTuple):
    """The releases of a package."""

    known: Sequence[tuple[Version, str | None]]
    """Those in the data with the variants of their archives, examined or not."""
    without_code: Sequence[Version]
    """Those without device code, which run on every GPU."""

    def for_major(self, redist: str, major: int) -> list[Version]:
        """Return the releases with a build for a CUDA major, or for a major that is unknown."""
        if major == _EVERY_MAJOR:
            return [label for label, _ in self.known]
        return [
            label
            for label, variant in self.known
            if cuda_major_of(redist, label, variant) in {major, None}
        ]


def _summaries(
    name: str,
    base: str,
    redist: str,
    package: str,
    archives: Iterable[ArchiveCoverage],
    releases: _Releases,
) -> Iterator[PackageCoverage]:
    """Yield the coverage of a capability by a package, for each CUDA major if these differ."""
    best: dict[Version, dict[int, Coverage]] = defaultdict(dict)
    for one in archives:
        part = one.by_capability.get(base)
        if part is None:
            continue
        major = None
        if redist != CUDA:
            major = cuda_major_of(redist, one.label, one.archive.variant)
        by_major, key = best[one.label], major or _EVERY_MAJOR
        if key not in by_major or _rank(part) < _rank(by_major[key]):
            by_major[key] = part
    is_same = all(_have_one_value(by_major.values()) for by_major in best.values())
    if is_same:
        best = {
            label: {_EVERY_MAJOR: min(by_major.values(), key=_rank)}
            for label, by_major in best.items()
        }
    for major in sorted({major for majors in best.values() for major in majors}):
        parts = [(label, majors[major]) for label, majors in best.items() if major in majors]
        examined = {label for label, part in parts if part.value != "unknown"}
        known = releases.for_major(redist, major)
        history = _History(parts, examined.union(releases.without_code), known)
        without_code = releases.without_code if major == _EVERY_MAJOR else ()
        yield PackageCoverage(
            capability=name,
            redist=redist,
            package=package,
            cuda=None if major == _EVERY_MAJOR else major,
            any=history.span(without_code),
            native=history.span_of("native"),
            ptx=history.span_of("ptx"),
            without=history.first_without(),
            releases=len(parts),
            unknown=sum(part.value == "unknown" for _, part in parts),
        )


def _have_one_value(parts: Iterable[Coverage]) -> bool:
    return len({part.value for part in parts}) == 1


def _rank(part: Coverage) -> int:
    return _BEST_FIRST.index(part.value)


@dataclass(frozen=True)
class _History:
    """The coverage of a capability by a package, release by release."""

    parts: Sequence[tuple[Version, Coverage]]
    examined: AbstractSet[Version]
    known: Sequence[Version]

    def first_without(self) -> ReleaseCoverage | None:
        """Return the first release without coverage after all usable ones."""
        usable = [index for index, (_, part) in enumerate(self.parts) if _is_usable(part)]
        for label, part in self.parts[usable[-1] + 1 :] if usable else self.parts:
            if part.value in {"partial", "none"}:
                text = describe_coverage(part) if part.value == "partial" else part.value
                first = since(label, self.examined, self.known)
                return ReleaseCoverage(release=str(label), since=first, coverage=text)
        return None

    def span_of(self, value: CoverageValue) -> ReleaseSpan | None:
        """Return the releases with a coverage."""
        others = [label for label, part in self.parts if part.value != value]
        return self.span([label for label, part in self.parts if part.value == value], others)

    def span(self, labels: Sequence[Version], others: Iterable[Version] = ()) -> ReleaseSpan | None:
        """Return the first and the newest of some releases, and others in between."""
        if not labels:
            return None
        first, newest = labels[0], labels[-1]
        return ReleaseSpan(
            first=str(first),
            newest=str(newest),
            since=since(first, self.examined, self.known),
            until=until(newest, self.examined, self.known),
            gaps=tuple(str(label) for label in others if first < label < newest),
        )


def _is_usable(part: Coverage) -> bool:
    return part.value in _BEST_FIRST[:3]
