"""update-nvcc-compat and update-gpus: build the tables from NVIDIA's files.

If a release fails, its entry in the table stays, and the run continues. Archives are also read if
nothing may be written, because the run then reports the changes.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import ValidationError

from cudaredist.commands.update.report import (
    BrokenManifest,
    ReleaseOutcome,
    ReleaseStatus,
    TableReport,
)
from cudaredist.commands.update.table_file import TableFile, archives_to_read, find_table_file
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, InvalidFileError
from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.registry import read_own_file, validation_problems
from cudaredist.formats.report import ArchiveName, exit_code_of
from cudaredist.formats.tables import (
    BinarySource,
    CompilerRange,
    GlibcBound,
    HeaderSource,
    NvccPolicy,
    NvccRelease,
    TableFinding,
    span,
)
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.data_folder import Store
from cudaredist.store.files import write_output
from cudaredist.store.table_registry import (
    GPU_TABLE,
    NVCC_TABLE,
    Table,
    read_gpu_policy,
    read_nvcc_policy,
)
from cudaredist.store.targets import LocalManifest, LocalManifests
from cudaredist.tables.gpus.gpu_table import KnownGpus, known_of_table, make_table
from cudaredist.tables.nvcc.compilers import read_header
from cudaredist.tables.nvcc.glibc import newest_glibc
from cudaredist.tables.nvcc.nvcc_table import findings as bound_findings
from cudaredist.tables.nvcc.nvcc_table import hold_back, make_compat, make_release
from cudaredist.tasks import each

_Entry = TypeVar("_Entry")


@dataclass
class TableRun:
    """Inputs and options of an update."""

    manifests: LocalManifests
    service: ArchiveService
    store: Store
    write: bool = True
    fail_fast: bool = False

    def broken_manifests(self) -> tuple[BrokenManifest, ...]:
        """Return the manifests that could not be read."""
        return tuple(
            BrokenManifest(redist=manifest.redist, release=manifest.release, error=manifest.error)
            for manifest in self.manifests.broken
            if manifest.error is not None
        )

    def status(self, *, changed: bool) -> ManifestStatus:
        """Return the status of tables that this run changed, or not."""
        if not changed:
            return "unchanged"
        return "written" if self.write else "would-write"


def archive_order(outcome: ArchiveName) -> tuple[str, ...]:
    """Return the key that sorts the archives of a report."""
    return outcome.redist, outcome.release, outcome.package, outcome.platform, outcome.variant or ""


def update_nvcc_table(
    run: TableRun, *, accept_changed: bool = False, accept_new: bool = False
) -> TableReport:
    """Update the table of host compilers from a run's releases.

    A new release with lower bounds requires `accept_new` or `accept_changed`. A changed bound of a
    known release requires `accept_changed`. Raises `InvalidFileError` for a broken table or policy.
    """
    store = run.store
    table, policy = NVCC_TABLE.read(store), read_nvcc_policy(store)
    known = {} if table is None else dict(table.releases)
    sources = {
        label: release.source
        for label, release in known.items()
        if isinstance(release.source, HeaderSource)
    }

    def make(manifest: LocalManifest, file: TableFile) -> NvccRelease:
        version = {"version": str(file.archive.version)}
        source = HeaderSource.model_validate(_source_fields(file, store) | version)
        release = make_release(_nvcc_version(manifest), source, read_header(file.header), policy)
        return release.model_copy(update={"glibc": _glibc_bound(file, policy)})

    current = {label for label in sources if _follows(known[label], policy)}
    work = _Work(run, NVCC_TABLE, sources, current, make, _compiler_bounds)
    work.run_all()
    compat = make_compat(known | work.entries, policy)
    findings = bound_findings(table, compat)
    rejected: AbstractSet[str] = frozenset()
    if not accept_changed:
        compat, rejected = hold_back(table, work.entries, policy, accept_new=accept_new)
    for label in rejected & work.outcomes.keys():
        work.update(label, status="held-back")
    return work.report(
        compat if known or work.entries else None,
        [TableFinding(kind=f.kind, about=f.release, message=str(f)) for f in findings],
        is_finding=bool(rejected) or (bool(findings) and not run.write),
        held_back=sorted(rejected, key=Version.parse),
    )


def update_gpu_table(run: TableRun) -> TableReport:
    """Update the table of capabilities from a run's releases and the policy.

    Raises `InvalidFileError` for a broken table or policy.
    """
    store = run.store
    table, policy = GPU_TABLE.read(store), read_gpu_policy(store)
    known = {} if table is None else known_of_table(table)

    def make(_: LocalManifest, file: TableFile) -> KnownGpus:
        source = BinarySource.model_validate(_source_fields(file, store))
        return KnownGpus(source=source, families=file.families)

    sources = {} if table is None else table.sources
    work = _Work(run, GPU_TABLE, sources, sources.keys(), make, _capability_bounds)
    work.run_all()
    known |= work.entries
    gpus, findings = make_table(known, policy)
    # Other findings are in NVIDIA's files. The diff shows them if they change the table.
    is_finding = not run.write and any(f.kind == "overlay-lacks" for f in findings)
    return work.report(gpus if known else None, findings, is_finding=is_finding)


@dataclass(slots=True)
class _Work(Generic[_Entry]):
    """Builds the entries of a table, and collects the outcomes."""

    run: TableRun
    table: Table[OwnModel]
    sources: Mapping[str, BinarySource]
    """Source of each entry of the table."""
    current: Collection[str]
    """The labels of entries that are up to date if the archive is unchanged."""
    make: Callable[[LocalManifest, TableFile], _Entry]
    bounds: Callable[[_Entry], str]
    """Describes the entry of a release in a new table."""
    entries: dict[str, _Entry] = field(default_factory=dict)
    """New entries, by label. Unchanged ones may be missing."""
    outcomes: dict[str, ReleaseOutcome] = field(default_factory=dict)
    archives: dict[str, list[Archive]] = field(default_factory=dict)
    """The archives to read for each release, in order."""

    def run_all(self) -> None:
        """Read every release. An error becomes the release's outcome."""
        manifests, service = self.run.manifests, self.run.service
        for broken in manifests.broken:
            self._record(broken.release, "failed", error=broken.error)
        self._each(manifests.readable, self._plan)
        first = [archives[0] for archives in self.archives.values()]
        service.expect([0 if service.known(a.sha256) else a.size for a in first])
        self._each([m for m in manifests.readable if str(m.label) in self.archives], self._read)

    def _each(
        self, manifests: Sequence[LocalManifest], step: Callable[[LocalManifest], None]
    ) -> None:
        """Run a step for releases. An error becomes the release's outcome."""
        stop, jobs = self.run.service.stop, self.run.service.jobs
        results = each(manifests, step, jobs, stop, fail_fast=self.run.fail_fast)
        for manifest, result in zip(manifests, results, strict=True):
            if result is not None:
                self._record(str(manifest.label), "failed", error=ErrorReport.of(result))

    def _record(self, label: str, status: ReleaseStatus, **about: object) -> None:
        """Set the outcome of a release."""
        fields = {"release": label, "status": status, **about}
        self.outcomes[label] = ReleaseOutcome.model_validate(fields)

    def update(self, label: str, **about: object) -> None:
        """Change the outcome of a release."""
        self.outcomes[label] = self.outcomes[label].model_copy(update=about)

    def _plan(self, manifest: LocalManifest) -> None:
        """Select the archives to read for a release, none if the table's entry is up to date."""
        label = str(manifest.label)
        source = self.sources.get(label)
        about: dict[str, str] = {}
        known_sha256: str | None = None
        if source is not None:
            about = {"package": source.package, "archive_sha256": source.archive_sha256}
            if source.channel == "redist" and self.run.store.channel == "wheels":
                self._record(label, "stands", **about)
                return
            if label in self.current:
                known_sha256 = source.archive_sha256
        archives = archives_to_read(self.run.service, manifest, self.table, known_sha256)
        if archives:
            self.archives[label] = archives
        elif source is not None:
            self._record(label, "known", **about)

    def _read(self, manifest: LocalManifest) -> None:
        label = str(manifest.label)
        file = find_table_file(self.run.service, manifest, self.table, self.archives[label])
        try:
            self.entries[label] = self.make(manifest, file)
        except ValidationError as error:
            entry = f"table entry for CUDA {label}"
            raise InvalidFileError(entry, validation_problems(error)) from None
        about = {"package": file.archive.package, "archive_sha256": file.archive.sha256}
        self._record(label, "read" if file.is_read else "known", **about)

    def report(
        self,
        model: OwnModel | None,
        findings: Iterable[TableFinding],
        *,
        is_finding: bool,
        held_back: Iterable[str] = (),
    ) -> TableReport:
        """Write the table if it changed, and return the report."""
        store, service = self.run.store, self.run.service
        path, before = store.table_path(self.table.name), store.read_table(self.table.name)
        is_changed = False
        diff: tuple[str, ...] = ()
        if model is not None:
            data = model.canonical()
            read_own_file(data, type(model))
            diff = tuple(_diff(before or b"", data, path.name))
            is_changed = data != before
            if self.run.write:
                write_output(path, data, store.checkout)
        if before is None:
            for label, entry in self.entries.items():
                self.update(label, bounds=self.bounds(entry))
        outcomes = [self.outcomes[label] for label in sorted(self.outcomes, key=Version.parse)]
        status = self.run.status(changed=is_changed)
        has_findings = is_finding or status == "would-write"
        return TableReport(
            command=self.table.command,
            table=path.name,
            status=status,
            releases=tuple(outcomes),
            findings=tuple(findings),
            held_back=tuple(held_back),
            diff=diff,
            archives_read=service.opened,
            fetched_bytes=service.fetched,
            exit_code=exit_code_of(outcomes, EXIT_FINDINGS if has_findings else EXIT_OK),
        )


def _source_fields(file: TableFile, store: Store) -> dict[str, str]:
    return {
        "channel": store.channel,
        "package": file.archive.package,
        "archive_sha256": str(file.archive.sha256),
        "path": file.path_of(file.extract),
        "file_sha256": file.extract.sha256,
    }


def _glibc_bound(file: TableFile, policy: NvccPolicy) -> GlibcBound | None:
    """Return the newest glibc that a release's header compiles with, or None."""
    if file.second is None or policy.glibc is None:
        return None
    newest = newest_glibc(file.second.content.encode("latin-1"), policy.glibc)
    if newest is None:
        return None
    return GlibcBound(
        newest=newest.version,
        clashes=newest.functions,
        path=file.path_of(file.second),
        file_sha256=file.second.sha256,
    )


def _nvcc_version(manifest: LocalManifest) -> str | None:
    """Return a manifest's version of nvcc, or None if it is not unique."""
    versions = {str(a.version) for a in manifest.manifest.archives if a.package == "cuda_nvcc"}
    return versions.pop() if len(versions) == 1 else None


def _compiler_bounds(release: NvccRelease) -> str:
    return ", ".join(
        f"{compiler} {span(answer.min, answer.max)}"
        for compiler, answer in sorted(release.compilers.items())
        if isinstance(answer, CompilerRange)
    )


def _capability_bounds(known: KnownGpus) -> str:
    return span(min(known.families), max(known.families).base)


def _follows(release: NvccRelease, policy: NvccPolicy) -> bool:
    """Check if an entry's lower bounds and glibc match the current policy."""
    if policy.glibc is not None:
        glibc = release.glibc
        if glibc is None or not (glibc.clashes or glibc.newest == policy.glibc.newest):
            return False
    for compiler, answer in release.compilers.items():
        if not isinstance(answer, CompilerRange):
            continue
        bound, document = policy.lower_bounds.get(compiler), answer.documented_by
        if document is not None:
            stated = answer.min, document.reference
            if bound is None or (bound.min, bound.reference) != stated:
                return False
        elif bound is not None and (answer.min is None or answer.min < bound.min):
            return False
    return True


def _diff(before: bytes, after: bytes, name: str) -> Iterator[str]:
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
