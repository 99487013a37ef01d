"""The pages of packages, and of their files."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from cudaredist.cli.text import grouped
from cudaredist.commands.site.page_models import (
    FilesPage,
    FileSpan,
    PackagePage,
    PackageRelease,
    PackagesPage,
    PackageSummary,
    PlatformCode,
    SonameSpan,
    Span,
)
from cudaredist.commands.site.release_pages import archive_sizes, platform_order, sorted_platforms
from cudaredist.commands.site.site_data import ArchiveFacts, ReleaseFacts, SiteData
from cudaredist.manifests.manifest_values import Package
from cudaredist.primitives import Version, natural_order
from cudaredist.tables.gpus.capability import Capability


class PackageHistory:
    """The releases of one package, by product with the oldest first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.releases: list[tuple[ReleaseFacts, Package, list[ArchiveFacts]]] = []

    @property
    def spans(self) -> tuple[Span, ...]:
        """The releases of each product with the package."""
        return tuple(_spans((facts.redist, str(facts.label)) for facts, _, _ in self.releases))


def package_histories(data: SiteData) -> dict[str, PackageHistory]:
    """Return the history of each package."""
    histories: dict[str, PackageHistory] = {}
    for releases in data.releases.values():
        for facts in releases:
            archives = grouped((one.archive.package, one) for one in facts.archives)
            for package in facts.manifest.packages:
                history = histories.setdefault(package.name, PackageHistory(package.name))
                history.releases.append((facts, package, archives.get(package.name, [])))
    return dict(sorted(histories.items()))


def make_packages_page(histories: Iterable[PackageHistory], data: SiteData) -> PackagesPage:
    """Return the page with all packages."""
    return PackagesPage(
        channel=data.channel, title="Packages", packages=tuple(map(package_summary, histories))
    )


def package_summary(history: PackageHistory) -> PackageSummary:
    """Return a package with its newest version."""
    facts, package, archives = history.releases[-1]
    return PackageSummary(
        package=history.name,
        title=package.title,
        version=", ".join(map(str, package.versions)),
        license=facts.licenses[package.name],
        spans=history.spans,
        platforms=sorted_platforms(one.archive.platform for one in archives),
    )


def make_package_page(history: PackageHistory, data: SiteData) -> PackagePage:
    """Return the page of a package."""
    places = data.files.get(history.name)
    newest = sorted(history.releases[-1][2], key=lambda one: platform_order(one.archive.platform))
    return PackagePage(
        channel=data.channel,
        title=history.name,
        summary=package_summary(history),
        platforms=sorted_platforms(
            one.archive.platform for _, _, archives in history.releases for one in archives
        ),
        releases=tuple(
            PackageRelease(
                redist=facts.redist,
                release=str(facts.label),
                version=", ".join(map(str, package.versions)),
                archives=archive_sizes(archives),
                sonames=_names({name for one in archives for name in one.explained.sonames}),
            )
            for facts, package, archives in reversed(history.releases)
        ),
        history=tuple(one.history for _, _, archives in history.releases for one in archives),
        sonames=tuple(_soname_spans(history)),
        newest=tuple(one.explained for one in newest),
        device_code=tuple(
            PlatformCode(
                platform=one.archive.platform,
                variant=one.archive.variant,
                sizes=one.history.device_code,
            )
            for one in newest
            if one.history.device_code
        ),
        coverage=tuple(
            sorted(
                (part for part in data.coverage if part.package == history.name),
                key=lambda part: Capability.parse(part.capability),
                reverse=True,
            )
        ),
        files=None if places is None else len({place.path for place in places}),
    )


def make_files_page(package: str, spans: tuple[Span, ...], data: SiteData) -> FilesPage:
    """Return the page with the files of a package."""
    by_path = grouped((place.path, place) for place in data.files[package])
    folders: dict[str, list[FileSpan]] = defaultdict(list)
    for path, places in by_path.items():
        span = _spans((place.redist, place.release) for place in places)[-1]
        folders[posixpath.dirname(path)].append(
            FileSpan(
                **dict(span),
                name=posixpath.basename(path),
                output=places[-1].output,
                platforms=sorted_platforms(place.platform for place in places),
            )
        )
    return FilesPage(
        channel=data.channel,
        title=f"Files of {package}",
        package=package,
        spans=spans,
        platforms=sorted_platforms(place.platform for place in data.files[package]),
        folders={
            name: tuple(sorted(folders[name], key=lambda file: natural_order(file.name)))
            for name in sorted(folders)
        },
    )


def _soname_spans(history: PackageHistory) -> Iterator[SonameSpan]:
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)
    platforms: dict[str, set[str]] = defaultdict(set)
    for facts, _, archives in history.releases:
        for one in archives:
            for name in one.explained.sonames:
                places[name].append((facts.redist, str(facts.label)))
                platforms[name].add(one.archive.platform)
    for name in _names(places):
        for span in _spans(places[name]):
            yield SonameSpan(**dict(span), soname=name, platforms=sorted_platforms(platforms[name]))


def _spans(places: Iterable[tuple[str, str]]) -> Sequence[Span]:
    """Return the first and newest release of each product."""
    labels: dict[str, set[str]] = defaultdict(set)
    for redist, label in places:
        labels[redist].add(label)
    ordered = {redist: sorted(names, key=Version.parse) for redist, names in labels.items()}
    return [
        Span(redist=redist, first=names[0], newest=names[-1], releases=len(names))
        for redist, names in sorted(ordered.items())
    ]


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_order))
