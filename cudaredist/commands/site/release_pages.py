"""The start page, and the pages of products and releases."""

from collections.abc import Iterable, Iterator

from cudaredist.commands.diff.export_changes import ExportChanges
from cudaredist.commands.explain.explain_package import architecture_order
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
from cudaredist.formats.symbol_tables import is_mangled
from cudaredist.primitives import Platform, natural_order
from cudaredist.progress import total_size
from cudaredist.redists import CUDA, REDISTS
from cudaredist.tables.explain_driver import SYSTEMS, lowest_driver

_NAMES_SHOWN = 200


def make_start_page(data: SiteData, packages: int) -> StartPage:
    """Return the start page, with the number of packages."""
    cuda = data.releases.get(CUDA, ())
    return StartPage(
        channel=data.channel,
        title="CUDA redistributables",
        cuda=tuple(_cuda_summaries(cuda, data))[::-1],
        names=tuple(
            dict.fromkeys(
                name
                for entry in (data.gpus.capabilities.values() if data.gpus else ())
                for name in entry.products
            )
        ),
        products=tuple(
            ProductSummary(
                redist=redist,
                product=product_title(redist),
                releases=len(releases),
                oldest=str(releases[0].label),
                newest=str(releases[-1].label),
                packages=len({p.name for one in releases for p in one.manifest.packages}),
            )
            for redist, releases in data.releases.items()
        ),
        packages=packages,
        files=sum(len({place.path for place in places}) for places in data.files.values()),
        capabilities=len(data.capabilities),
        unexamined=data.unexamined,
    )


def _cuda_summaries(releases: Iterable[ReleaseFacts], data: SiteData) -> Iterator[CudaSummary]:
    """Yield the releases of CUDA, the oldest first."""
    known: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    for facts in releases:
        label = str(facts.label)
        values = {fact.name: fact.value for topic in facts.topics for fact in topic.facts}
        supported = values.get("supported")
        names = supported if isinstance(supported, tuple) else ()
        gpus = tuple(str(name) for name in names if str(name)[-1].isdigit())
        # Without an entry in the table, the GPUs are unknown: the next release with one counts.
        known_now = gpus or known
        present = _platforms([facts])
        compilers = data.compat and data.compat.releases.get(label)
        drivers = {system: lowest_driver(facts.label, system, data.drivers) for system in SYSTEMS}
        yield CudaSummary(
            release=label,
            date=facts.manifest.release_date,
            linux=drivers["linux"],
            windows=drivers["windows"],
            gcc=compilers.compilers.get("gcc") if compilers else None,
            gpus=gpus,
            newest={name: one for name, one in data.fitting[label].items() if name != CUDA},
            dropped=(
                *(name for name in known if name not in known_now),
                *(name for name in before if name not in present),
            ),
        )
        known, before = known_now, present


def make_product_page(redist: str, data: SiteData) -> ProductPage:
    """Return the page of a product."""
    releases = data.releases[redist]
    return ProductPage(
        channel=data.channel,
        title=product_title(redist),
        redist=redist,
        product=product_title(redist),
        platforms=_platforms(releases),
        releases=tuple(map(_summary, reversed(releases))),
    )


def make_release_pages(redist: str, data: SiteData) -> Iterator[ReleasePage]:
    """Yield the pages of a product's releases."""
    releases = data.releases[redist]
    product = product_title(redist)
    for number, facts in enumerate(releases):
        following = releases[number + 1 : number + 2]
        yield ReleasePage(
            channel=data.channel,
            title=f"{product} {facts.label}",
            redist=redist,
            product=product,
            summary=_summary(facts),
            previous=str(releases[number - 1].label) if number else None,
            next=str(following[0].label) if following else None,
            packages=tuple(_packages(facts)),
            topics=facts.topics,
            changes=facts.changes,
            exports=_changed_libraries(facts.exports) if data.symbols else None,
            unknown_exports=tuple(
                sorted({name for name, _ in facts.exports.unknown} if facts.exports else ())
            ),
        )


def _changed_libraries(exports: ExportChanges | None) -> tuple[ChangedLibrary, ...] | None:
    if exports is None:
        return None
    return tuple(
        ChangedLibrary(
            package=change.package,
            library=change.library,
            places=change.places,
            removed=len(change.removed),
            added=len(change.added),
            removed_names=_shown(change.removed),
            added_names=_shown(change.added),
        )
        for change in exports.changes
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
    ordered = sorted(archives, key=lambda one: platform_order(one.archive.platform))
    return tuple(
        ReleaseArchive(
            platform=one.archive.platform,
            variant=one.archive.variant,
            size=one.archive.size,
            unpacked=one.history.size,
            file=one.archive.relative_path.rpartition("/")[2],
            sha256=one.archive.sha256,
            address=one.address,
            outputs=tuple(one.explained.outputs),
        )
        for one in ordered
    )


def sorted_platforms(names: Iterable[str]) -> tuple[str, ...]:
    """Return platforms in their order, each once."""
    return tuple(sorted(set(names), key=platform_order))


def _platforms(releases: Iterable[ReleaseFacts]) -> tuple[str, ...]:
    return sorted_platforms(name for one in releases for name in one.manifest.platforms)


def _summary(facts: ReleaseFacts) -> ReleaseSummary:
    return ReleaseSummary(
        redist=facts.redist,
        release=str(facts.label),
        date=facts.manifest.release_date,
        platforms=tuple(_total(name, facts.archives) for name in _platforms([facts])),
    )


def _total(platform: str, archives: Iterable[ArchiveFacts]) -> PlatformTotal:
    own = [one for one in archives if one.archive.platform == platform]
    return PlatformTotal(
        platform=platform,
        packages=len({one.archive.package for one in own}),
        size=total_size(one.archive.size for one in own),
        unpacked=total_size(one.history.size for one in own),
    )


def _packages(facts: ReleaseFacts) -> Iterator[ReleasePackage]:
    for package in sorted(facts.manifest.packages, key=lambda package: package.name):
        own = [one for one in facts.archives if one.archive.package == package.name]
        names = {name for one in own for name in one.explained.architectures}
        yield ReleasePackage(
            package=package.name,
            title=package.title,
            version=", ".join(map(str, package.versions)),
            license=facts.licenses[package.name],
            archives=archive_sizes(own),
            architectures=tuple(sorted(names, key=architecture_order)),
        )
