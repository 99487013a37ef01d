"""site: the facts that the web site shows, read from a data folder."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cudaredist.commands.diff.diff_releases import ComparedTables, compare_in_order
from cudaredist.commands.diff.export_changes import ExportChanges, ReleaseExports
from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.explain.archive_facts import explain_archives
from cudaredist.commands.explain.coverage_history import coverage_of_releases, read_coverage
from cudaredist.commands.explain.explain_cuda_release import CudaTables
from cudaredist.commands.explain.newest_together import (
    COMMON_PLATFORMS,
    newest_together,
    newest_with_cuda,
)
from cudaredist.commands.explain.package_history import archive_histories
from cudaredist.commands.explain.package_report import ArchiveHistory, ExplainedArchive
from cudaredist.commands.explain.report import NewestTogether, PackageCoverage
from cudaredist.commands.site.other_kind import read_other_kind
from cudaredist.commands.site.page_models import OtherKindPage
from cudaredist.commands.site.site_symbols import SymbolGroups, exported_symbols
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.fixup_policy import FixupPolicy
from cudaredist.formats.jetpack import JetPackPolicy
from cudaredist.formats.license_policy import LicensePolicy
from cudaredist.formats.meta_policy import MetaPolicy
from cudaredist.formats.names import Channel, OutputName
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.grouping import grouped
from cudaredist.manifests.manifest_values import Archive, Manifest
from cudaredist.primitives import Version
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import CUDA
from cudaredist.sets.metadata import license_name
from cudaredist.source_code.api import read_api
from cudaredist.store.archive_address import archive_address
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index, IndexedArchive, Question
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.store.layered_tables import read_layered
from cudaredist.store.local_manifests import load_manifest
from cudaredist.store.read_data import load_features
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE, read_gpu_policy
from cudaredist.tables.advisories.states import KnownVulnerabilities
from cudaredist.tables.explain_gpu import explain_gpu
from cudaredist.tables.explanation import Topic


class ArchiveFacts(NamedTuple):
    """One archive of a manifest, with its contents."""

    archive: Archive
    explained: ExplainedArchive
    history: ArchiveHistory
    address: str | None
    """None: unknown, as for wheels."""


class PackageFile(NamedTuple):
    """A file of a package, and the archives that contain it."""

    package: str
    path: str
    output: OutputName
    archives: str
    """The numbers of the archives, separated by commas. Many files have the same ones."""


class ArchivePlace(NamedTuple):
    """The release and platform of an archive."""

    archive: int
    redist: str
    release: str
    platform: str


_FILES = Question(
    PackageFile,
    """
    WITH own AS ( -- many archives have the same folders, whose files are read once
        SELECT package, folder, max(output) AS output, group_concat(archives.id) AS archives
        FROM current_releases JOIN archives ON release = current_releases.id
        JOIN contents_folders USING (contents)
        GROUP BY package, folder
    ), placed AS (
        SELECT package, output, archives,
            CASE path WHEN '' THEN name ELSE path || '/' || name END AS path
        FROM own JOIN folders ON folders.id = folder JOIN folder_files USING (folder)
    )
    SELECT package, path, max(output) AS output, group_concat(archives) AS archives
    FROM placed GROUP BY package, path ORDER BY package, path""",
)
_PLACES = Question(
    ArchivePlace,
    """
    SELECT archives.id AS archive, redist, label AS release, platform
    FROM current_releases JOIN archives ON release = current_releases.id""",
)


class _ExportedGroup(NamedTuple):
    symbol_group: int


_EXPORTED_GROUPS = Question(
    _ExportedGroup,
    "SELECT id AS symbol_group FROM symbol_groups WHERE imported_from IS NULL",
)


class ReleaseFacts(NamedTuple):
    """One release of a redistributable."""

    redist: str
    label: Version
    manifest: Manifest
    archives: tuple[ArchiveFacts, ...]
    changes: DiffReport | None
    """The changes since the release before it. None for the first one."""
    exports: ExportChanges | None
    """The changes of exported symbols. None for the first one."""
    topics: tuple[Topic, ...]
    """Host compilers, capabilities and drivers of a CUDA release."""
    licenses: Mapping[str, str | None]
    """The names of licenses by package: those of package sets, else of the manifest."""


@dataclass(frozen=True, slots=True)
class SiteData:
    """The facts of all pages."""

    channel: Channel
    releases: Mapping[str, tuple[ReleaseFacts, ...]]
    """By redistributable, the oldest release first."""
    files: Mapping[str, Sequence[PackageFile]]
    """By package, each path once. A package without a key has no known files."""
    places: Mapping[str, ArchivePlace]
    """The archives of `files` by number."""
    compat: NvccCompat | None
    gpus: Gpus | None
    capabilities: Mapping[str, Topic]
    coverage: tuple[PackageCoverage, ...]
    newest: Mapping[str, NewestTogether]
    """By capability."""
    fitting: Mapping[str, Mapping[str, str]]
    """The newest release of each library that is usable with a CUDA release, by its label."""
    drivers: DriverPolicy
    jetpack: JetPackPolicy
    programs: Mapping[str, str]
    """The main program of packages."""
    symbols: Mapping[str, SymbolGroups]
    """The exports of each library with a table of symbols."""
    unknown_libraries: tuple[str, ...]
    """Libraries whose symbols are unknown in a release."""
    unexamined: int
    """Archives without features."""
    sets: Sequence[PackageSet]
    known: KnownVulnerabilities
    other: OtherKindPage | None = None
    """The packages of the other kind. None: not selected, or there are none."""


def read_site_data(
    index: Index,
    sets: Sequence[PackageSet] = (),
    progress: Progress = NO_PROGRESS,
    other: Store | None = None,
) -> SiteData:
    """Read all facts that the site shows.

    `other` is the data of the other channel, of which the site shows the facts of manifests. Raises
    `UsageError` without local manifests, and `ReadError` or `InvalidFileError` for a file that
    cannot be read.
    """
    store = index.store
    compat, gpus = read_layered(store, NVCC_TABLE), read_layered(store, GPU_TABLE)
    compared = ComparedTables(compat, gpus)
    redists = index.redists()
    drivers = read_own_file(store.read_policy("drivers"), DriverPolicy)
    meta = read_own_file(store.read_policy("meta"), MetaPolicy)
    licenses = read_own_file(store.read_policy("licenses"), LicensePolicy)
    tables = CudaTables(compat, gpus, store) if compat and gpus else None
    symbols = index.symbol_names([row.symbol_group for row in index.ask(_EXPORTED_GROUPS)])
    archives = _archives(index, redists, symbols)
    names = [f"{redist}@{label}" for redist in redists for label in index.labels(redist)]
    exports = ReleaseExports(index, names, symbols)
    progress.step("reading the releases", len(names))
    releases: dict[str, tuple[ReleaseFacts, ...]] = {}
    for redist in redists:
        own = _releases(redist, store, archives, exports, index, tables, compared, licenses)
        releases[redist] = tuple(progress.each(own))
    capabilities: dict[str, Topic] = {}
    coverage: tuple[PackageCoverage, ...] = ()
    newest: dict[str, NewestTogether] = {}
    if gpus is not None and compared.rules is not None:
        policy = read_gpu_policy(store)
        for name in gpus.table.capabilities:
            capabilities[name] = explain_gpu(name, gpus.table, policy, drivers)
        # GPUs have only capabilities without a variant.
        plain = [name for name, entry in gpus.table.capabilities.items() if entry.variant is None]
        read = read_coverage(plain, index, gpus.table, compared.rules)
        coverage = coverage_of_releases(plain, read, gpus.table, index)
        newest = {one.capability: one for one in newest_together(plain, read, store, gpus.table)}
    return SiteData(
        channel=store.channel,
        releases=releases,
        files=grouped((file.package, file) for file in index.ask(_FILES)),
        places={str(place.archive): place for place in index.ask(_PLACES)},
        compat=None if compat is None else compat.table,
        gpus=None if gpus is None else gpus.table,
        capabilities=capabilities,
        coverage=coverage,
        newest=newest,
        fitting=_fitting(releases, store),
        drivers=drivers,
        jetpack=read_own_file(store.read_policy("jetpack"), JetPackPolicy),
        programs={
            name: one.main_program for name, one in meta.packages.items() if one.main_program
        },
        symbols=exported_symbols(index, symbols),
        unknown_libraries=exports.unknown_libraries(),
        unexamined=sum(not item.explained.is_examined for own in archives.values() for item in own),
        sets=sets,
        known=known_vulnerabilities(store),
        other=None if other is None else read_other_kind(other),
    )


def _archives(
    index: Index, redists: Collection[str], symbols: Mapping[int, Sequence[str]]
) -> Mapping[tuple[str, str], list[ArchiveFacts]]:
    """Return the archives of each release."""
    urls = read_own_file(index.store.read_policy("fixups"), FixupPolicy).urls
    packages: dict[str, dict[IndexedArchive, ExplainedArchive]] = defaultdict(dict)
    for place, explained in explain_archives(index, index.archives(redists)):
        packages[explained.package][place] = explained
    archives: dict[tuple[str, str], list[ArchiveFacts]] = defaultdict(list)
    address_of = cache(index.store.address_of)
    for package in packages.values():
        histories = archive_histories(package, index, symbols)
        for (place, one), history in zip(package.items(), histories, strict=True):
            of_release = address_of(one.redist, place.label)
            address = archive_address(one.redist, place.archive, urls, of_release)
            facts = ArchiveFacts(place.archive, one, history, address)
            archives[one.redist, one.release].append(facts)
    return archives


def _releases(
    redist: str,
    store: Store,
    archives: Mapping[tuple[str, str], list[ArchiveFacts]],
    exports: ReleaseExports,
    index: Index,
    tables: CudaTables | None,
    compared: ComparedTables,
    licenses: LicensePolicy,
) -> Iterator[ReleaseFacts]:
    """Yield the releases of a redistributable."""
    loaded = {
        label: (load_manifest(store, redist, label), load_features(store, redist, label))
        for label in store.manifests(redist).labels()
    }
    api = read_api(index, redist)
    changes = compare_in_order(redist, loaded, store, compared, api)
    before: str | None = None
    for label, (manifest, _) in loaded.items():
        topics: tuple[Topic, ...] = ()
        if redist == CUDA and tables is not None and tables.has(str(label)):
            topics, _ = tables.explain(str(label))
        name = f"{redist}@{label}"
        yield ReleaseFacts(
            redist=redist,
            label=label,
            manifest=manifest,
            archives=tuple(archives[redist, str(label)]),
            changes=changes.get(label),
            topics=topics,
            exports=None if before is None else exports.changes(before, name),
            licenses={one.name: license_name(redist, one, licenses) for one in manifest.packages},
        )
        before = name


def _fitting(
    releases: Mapping[str, Sequence[ReleaseFacts]], store: Store
) -> dict[str, dict[str, str]]:
    """Return the newest libraries for each CUDA release, on its most common platform."""
    places = grouped(
        (x.platform, (redist, facts.label, x.id))
        for redist, group in releases.items()
        for facts in group
        for x, *_ in facts.archives
    )
    fitting = {}
    for facts in releases.get(CUDA, ()):
        platform = next((name for name in COMMON_PLATFORMS if name in facts.manifest.platforms), "")
        fitting[str(facts.label)] = newest_with_cuda(facts.label, places.get(platform, ()), store)
    return fitting
