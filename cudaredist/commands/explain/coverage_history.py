"""explain gpu: releases of each package that run on a GPU.

Reads the local feature files.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from pydantic import TypeAdapter

from cudaredist.commands.explain.report import PackageCoverage, ReleaseCoverage, ReleaseSpan
from cudaredist.formats.features import FileCode
from cudaredist.formats.packageset import Coverage, CoverageValue
from cudaredist.formats.tables import Gpus
from cudaredist.primitives import Platform, Version
from cudaredist.redists import CUDA
from cudaredist.store.facts_index import Index
from cudaredist.tables.gpus.coverage import CoverageRules, cuda_major_of, describe_coverage

_files = TypeAdapter(dict[str, FileCode])
_BEST_FIRST: tuple[CoverageValue, ...] = ("native", "ptx", "lto", "partial", "unknown", "none")


class ArchiveCoverage(NamedTuple):
    """The GPUs that run the device code of an archive."""

    redist: str
    label: Version
    package: str
    platform: str
    variant: str | None
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

    codes = dict(index.rows("SELECT id, code FROM contents WHERE has_code"))

    @cache
    def covered(contents: int, platform: str, major: int | None) -> dict[str, Coverage]:
        code, present = codes[contents], names_on(platform)
        if code is None:
            return dict.fromkeys(present, Coverage(value="unknown"))
        parts = rules.cover(tuple(_files.validate_json(code).values()), present, major)
        return {name: part for name, part in parts.items() if part.value != "host-only"}

    return tuple(
        ArchiveCoverage(
            redist,
            label,
            *archive,
            covered(contents, archive.platform, cuda_major_of(redist, label, archive.variant)),
        )
        for redist, label, archive, contents in index.device_code()
    )


def coverage_of_releases(
    capabilities: Iterable[str], archives: Iterable[ArchiveCoverage], gpus: Gpus
) -> tuple[PackageCoverage, ...]:
    """Return the releases of each package that run on GPUs.

    Only packages with device code have an entry. If builds for several CUDA majors differ, each has
    its own entry. The best archive of a release counts.
    """
    packages: dict[tuple[str, str], list[ArchiveCoverage]] = defaultdict(list)
    for archive in archives:
        packages[archive.redist, archive.package].append(archive)
    return tuple(
        summary
        for name in capabilities
        for _, group in sorted(packages.items())
        for summary in _summaries(name, gpus.capabilities[name].base, group)
    )


def _summaries(
    name: str, base: str, archives: Sequence[ArchiveCoverage]
) -> Iterator[PackageCoverage]:
    """Yield the coverage of a capability by a package, for each CUDA major if these differ."""
    parts: dict[Version, dict[int | None, list[Coverage]]] = defaultdict(lambda: defaultdict(list))
    for archive in archives:
        part = archive.by_capability.get(base)
        if part is not None:
            is_cuda = archive.redist == CUDA
            major = (
                None if is_cuda else cuda_major_of(archive.redist, archive.label, archive.variant)
            )
            parts[archive.label][major].append(part)
    best = {
        label: {major: _best(found) for major, found in majors.items()}
        for label, majors in parts.items()
    }
    if not best:
        return
    redist, package = archives[0].redist, archives[0].package
    if all(len({part.value for part in majors.values()}) == 1 for majors in best.values()):
        same = [(label, _best(majors.values())) for label, majors in best.items()]
        yield _summary(name, redist, package, None, same)
        return
    for major in sorted({major or 0 for majors in best.values() for major in majors}):
        releases = [
            (label, part)
            for label, majors in best.items()
            for key, part in majors.items()
            if (key or 0) == major
        ]
        yield _summary(name, redist, package, major or None, releases)


def _best(parts: Iterable[Coverage]) -> Coverage:
    return min(parts, key=lambda part: _BEST_FIRST.index(part.value))


def _summary(
    name: str,
    redist: str,
    package: str,
    cuda: int | None,
    releases: list[tuple[Version, Coverage]],
) -> PackageCoverage:
    usable = [index for index, (_, part) in enumerate(releases) if part.value in _BEST_FIRST[:3]]
    after = releases[usable[-1] + 1 :] if usable else releases
    without = (
        ReleaseCoverage(
            release=str(label),
            coverage=describe_coverage(part) if part.value == "partial" else part.value,
        )
        for label, part in after
        if part.value in {"partial", "none"}
    )
    return PackageCoverage(
        capability=name,
        redist=redist,
        package=package,
        cuda=cuda,
        native=_span(releases, "native"),
        ptx=_span(releases, "ptx"),
        without=next(without, None),
        releases=len(releases),
        unknown=sum(part.value == "unknown" for _, part in releases),
    )


def _span(releases: list[tuple[Version, Coverage]], value: CoverageValue) -> ReleaseSpan | None:
    labels = [label for label, part in releases if part.value == value]
    if not labels:
        return None
    first, newest = labels[0], labels[-1]
    gaps = (label for label, part in releases if part.value != value and first < label < newest)
    return ReleaseSpan(first=str(first), newest=str(newest), gaps=tuple(map(str, gaps)))
