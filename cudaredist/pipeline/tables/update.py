"""update-nvcc-compat and update-gpus: the two tables, made from one file of each CUDA release.

A release that fails keeps what the table has of it, and the others go on. Archives are read also
where nothing may be written, because only then a run can say what it would write.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from pydantic import ValidationError

from cudaredist.errors import (
    EXIT_FINDINGS,
    CudaRedistError,
    InvalidFileError,
    worst_exit_code,
)
from cudaredist.jsontext import canonical_json
from cudaredist.manifests.manifest_values import Archive
from cudaredist.pipeline.archives import ArchiveService
from cudaredist.pipeline.features.targets import LocalManifest, LocalManifests
from cudaredist.pipeline.tables.table_file import TableFile, archives_to_read, find_table_file
from cudaredist.pipeline.tables.table_registry import (
    GPU_TABLE,
    NVCC_TABLE,
    Table,
    read_gpu_policy,
    read_nvcc_policy,
)
from cudaredist.pipeline.tasks import Task, run_tasks
from cudaredist.primitives import Version
from cudaredist.progress import total_size
from cudaredist.reports.archive_reports import (
    ReleaseOutcome,
    ReleaseStatus,
    TableFinding,
    TableReport,
)
from cudaredist.reports.report import ErrorReport, ManifestStatus
from cudaredist.schema.base import OwnModel
from cudaredist.schema.registry import read_own_file, validation_problems
from cudaredist.schema.tables import (
    BinarySource,
    CompilerRange,
    HeaderSource,
    NvccPolicy,
    NvccRelease,
)
from cudaredist.store.data_folder import Store
from cudaredist.tables.gpus.gpu_table import KnownGpus, known_of_table, make_table
from cudaredist.tables.nvcc_compat.compilers import read_header
from cudaredist.tables.nvcc_compat.nvcc_table import findings as bound_findings
from cudaredist.tables.nvcc_compat.nvcc_table import hold_back, make_compat, make_release

_Made = TypeVar("_Made")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRun:
    """One run over the releases that a table is made from."""

    manifests: LocalManifests
    service: ArchiveService
    store: Store
    write: bool = True
    fail_fast: bool = False


def update_nvcc_table(
    run: TableRun, *, accept_changed: bool = False, accept_new: bool = False
) -> TableReport:
    """Bring the table of host compilers up to the releases of a run.

    Bounds that go down in a new release require `accept_new` or `accept_changed`. Bounds that
    changed for a release that the table has require `accept_changed`. Raises `InvalidFileError`
    for a broken table or policy.
    """
    store = run.store
    table, policy = NVCC_TABLE.read(store), read_nvcc_policy(store)
    held = {} if table is None else dict(table.releases)
    sources = {
        label: release.source
        for label, release in held.items()
        if isinstance(release.source, HeaderSource)
    }

    def make(manifest: LocalManifest, file: TableFile) -> NvccRelease:
        source = HeaderSource(
            channel=store.channel,
            package=file.archive.package,
            version=str(file.archive.version),
            archive_sha256=str(file.archive.sha256),
            path=file.path,
            file_sha256=file.extract.sha256,
        )
        return make_release(_nvcc_version(manifest), source, read_header(file.header), policy)

    current = {label for label in sources if _follows(held[label], policy)}
    work = _Work(run, NVCC_TABLE, sources, current.__contains__, make)
    work.do()
    compat = make_compat(held | work.made, policy)
    found = bound_findings(table, compat)
    held_back: AbstractSet[str] = frozenset()
    if not accept_changed:
        compat, held_back = hold_back(table, work.made, policy, accept_new=accept_new)
    for label in held_back & work.outcomes.keys():
        outcome = work.outcomes[label]
        work.outcomes[label] = outcome.model_copy(update={"status": "held-back"})
    return work.report(
        compat if held or work.made else None,
        [TableFinding(kind=f.kind, about=f.release, message=str(f)) for f in found],
        is_finding=bool(held_back) or (bool(found) and not run.write),
        held_back=sorted(held_back, key=Version.parse),
    )


def update_gpu_table(run: TableRun) -> TableReport:
    """Bring the table of capabilities up to the releases of a run, and to what policy says.

    Raises `InvalidFileError` for a broken table or policy.
    """
    store = run.store
    table, policy = GPU_TABLE.read(store), read_gpu_policy(store)
    known = {} if table is None else known_of_table(table)

    def make(_: LocalManifest, file: TableFile) -> KnownGpus:
        source = BinarySource(
            channel=store.channel,
            package=file.archive.package,
            archive_sha256=str(file.archive.sha256),
            path=file.path,
            file_sha256=file.extract.sha256,
        )
        return KnownGpus(source=source, families=file.families)

    sources = {} if table is None else table.sources
    work = _Work(run, GPU_TABLE, sources, sources.__contains__, make)
    work.do()
    known |= work.made
    gpus, found = make_table(known, policy)
    return work.report(
        gpus if known else None,
        [TableFinding(kind=f.kind, about=f.capability, message=f.message) for f in found],
        # What else is odd is so in NVIDIA's files, and is seen where the table changes by it.
        is_finding=not run.write and any(f.kind == "overlay-lacks" for f in found),
    )


class _Work(Generic[_Made]):
    """What a run makes of each release, and what became of it."""

    def __init__(
        self,
        run: TableRun,
        table: Table[OwnModel],
        sources: Mapping[str, HeaderSource | BinarySource],
        is_current: Callable[[str], bool],
        make: Callable[[LocalManifest, TableFile], _Made],
    ) -> None:
        self._run, self._store, self._table = run, run.store, table
        self._sources = sources
        """Where the table has each release from."""
        self._is_current = is_current
        """Whether what the table has of a release can stand if its archive is the same."""
        self._make = make
        self.made: dict[str, _Made] = {}
        """By label, what the table is to have; what it has already may be left out."""
        self.outcomes: dict[str, ReleaseOutcome] = {}

    def do(self) -> None:
        """Work on every release; what fails becomes its outcome."""
        manifests, service = self._run.manifests, self._run.service
        for broken in manifests.broken:
            self.outcomes[broken.release] = ReleaseOutcome(
                release=broken.release, status="failed", error=broken.error
            )
        plans = [(m, found) for m in manifests.readable if (found := self._attempt(m, self._plan))]
        sizes = [0 if service.known(a.sha256) else a.size for _, (a, *_) in plans]
        service.pending = len(plans)
        service.progress.expect(len(plans), total_size(sizes))
        tasks = [partial(self._release, manifest, archives) for manifest, archives in plans]
        run_tasks(tasks, service.jobs, service.stop)

    def _release(self, manifest: LocalManifest, archives: Sequence[Archive]) -> list[Task]:
        self._attempt(manifest, partial(self._read, archives=archives))
        return []

    def _attempt(
        self, manifest: LocalManifest, work: Callable[[LocalManifest], _Result]
    ) -> _Result | None:
        """Work on a release; a failure becomes its outcome."""
        try:
            return work(manifest)
        except CudaRedistError as error:
            label = str(manifest.label)
            self.outcomes[label] = ReleaseOutcome(
                release=label, status="failed", error=ErrorReport.of(error)
            )
            if self._run.fail_fast:
                self._run.service.stop.set()
        return None

    def _plan(self, manifest: LocalManifest) -> list[Archive]:
        """Return the archives to read for a release, in order; none if the table has it."""
        label = str(manifest.label)
        source = self._sources.get(label)
        if source is not None and (source.channel, self._store.channel) == ("redist", "wheels"):
            self.outcomes[label] = _outcome_of(label, "stands", source)
            return []
        held = source.archive_sha256 if source is not None and self._is_current(label) else None
        archives = archives_to_read(self._run.service, manifest, self._table, held)
        if not archives:
            self.outcomes[label] = _outcome_of(label, "known", source)
        return archives

    def _read(self, manifest: LocalManifest, archives: Sequence[Archive]) -> None:
        label = str(manifest.label)
        file = find_table_file(self._run.service, manifest, self._table, archives)
        try:
            self.made[label] = self._make(manifest, file)
        except ValidationError as error:
            what = f"entry of the table, for CUDA {label}"
            raise InvalidFileError(what, validation_problems(error)) from None
        self.outcomes[label] = ReleaseOutcome(
            release=label,
            status="read" if file.is_read else "known",
            package=file.archive.package,
            archive_sha256=file.archive.sha256,
        )

    def report(
        self,
        model: OwnModel | None,
        findings: Iterable[TableFinding],
        *,
        is_finding: bool,
        held_back: Iterable[str] = (),
    ) -> TableReport:
        """Write the table where it differs, and say what became of everything."""
        name = self._table.name
        before = self._store.read_table(name)
        status: ManifestStatus = "unchanged"
        diff: tuple[str, ...] = ()
        if model is not None:
            data = canonical_json(model.model_dump(mode="json"))
            read_own_file(data, type(model))
            diff = tuple(_diff(before or b"", data, self._store.table_path(name).name))
            if data != before:
                status = "written" if self._run.write else "would-write"
            if self._run.write:
                self._store.write_table(name, data)
        outcomes = [self.outcomes[label] for label in sorted(self.outcomes, key=Version.parse)]
        codes = [outcome.error.exit_code for outcome in outcomes if outcome.error is not None]
        if is_finding or status == "would-write":
            codes.append(EXIT_FINDINGS)
        return TableReport(
            command=self._table.command,
            table=self._store.table_path(name).name,
            status=status,
            releases=tuple(outcomes),
            findings=tuple(findings),
            held_back=tuple(held_back),
            diff=diff,
            archives_read=self._run.service.opened,
            fetched_bytes=self._run.service.fetched,
            exit_code=worst_exit_code(codes),
        )


def _outcome_of(
    label: str, status: ReleaseStatus, source: HeaderSource | BinarySource | None
) -> ReleaseOutcome:
    return ReleaseOutcome(
        release=label,
        status=status,
        package=source.package if source else None,
        archive_sha256=source.archive_sha256 if source else None,
    )


def _nvcc_version(manifest: LocalManifest) -> str | None:
    """Return the version of nvcc that a manifest names; None if it names several, or none."""
    versions = {str(a.version) for a in manifest.manifest.archives if a.package == "cuda_nvcc"}
    return versions.pop() if len(versions) == 1 else None


def _follows(release: NvccRelease, policy: NvccPolicy) -> bool:
    """Say whether the lower bounds of an entry are those that today's policy leads to."""
    for compiler, answer in release.compilers.items():
        if not isinstance(answer, CompilerRange):
            continue
        bound, stated = policy.lower_bounds.get(compiler), answer.documented_by
        if stated is not None:
            if bound is None or (bound.min, bound.reference) != (answer.min, stated.reference):
                return False
        elif bound is not None and (answer.min is None or answer.min < bound.min):
            return False
    return True


def _diff(before: bytes, after: bytes, name: str) -> Iterator[str]:
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
