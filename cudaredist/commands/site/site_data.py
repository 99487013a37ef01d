"""site: the facts that the web site shows, read from a data folder."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cudaredist.commands.diff.diff_releases import compare_in_order
from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.explain.coverage_history import coverage_of_releases, read_coverage
from cudaredist.commands.explain.explain_by_tables import CudaTables
from cudaredist.commands.explain.explain_package import explain_archives
from cudaredist.commands.explain.newest_together import newest_together
from cudaredist.commands.explain.report import ExplainedArchive, NewestTogether, PackageCoverage
from cudaredist.commands.site.site_symbols import (
    ExportChanges,
    ExportingArchive,
    changed_exports,
    exporting_archives,
    read_exports,
    unknown_libraries,
)
from cudaredist.formats.base import Channel, OutputName
from cudaredist.formats.features import Features
from cudaredist.formats.policy import OutputPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.manifests.manifest_values import Archive, Manifest
from cudaredist.primitives import ArchiveId, Version
from cudaredist.redists import CUDA
from cudaredist.store.facts_index import Index
from cudaredist.store.layered_tables import read_gpus, read_nvcc_compat
from cudaredist.store.read_data import (
    examined_archives,
    load_features,
    load_manifest,
    require_manifests,
)
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.store.table_registry import read_gpu_policy
from cudaredist.tables.explain_gpu import capability_topic
from cudaredist.tables.explanation import Topic
from cudaredist.tables.symbols.library_exports import LibraryExports


class ArchiveFacts(NamedTuple):
    """One archive of a manifest, with its contents."""

    archive: Archive
    explained: ExplainedArchive
    device_code: Mapping[str, int]
    """Decompressed bytes by architecture."""

    @property
    def unpacked(self) -> int | None:
        """The unpacked bytes of all outputs. None if the archive was not examined."""
        if not self.explained.is_examined:
            return None
        return sum(output.size for output in self.explained.outputs.values())


class FilePlace(NamedTuple):
    """A file of a package, and an archive that contains it."""

    path: str
    output: OutputName
    redist: str
    release: str
    platform: str


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """One release of a redistributable."""

    redist: str
    label: Version
    manifest: Manifest
    archives: tuple[ArchiveFacts, ...]
    changes: DiffReport | None
    """The changes since the release before it. None for the first one."""
    exporting: tuple[ExportingArchive, ...]
    exports: ExportChanges | None
    """The changes of exported symbols. None for the first one."""
    topics: tuple[Topic, ...]
    """Host compilers, capabilities and drivers of a CUDA release."""


@dataclass(frozen=True, slots=True)
class SiteData:
    """The facts of all pages."""

    channel: Channel
    releases: Mapping[str, tuple[ReleaseFacts, ...]]
    """By redistributable, the oldest release first."""
    files: Mapping[str, tuple[FilePlace, ...]]
    """By package. A package without a key has no known files."""
    compat: NvccCompat | None
    gpus: Gpus | None
    capabilities: Mapping[str, Topic]
    coverage: tuple[PackageCoverage, ...]
    newest: Mapping[str, NewestTogether]
    """By capability."""
    libraries: Mapping[str, LibraryExports]
    """The exports of each library with a table of symbols."""
    unknown_libraries: tuple[str, ...]
    """Libraries whose symbols are unknown in a release."""
    unexamined: int
    """Archives without features."""


def read_site_data(index: Index) -> SiteData:
    """Read all facts that the site shows.

    Raises `UsageError` without local manifests, and `ReadError` or `InvalidFileError` for a file
    that cannot be read.
    """
    store = index.store
    compat, gpus = read_nvcc_compat(store), read_gpus(store)
    files: dict[str, list[FilePlace]] = defaultdict(list)
    redists = require_manifests(store)
    labels = {(name, str(label)) for name in redists for label in store.manifests(name).labels()}
    libraries = read_exports(LayeredSymbols(store.symbol_paths), store.channel, labels)
    tables = CudaTables(compat, gpus, store) if compat and gpus else None
    outputs = read_own_file(store.read_policy("outputs"), OutputPolicy)
    releases = {
        redist: tuple(_releases(redist, index, files, libraries, tables, outputs))
        for redist in redists
    }
    capabilities: dict[str, Topic] = {}
    coverage: tuple[PackageCoverage, ...] = ()
    newest: dict[str, NewestTogether] = {}
    if gpus is not None:
        policy = read_gpu_policy(store)
        for name in gpus.table.capabilities:
            capabilities[name] = capability_topic(name, gpus.table, policy)
        # GPUs have only capabilities without a variant.
        plain = [name for name, one in gpus.table.capabilities.items() if one.variant is None]
        read = read_coverage(plain, index, gpus.table)
        coverage = coverage_of_releases(plain, read, gpus.table)
        newest = {one.capability: one for one in newest_together(plain, read, store, gpus.table)}
    every = [archive for group in releases.values() for one in group for archive in one.archives]
    return SiteData(
        channel=store.channel,
        releases=releases,
        files={package: tuple(sorted(places)) for package, places in sorted(files.items())},
        compat=None if compat is None else compat.table,
        gpus=None if gpus is None else gpus.table,
        capabilities=capabilities,
        coverage=coverage,
        newest=newest,
        libraries=libraries,
        unknown_libraries=unknown_libraries(
            (archive for group in releases.values() for one in group for archive in one.exporting),
            libraries,
        ),
        unexamined=sum(not archive.explained.is_examined for archive in every),
    )


def _releases(
    redist: str,
    index: Index,
    files: dict[str, list[FilePlace]],
    libraries: Mapping[str, LibraryExports],
    tables: CudaTables | None,
    policy: OutputPolicy,
) -> Iterator[ReleaseFacts]:
    """Yield the releases of a redistributable, and add their files."""
    store = index.store
    loaded = {
        label: (load_manifest(store, redist, label), load_features(store, redist, label))
        for label in store.manifests(redist).labels()
    }
    changes = compare_in_order(redist, loaded, store)
    own = {(one.label, one.archive.id): one for one in index.archives([redist])}
    explained: dict[str, list[ExplainedArchive]] = defaultdict(list)
    for one in explain_archives(index, own.values(), policy):
        explained[one.release].append(one)
    before: tuple[ExportingArchive, ...] | None = None
    for label, (manifest, features) in loaded.items():
        topics: tuple[Topic, ...] = ()
        if redist == CUDA and tables is not None and tables.has_line(label):
            topics, _ = tables.explain(str(label))
        code = dict(_device_code(features))
        archives = {archive.id: archive for archive in manifest.archives}
        exporting = tuple(exporting_archives(archives.values(), features))
        yield ReleaseFacts(
            redist=redist,
            label=label,
            manifest=manifest,
            archives=tuple(
                ArchiveFacts(archives[one.id], one, code.get(one.id, {}))
                for one in explained[str(label)]
            ),
            changes=changes.get(label),
            topics=topics,
            exporting=exporting,
            exports=None if before is None else changed_exports(before, exporting, libraries),
        )
        before = exporting
        for package, place in () if features is None else _files(redist, label, features):
            files[package].append(place)


def _device_code(features: Features | None) -> Iterator[tuple[ArchiveId, Mapping[str, int]]]:
    """Yield the decompressed bytes of device code of each archive, by architecture."""
    for identity, _, _, archive in examined_archives(features):
        sizes: Counter[str] = Counter()
        for code in (archive.code_by_file or {}).values():
            sizes.update(code.unpacked)
        yield identity, sizes


def _files(redist: str, label: Version, features: Features) -> Iterator[tuple[str, FilePlace]]:
    """Yield the files of each package."""
    for package, entry in features.packages.items():
        for position, archive in enumerate(entry.archives):
            for path, output in (entry.files_of(position) or {}).items():
                place = FilePlace(path, output, redist, str(label), archive.platform)
                yield package, place
