"""The start page, and the pages of products and releases."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from cudaredist.commands.diff.export_changes import ExportChange
from cudaredist.commands.explain.archive_facts import architecture_order
from cudaredist.commands.site.page_models import (
    ChangedLibrary,
    CudaSummary,
    PlatformTotal,
    ProductPage,
    ProductSummary,
    ReleaseArchive,
    ReleasePackage,
    ReleasePage,
    ReleaseSummary,
    StartPage,
)
from cudaredist.commands.site.site_data import ArchiveFacts, ReleaseFacts, SiteData
from cudaredist.grouping import grouped
from cudaredist.manifests.manifest_values import Package
from cudaredist.primitives import Platform, is_mangled, natural_order
from cudaredist.progress import total_size
from cudaredist.redists import CUDA, REDISTS
from cudaredist.tables.driver_support import SYSTEMS, lowest_driver

_NAMES_SHOWN = 200
_NOTES = "https://docs.nvidia.com/cuda/archive/{}/cuda-toolkit-release-notes/index.html"
"""NVIDIA's address of the release notes of CUDA 12.1.0, with the label of another release."""


def make_start_page(data: SiteData, packages: int) -> StartPage:
    """Return the start page, with the number of packages."""
    gpus = data.gpus.capabilities.values() if data.gpus else ()
    return StartPage(
        title="CUDA redistributables",
        cuda=tuple(_cuda_summaries(data))[::-1],
        names=tuple(dict.fromkeys(name for entry in gpus for name in entry.products)),
        products=tuple(
            ProductSummary(
                redist=redist,
                product=product_title(redist),
                releases=len(releases),
                oldest=str(releases[0].label),
                newest=str(releases[-1].label),
                packages=len({p.name for facts in releases for p in facts.manifest.packages}),
            )
            for redist, releases in data.releases.items()
        ),
        packages=packages,
        files=sum(map(len, data.files.values())),
        capabilities=len(data.capabilities),
        unexamined=data.unexamined,
    )


def _cuda_summaries(data: SiteData) -> Iterator[CudaSummary]:
    """Yield the releases of CUDA, the oldest first."""
    known: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    releases = data.releases.get(CUDA, ())
    for number, facts in enumerate(releases):
        # A platform that a later release has again is only missing in the data.
        later = {name for other in releases[number:] for name in other.manifest.platforms}
        label = str(facts.label)
        values = {fact.name: fact.value for topic in facts.topics for fact in topic.facts}
        supported = values.get("supported")
        names = supported if isinstance(supported, tuple) else ()
        gpus = tuple(name for name in names if name[-1].isdigit())
        # Without an entry in the table, the GPUs are unknown: the next release with one counts.
        known = gpus or known
        present = (*known, *sorted_platforms(facts.manifest.platforms))
        compilers = data.compat and data.compat.releases.get(label)
        drivers = {system: lowest_driver(facts.label, system, data.drivers) for system in SYSTEMS}
        yield CudaSummary(
            release=label,
            date=facts.manifest.release_date,
            linux=drivers["linux"],
            windows=drivers["windows"],
            gcc=compilers.compilers.get("gcc") if compilers else None,
            glibc=compilers.glibc if compilers else None,
            gpus=gpus,
            newest={name: version for name, version in data.fitting[label].items() if name != CUDA},
            dropped=tuple(name for name in before if name not in {*present, *later}),
        )
        before = present


def make_product_page(redist: str, data: SiteData) -> ProductPage:
    """Return the page of a product."""
    releases = data.releases[redist]
    return ProductPage(
        title=product_title(redist),
        redist=redist,
        product=product_title(redist),
        platforms=sorted_platforms(name for facts in releases for name in facts.manifest.platforms),
        releases=tuple(map(_summary, reversed(releases))),
    )


def make_release_pages(redist: str, data: SiteData) -> Iterator[ReleasePage]:
    """Yield the pages of a product's releases."""
    releases = data.releases[redist]
    product = product_title(redist)
    about = {one.release: one for one in _cuda_summaries(data)} if redist == CUDA else {}
    labels = [str(facts.label) for facts in releases]
    for number, facts in enumerate(releases):
        is_first, is_last = number == 0, number == len(releases) - 1
        exports = facts.exports
        yield ReleasePage(
            title=f"{product} {facts.label}",
            redist=redist,
            product=product,
            summary=_summary(facts),
            previous=None if is_first else labels[number - 1],
            next=None if is_last else labels[number + 1],
            packages=tuple(_packages(facts)),
            topics=facts.topics,
            about=about.get(str(facts.label)),
            notes=_NOTES.format(facts.label) if redist == CUDA else None,
            changes=facts.changes,
            exports=tuple(map(_changed, exports.changes)) if data.symbols and exports else None,
            unknown_exports=tuple(sorted({name for name, _ in exports.unknown} if exports else ())),
        )


def _changed(change: ExportChange) -> ChangedLibrary:
    return ChangedLibrary(
        package=change.package,
        library=change.library,
        places=change.places,
        removed=len(change.removed),
        added=len(change.added),
        removed_names=_shown(change.removed),
        added_names=_shown(change.added),
    )


def _shown(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names to list. C++ names are long, and some libraries export 100,000."""
    return tuple(name for name in names if not is_mangled(name))[:_NAMES_SHOWN]


def product_title(redist: str) -> str:
    """Return NVIDIA's name of a product, or the folder's name if it is not in the catalogue."""
    return REDISTS[redist].title if redist in REDISTS else redist


def platform_order(name: str) -> tuple[str, bool, list[tuple[int, int, str]]]:
    """Return the sort key of a platform. x86_64 is the first one of a system."""
    platform = Platform(name)
    return platform.os, platform.machine != "x86_64", natural_order(name)


def archive_sizes(archives: Iterable[ArchiveFacts]) -> tuple[ReleaseArchive, ...]:
    """Return the sizes of archives, ordered by platform."""
    ordered = sorted(archives, key=lambda item: platform_order(item.archive.platform))
    return tuple(
        ReleaseArchive(
            platform=item.archive.platform,
            variant=item.archive.variant,
            size=item.archive.size,
            unpacked=item.history.size,
            file=item.archive.relative_path.rpartition("/")[2],
            sha256=item.archive.sha256,
            address=item.address,
            outputs=tuple(item.explained.outputs),
        )
        for item in ordered
    )


def sorted_platforms(names: Iterable[str]) -> tuple[str, ...]:
    """Return platforms in their order, each once."""
    return tuple(sorted(set(names), key=platform_order))


def _summary(facts: ReleaseFacts) -> ReleaseSummary:
    own = grouped((item.archive.platform, item) for item in facts.archives)
    return ReleaseSummary(
        redist=facts.redist,
        release=str(facts.label),
        date=facts.manifest.release_date,
        platforms=tuple(
            _total(name, own.get(name, ())) for name in sorted_platforms(facts.manifest.platforms)
        ),
    )


def _total(platform: str, archives: Collection[ArchiveFacts]) -> PlatformTotal:
    return PlatformTotal(
        platform=platform,
        packages=len({item.archive.package for item in archives}),
        size=total_size(item.archive.size for item in archives),
        unpacked=total_size(item.history.size for item in archives),
    )


def _packages(facts: ReleaseFacts) -> Iterator[ReleasePackage]:
    archives = grouped((item.archive.package, item) for item in facts.archives)
    for package in sorted(facts.manifest.packages, key=lambda package: package.name):
        own = archives.get(package.name, ())
        names = {name for item in own for name in item.explained.architectures}
        yield ReleasePackage(
            **name_fields(package, facts),
            archives=archive_sizes(own),
            architectures=tuple(sorted(names, key=architecture_order)),
        )


def name_fields(package: Package, facts: ReleaseFacts) -> dict[str, Any]:
    """Return the fields of a `NamedPackage`."""
    return {
        "package": package.name,
        "title": package.title,
        "version": version_words(package),
        "license": facts.licenses[package.name],
    }


def version_words(package: Package) -> str:
    """Return the versions of a package, nearly always one."""
    return ", ".join(map(str, package.versions))
