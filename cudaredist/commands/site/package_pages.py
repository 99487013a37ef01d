"""The pages of packages, and of their files."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

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
from cudaredist.commands.site.release_pages import (
    archive_sizes,
    name_fields,
    platform_order,
    sorted_platforms,
    version_words,
)
from cudaredist.commands.site.site_data import ArchiveFacts, ReleaseFacts, SiteData
from cudaredist.grouping import grouped
from cudaredist.manifests.manifest_values import Package
from cudaredist.primitives import Version, natural_order
from cudaredist.tables.gpus.capability import Capability

PackageHistory: TypeAlias = list[tuple[ReleaseFacts, Package, list[ArchiveFacts]]]
"""The releases of one package, by product with the oldest first."""


def package_histories(data: SiteData) -> dict[str, PackageHistory]:
    """Return the history of each package."""
    histories: dict[str, PackageHistory] = defaultdict(list)
    for releases in data.releases.values():
        for facts in releases:
            archives = grouped((item.archive.package, item) for item in facts.archives)
            for package in facts.manifest.packages:
                histories[package.name].append((facts, package, archives.get(package.name, [])))
    return dict(sorted(histories.items()))


def make_packages_page(histories: Mapping[str, PackageHistory]) -> PackagesPage:
    """Return the page with all packages."""
    packages = tuple(_summary(history) for history in histories.values())
    return PackagesPage(title="Packages", packages=packages)


def _summary(history: PackageHistory) -> PackageSummary:
    """Return a package with its newest version."""
    facts, package, archives = history[-1]
    projects = []
    for _, _, own in reversed(history):
        projects += [item.archive.project for item in own if item.archive.project]
    return PackageSummary(
        **name_fields(package, facts),
        spans=tuple(_spans((facts.redist, str(facts.label)) for facts, _, _ in history)),
        platforms=sorted_platforms(item.archive.platform for item in archives),
        projects=tuple(dict.fromkeys(projects)),
    )


def make_package_page(name: str, history: PackageHistory, data: SiteData) -> PackagePage:
    """Return the page of a package."""
    files = data.files.get(name)
    archives = [item for _, _, own in history for item in own]
    newest = sorted(history[-1][2], key=lambda item: platform_order(item.archive.platform))
    coverage = (part for part in data.coverage if part.package == name)
    return PackagePage(
        title=name,
        summary=_summary(history),
        platforms=sorted_platforms(item.archive.platform for item in archives),
        releases=tuple(
            PackageRelease(
                redist=facts.redist,
                release=str(facts.label),
                version=version_words(package),
                date=facts.manifest.release_date,
                archives=archive_sizes(own),
                sonames=_names({soname for item in own for soname in item.explained.sonames}),
            )
            for facts, package, own in reversed(history)
        ),
        history=tuple(item.history for item in archives),
        sonames=tuple(_soname_spans(archives)),
        newest=tuple(item.explained for item in newest),
        device_code=tuple(
            PlatformCode(
                platform=item.archive.platform,
                variant=item.archive.variant,
                sizes=item.history.device_code,
            )
            for item in newest
            if item.history.device_code
        ),
        coverage=tuple(
            sorted(coverage, key=lambda part: Capability.parse(part.capability), reverse=True)
        ),
        files=None if files is None else len(files),
    )


def make_files_page(package: str, spans: tuple[Span, ...], data: SiteData) -> FilesPage:
    """Return the page with the files of a package."""
    folders: dict[str, list[FileSpan]] = defaultdict(list)
    all_platforms: set[str] = set()

    @cache
    def span_and_platforms(archives: str) -> tuple[Span, tuple[str, ...]]:
        places = [data.places[number] for number in archives.split(",")]
        span = _spans((place.redist, place.release) for place in places)[-1]
        return span, sorted_platforms(place.platform for place in places)

    for file in data.files[package]:
        span, platforms = span_and_platforms(file.archives)
        all_platforms.update(platforms)
        folders[posixpath.dirname(file.path)].append(
            FileSpan(
                **dict(span),
                name=posixpath.basename(file.path),
                output=file.output,
                platforms=platforms,
            )
        )
    return FilesPage(
        title=f"Files of {package}",
        package=package,
        spans=spans,
        platforms=sorted_platforms(all_platforms),
        folders={
            name: tuple(sorted(folders[name], key=lambda file: natural_order(file.name)))
            for name in sorted(folders)
        },
    )


def _soname_spans(archives: Iterable[ArchiveFacts]) -> Iterator[SonameSpan]:
    explained = (item.explained for item in archives)
    by_name = grouped((name, item) for item in explained for name in item.sonames)
    for name in _names(by_name):
        platforms = sorted_platforms(item.platform for item in by_name[name])
        for span in _spans((item.redist, item.release) for item in by_name[name]):
            yield SonameSpan(**dict(span), soname=name, platforms=platforms)


def _spans(places: Iterable[tuple[str, str]]) -> Sequence[Span]:
    """Return the first and newest release of each product."""
    releases = sorted({(redist, Version.parse(label)) for redist, label in places})
    return [
        Span(redist=redist, first=str(labels[0]), newest=str(labels[-1]), releases=len(labels))
        for redist, labels in grouped(releases).items()
    ]


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_order))
