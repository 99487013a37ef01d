"""explain gpu: releases of each package that run on a GPU.

Reads the local feature files.
"""

from collections.abc import Collection, Iterable

from cudaredist.commands.explain.report import PackageCoverage, ReleaseCoverage, ReleaseSpan
from cudaredist.formats.features import ExaminedArchive
from cudaredist.formats.packageset import Coverage, CoverageValue
from cudaredist.formats.tables import Gpus
from cudaredist.primitives import Platform, Version
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import load_features
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
            best = _best(redist, label, archives, {gpus.capabilities[n].base for n in names}, rules)
            for name in names:
                part = best.get(gpus.capabilities[name].base)
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
    names: Collection[str],
    rules: CoverageRules,
) -> dict[str, Coverage]:
    """Return the best coverage of each capability by a release's archives.

    A capability has no entry if no archive for its GPUs has device code.
    """
    parts: dict[str, list[Coverage]] = {name: [] for name in names}
    for archive in archives:
        present = parts.keys() & map(str, rules.capabilities_on(Platform(archive.platform)))
        if archive.code_by_file is not None:
            files = tuple(archive.code_by_file.values())
            covered = rules.cover(files, present, cuda_major_of(redist, label, archive.variant))
        elif archive.device_code:
            covered = dict.fromkeys(present, Coverage(value="unknown"))
        else:
            covered = {}
        for name, part in covered.items():
            parts[name] += [part] * (part.value != "host-only")
    return {
        name: min(found, key=lambda part: _BEST_FIRST.index(part.value))
        for name, found in parts.items()
        if found
    }


def _summary(
    name: str, redist: str, package: str, releases: list[tuple[Version, Coverage]]
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
