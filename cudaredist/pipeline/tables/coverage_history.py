"""explain gpu: releases of each package that run on a GPU.

Reads the local feature files.
"""

from collections.abc import Iterable

from cudaredist.pipeline.read_data import load_features
from cudaredist.primitives import Platform, Version
from cudaredist.reports.answer_reports import PackageCoverage, ReleaseCoverage, ReleaseSpan
from cudaredist.schema.features import ExaminedArchive
from cudaredist.schema.packageset import Coverage, CoverageValue
from cudaredist.schema.tables import Gpus
from cudaredist.store.data_folder import Store
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules, cuda_major_of, describe_coverage

_BEST_FIRST: tuple[CoverageValue, ...] = ("native", "ptx", "lto", "partial", "unknown", "none")


def coverage_of_releases(
    capabilities: Iterable[str], store: Store, gpus: Gpus
) -> tuple[PackageCoverage, ...]:
    """Return the releases of each package that run on GPUs.

    Only packages with device code have an entry. The best archive of a release counts. A feature
    file in the data folder replaces the shipped one. Raises `ReadError` or `InvalidFileError` if a
    feature file cannot be read.
    """
    names = tuple(capabilities)
    rules = CoverageRules(gpus)
    by_package: dict[tuple[str, str, str], list[tuple[Version, Coverage]]] = {}
    layers = {
        (redist, label): layer
        for layer in reversed(store.feature_stores())
        for redist in layer.feature_redists()
        for label in layer.features(redist).labels()
    }
    for redist, label in sorted(layers):
        features = load_features(layers[redist, label], redist, label)
        for package, entry in sorted(features.packages.items() if features else ()):
            archives = [a for a in entry.archives if isinstance(a, ExaminedArchive)]
            for name in names:
                base = gpus.capabilities[name].base
                part = _best(redist, label, archives, base, rules)
                if part is not None:
                    by_package.setdefault((name, redist, package), []).append((label, part))
    return tuple(
        _summary(name, redist, package, releases)
        for (name, redist, package), releases in sorted(
            by_package.items(), key=lambda item: (names.index(item[0][0]), *item[0][1:])
        )
    )


def _best(
    redist: str,
    label: Version,
    archives: Iterable[ExaminedArchive],
    name: str,
    rules: CoverageRules,
) -> Coverage | None:
    """Return the best coverage of a release's archives.

    Returns None if they have no device code.
    """
    parts = []
    for archive in archives:
        if Capability.parse(name) not in rules.capabilities_on(Platform(archive.platform)):
            continue
        if archive.code_by_file is None:
            parts += [Coverage(value="unknown")] * bool(archive.device_code)
        else:
            files = tuple(archive.code_by_file.values())
            cuda = cuda_major_of(redist, label, archive.variant)
            part = rules.cover(files, [name], cuda)[name]
            parts += [part] * (part.value != "host-only")
    return min(parts, key=lambda part: _BEST_FIRST.index(part.value), default=None)


def _summary(
    name: str, redist: str, package: str, releases: list[tuple[Version, Coverage]]
) -> PackageCoverage:
    usable = [index for index, (_, part) in enumerate(releases) if part.value in _BEST_FIRST[:3]]
    after = releases[usable[-1] + 1 :] if usable else releases
    without = next(
        ((label, part) for label, part in after if part.value in {"partial", "none"}), None
    )
    return PackageCoverage(
        capability=name,
        redist=redist,
        package=package,
        native=_span(releases, "native"),
        ptx=_span(releases, "ptx"),
        without=None
        if without is None
        else ReleaseCoverage(release=str(without[0]), coverage=_words(without[1])),
        releases=len(releases),
        unknown=sum(part.value == "unknown" for _, part in releases),
    )


def _words(part: Coverage) -> str:
    return describe_coverage(part) if part.value == "partial" else part.value


def _span(releases: list[tuple[Version, Coverage]], value: CoverageValue) -> ReleaseSpan | None:
    labels = [label for label, part in releases if part.value == value]
    if not labels:
        return None
    first, newest = labels[0], labels[-1]
    gaps = (label for label, part in releases if part.value != value and first < label < newest)
    return ReleaseSpan(first=str(first), newest=str(newest), gaps=tuple(map(str, gaps)))
