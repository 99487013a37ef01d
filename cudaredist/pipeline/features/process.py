"""process-manifests: every archive looked into, and what it provides written down."""

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    CudaRedistError,
    IncompleteError,
    StoppedError,
    UsageError,
    worst_exit_code,
)
from cudaredist.features import Facts, derive, facts_to_bytes, legacy_json
from cudaredist.manifests import Archive
from cudaredist.pipeline.features.examine import Examination, Wanted
from cudaredist.pipeline.features.plan import (
    EXCLUDED,
    FACTS_KIND,
    FILES_KIND,
    Document,
    FeatureTarget,
    Filter,
    Item,
    Subject,
    checked_bytes,
    earlier_entries,
    features_in,
    identity,
    known_facts,
    recalled,
    remember_features,
)
from cudaredist.pipeline.manifests.upstream import error_report, judge_manifest
from cudaredist.pipeline.selection import Selection
from cudaredist.pipeline.tasks import Task, run_tasks
from cudaredist.primitives import Version, sha256_of
from cudaredist.reports import (
    ArchiveOutcome,
    ArchiveStatus,
    ErrorReport,
    FeatureOutcome,
    ManifestStatus,
    ProcessReport,
)
from cudaredist.schema import Features
from cudaredist.source import ByteProgress, NoByteProgress, SourceChain
from cudaredist.store import Cache, first_of

_NO_HASH = "the manifest states no hash"
_BEYOND = "beyond --max-download"
_UNKNOWN_SIZE = "of unknown size, which --max-download leaves out"
UNREACHED = "the run was stopped before"
FAILED = "failed: "
"""How the reasons begin for archives that a later run may get."""
_NOT_READ = "not read without leave to write"
_INCOMPLETE = frozenset({_NO_HASH, _BEYOND, _UNKNOWN_SIZE})

Engine: TypeAlias = Callable[["FeatureRun", Sequence["Job"]], None]
"""Works on all jobs, and tells the run of each result as it is known."""


@dataclass(slots=True, kw_only=True)
class Job:
    """One archive to be looked into, for all manifests that name it."""

    wanted: Wanted
    bases: tuple[str, ...]
    """The sources it comes from."""
    users: list[tuple[Subject, Item]]

    def add(self, subject: Subject, item: Item) -> None:
        """Let one more manifest use it; all places that manifests name are tried."""
        archive = item.archive
        wanted = self.wanted
        self.users.append((subject, item))
        self.wanted = wanted._replace(
            paths=tuple(dict.fromkeys([*wanted.paths, *subject.paths(archive)])),
            # Where two manifests disagree, the hash alone decides.
            size=wanted.size if wanted.size == archive.size else None,
        )


@dataclass(kw_only=True)
class FeatureRun:
    """One run of process-manifests."""

    chains: Mapping[tuple[str, ...], SourceChain]
    """The sources of every target, by its bases."""
    targets: Sequence[FeatureTarget]
    selection: Selection
    cache: Cache
    stop: threading.Event
    filter: Filter = field(default_factory=Filter)
    jobs: int = 1
    write: bool = True
    """Whether archives are read and files written; if not, outcomes say what would be."""
    legacy: bool = False
    keep_archives: bool = False
    fill_cache: bool = False
    """Whether archives that feature files know are read too, where the cache does not know them."""
    allow_unverified: bool = False
    max_download: int | None = None
    """Bytes that may be fetched in all; the smallest archives go first then."""
    strict: bool = False
    fail_fast: bool = False
    engine: Engine | None = None
    progress: ByteProgress = field(default_factory=NoByteProgress)
    announce: Callable[[str], None] = lambda _: None
    """Told, before anything is fetched, how much there is to do."""
    _subjects: list[Subject] = field(default_factory=list)
    _outcomes: dict[tuple[str, Version], FeatureOutcome] = field(default_factory=dict)
    _fetched: int = 0
    _unfinished: int = 0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> ProcessReport:
        """Look into every archive that is not known yet, and write a feature file per manifest.

        What was finished stays finished, also where Ctrl-C or `fail_fast` ends the run. Raises
        `UsageError` where nothing is held, and `UnknownNameError` for names no archive has.
        """
        jobs = self._plan()
        self._unfinished = len(jobs)
        try:
            if jobs and self.write:
                self.cache.sweep()
                self.progress.expect(sum(job.wanted.size or 0 for job in jobs))
                (self.engine or run_locally)(self, jobs)
        finally:
            for subject in self._subjects:
                if subject.waiting:
                    self._write(subject)
        return self._report()

    # -- what there is to do

    def read_manifests(self) -> list[Subject]:
        """Read the manifests chosen; what cannot be read becomes an outcome.

        Raises `UsageError` where nothing is held, and `UnknownNameError` for names no archive has.
        """
        held = {target.redist.name: target.manifests.labels() for target in self.targets}
        if not any(held.values()):
            raise UsageError(
                "no manifest is held",
                hint="cudaredist download-manifests fetches the newest of each redistributable",
            )
        present = {str(label) for labels in held.values() for label in labels}
        for text in self.selection.named:
            if text not in present:
                raise UsageError(
                    f"no manifest {text} is held",
                    hint=f"cudaredist download-manifests --version {text} fetches it",
                )
        for target in self.targets:
            for label in self.selection.of(held[target.redist.name]):
                try:
                    self._subjects.append(self._subject(target, label))
                except CudaRedistError as error:
                    self._outcomes[target.redist.name, label] = FeatureOutcome(
                        redist=target.redist.name,
                        label=str(label),
                        status="failed",
                        archives=0,
                        examined=0,
                        error=error_report(error),
                    )
        if not self._outcomes:
            # A manifest that cannot be read may be the one that has the name.
            self.filter.check(
                archive for subject in self._subjects for archive in subject.manifest.archives
            )
        return self._subjects

    @property
    def unread(self) -> tuple[FeatureOutcome, ...]:
        """The manifests that could not be read, once `read_manifests` was done."""
        return tuple(outcome for _, outcome in sorted(self._outcomes.items()))

    def _subject(self, target: FeatureTarget, label: Version) -> Subject:
        data = target.manifests.read(label)
        if data is None:
            raise IncompleteError(f"{target.manifests.place(label)}: gone meanwhile")
        manifest, warnings = judge_manifest(data, label, target.redist, strict=self.strict)
        return Subject(
            target=target,
            label=label,
            manifest=manifest,
            warnings=first_of([str(warning) for warning in warnings]),
            manifest_sha256=sha256_of(data),
        )

    def _plan(self) -> list[Job]:
        """Recall what is known, write what is known wholly, return what is not, largest first."""
        jobs: dict[str, Job] = {}
        known: dict[str, int] = {}
        for subject in self.read_manifests():
            if self._is_done(subject):
                subject.items = [
                    Item(archive=archive, status="known") for archive in subject.manifest.archives
                ]
            else:
                subject.items = [
                    self._item(subject, archive, jobs) for archive in subject.manifest.archives
                ]
            for item in subject.items:
                if item.status == "known":
                    known[subject.key(item.archive)] = item.archive.size or 0
        chosen = self._within_budget(list(jobs.values()))
        total = sum(job.wanted.size or 0 for job in chosen)
        count = f"{len(chosen):,} archive{'' if len(chosen) == 1 else 's'}"
        unknown = sum(job.wanted.size is None for job in chosen)
        sizes = f"{_size(total)}, {unknown:,} of unknown size" if unknown else _size(total)
        self.announce(f"{count} to read, {sizes}; {_size(sum(known.values()))} known already")
        for job in chosen:
            for subject, _ in job.users:
                subject.waiting += 1
        for subject in self._subjects:
            if not subject.waiting:
                self._write(subject)
        return chosen

    def _is_done(self, subject: Subject) -> bool:
        """Say whether the feature file that is there is, byte for byte, one that says it all."""
        made = self.cache.get(FILES_KIND, subject.manifest_sha256)
        if made is None or self.legacy or self.fill_cache:
            return False
        data = subject.read_file()
        return data is not None and sha256_of(data).encode() == made

    def _item(self, subject: Subject, archive: Archive, jobs: dict[str, Job]) -> Item:
        """Return what is known of an archive; where nothing is, it becomes a job."""
        item = Item(archive=archive, status="known")
        option = self.filter.excluding(archive)
        # What states no hash is in no cache.
        is_filling = self.fill_cache and archive.sha256 is not None
        known = known_facts if is_filling else recalled
        if known(self.cache, archive.sha256) is not None:
            return item
        if not is_filling or option is not None:
            found = self._in_file(subject, archive)
            if found is not None:
                item.features = found
                return item
        if option is not None:
            item.status, item.reason = "skipped", f"{EXCLUDED}{option}"
        elif archive.sha256 is None and not self.allow_unverified:
            item.status, item.reason = "skipped", _NO_HASH
        else:
            key = subject.key(archive)
            if key not in jobs:
                wanted = subject.wanted(archive)
                jobs[key] = Job(wanted=wanted, bases=subject.target.bases, users=[])
            jobs[key].add(subject, item)
            item.status = "would-examine"
            item.reason = UNREACHED if self.write else _NOT_READ
        return item

    def _in_file(self, subject: Subject, archive: Archive) -> Document | None:
        """Return what the feature file that is there knows of an archive."""
        if self.legacy:
            return None
        if subject.earlier is None:
            try:
                subject.earlier = earlier_entries(subject.read_file(), subject.name)
            except CudaRedistError:
                # Said when the file is to be written, if it matters then.
                subject.earlier = {}
        has_several = len(subject.versions_of(archive.package)) > 1
        entry = Item(archive=archive, status="known").entry(None, has_several=has_several)
        kept = subject.earlier.get(identity(archive.package, entry))
        if kept is None or kept["status"] != "examined":
            return None
        return features_in(kept)

    def _within_budget(self, jobs: list[Job]) -> list[Job]:
        jobs.sort(key=lambda job: (job.wanted.size or 0, job.wanted.name))
        chosen, left = [], self.max_download
        for job in jobs:
            if left is not None and not self._is_kept(job.wanted):
                size = job.wanted.size
                if size is None or size > left:
                    for _, item in job.users:
                        item.status = "skipped"
                        item.reason = _UNKNOWN_SIZE if size is None else _BEYOND
                    continue
                left -= size
            chosen.append(job)
        return chosen[::-1]

    def _is_kept(self, wanted: Wanted) -> bool:
        sha256 = wanted.sha256
        return sha256 is not None and self.cache.archive_path(sha256, wanted.suffix).exists()

    # -- results, told by an engine from any thread

    def examination(self, job: Job, advance: Callable[[int], None]) -> Examination:
        """Return how this machine looks into an archive; the last ones get threads to spare."""
        wanted = job.wanted
        keep_at = None
        if wanted.sha256 is not None and (self.keep_archives or self._is_kept(wanted)):
            keep_at = self.cache.archive_path(wanted.sha256, wanted.suffix)
        return Examination(
            sources=self.chains[job.bases],
            advance=advance,
            fetched=self.count_fetched,
            keep_at=keep_at,
            threads=max(1, self.jobs // max(1, self._unfinished)),
        )

    def count_fetched(self, size: int) -> None:
        """Count bytes that came from a source."""
        with self._mutex:
            self._fetched += size

    def succeeded(self, job: Job, facts: Facts) -> None:
        """Keep what was read; every manifest that needed nothing else is written."""
        sha256 = job.wanted.sha256
        if sha256 is not None:
            self.cache.put(FACTS_KIND, sha256, facts_to_bytes(facts))
        features = remember_features(self.cache, sha256, derive(facts))
        for _, item in job.users:
            item.features = features
            item.status, item.reason = "examined", None
        self._finish(job)

    def failed(self, job: Job, error: CudaRedistError | ErrorReport) -> None:
        """Note why an archive could not be examined; the others go on unless asked otherwise."""
        report = error_report(error) if isinstance(error, CudaRedistError) else error
        is_stopped = report.kind == StoppedError.kind
        for _, item in job.users:
            item.status, item.error = "failed", report
            item.reason = UNREACHED if is_stopped else f"{FAILED}{report.kind}"
        if self.fail_fast:
            self.stop.set()
        self._finish(job)

    def _finish(self, job: Job) -> None:
        complete = []
        with self._mutex:
            self._unfinished -= 1
            for subject, _ in job.users:
                subject.waiting -= 1
                if not subject.waiting:
                    complete.append(subject)
        for subject in complete:
            self._write(subject)

    # -- feature files

    def _write(self, subject: Subject) -> None:
        """Write a manifest's feature file; what stands in the way becomes the outcome."""
        statuses = Counter(item.status for item in subject.items)
        examined = len(subject.items)
        error: ErrorReport | None = None
        status: ManifestStatus = "unchanged"
        try:
            if not self._is_done(subject):
                status, examined = self._written(subject, statuses)
        except CudaRedistError as failure:
            status, error, examined = "failed", error_report(failure), 0
        self._outcomes[subject.target.redist.name, subject.label] = FeatureOutcome(
            redist=subject.target.redist.name,
            label=str(subject.label),
            status=status,
            archives=len(subject.items),
            examined=examined,
            failed=statuses["failed"],
            skipped=statuses["skipped"],
            warnings=subject.warnings,
            error=error,
        )
        for item in subject.items:
            # It stands in the cache, or in the file, and memory must not grow with the manifests.
            if item.archive.sha256 is not None:
                item.features = None
        subject.earlier = None

    def _written(
        self, subject: Subject, statuses: Counter[ArchiveStatus]
    ) -> tuple[ManifestStatus, int]:
        """Put a feature file where it differs; return that, and how many archives it describes."""
        before = subject.read_file()

        @functools.cache
        def earlier() -> dict[object, Document]:
            return {} if self.legacy else earlier_entries(before, subject.name)

        document = subject.document(self.cache, earlier)
        entries = [e for p in document["packages"].values() for e in p["archives"]]
        examined = sum(entry["status"] == "examined" for entry in entries)
        if not examined and before is None:
            if statuses["failed"]:
                raise IncompleteError("none of its archives could be examined")
            return "unchanged" if self.write or not statuses["would-examine"] else "would-write", 0
        data = checked_bytes(document)
        is_whole = examined == len(entries) and all(entry["sha256"] for entry in entries)
        made = sha256_of(data)
        if self.legacy:
            data = legacy_json(Features.model_validate_json(data), before)
        if data != before and self.write:
            subject.target.features.write(subject.label, data)
        if is_whole and not self.legacy and (self.write or data == before):
            self.cache.put(FILES_KIND, subject.manifest_sha256, made.encode())
        if not self.write and (data != before or statuses["would-examine"]):
            return "would-write", examined
        return ("unchanged" if data == before else "written"), examined

    def _report(self) -> ProcessReport:
        outcomes = self.unread
        archives = tuple(self._archive_outcomes())
        codes = [outcome.error.exit_code for outcome in outcomes if outcome.error is not None]
        codes += [archive.error.exit_code for archive in archives if archive.error is not None]
        if any(archive.status == "failed" or archive.reason in _INCOMPLETE for archive in archives):
            codes.append(EXIT_INCOMPLETE)
        if any(outcome.status == "would-write" for outcome in outcomes):
            codes.append(EXIT_FINDINGS)
        return ProcessReport(
            manifests=outcomes,
            archives=archives,
            fetched_bytes=self._fetched,
            exit_code=worst_exit_code(codes),
        )

    def _archive_outcomes(self) -> Iterator[ArchiveOutcome]:
        for subject in self._subjects:
            for item in subject.items:
                status = item.status
                if status == "would-examine" and self.write:
                    status = "failed"
                yield ArchiveOutcome(
                    **subject.place(item.archive).model_dump(),
                    sha256=item.archive.sha256,
                    status=status,
                    reason=item.reason if status in {"skipped", "failed"} else None,
                    error=item.error,
                )


def run_locally(run: FeatureRun, jobs: Sequence[Job]) -> None:
    """Look into archives with threads of this process: the heavy work releases the interpreter."""
    run_tasks([partial(_work, run, job) for job in jobs], run.jobs, run.stop)


def _work(run: FeatureRun, job: Job) -> list[Task]:
    number = run.progress.begin(job.wanted.name, job.wanted.size)
    try:
        if run.stop.is_set():
            raise StoppedError
        examination = run.examination(job, partial(run.progress.advance, number))
        facts = examination.facts(job.wanted)
    except CudaRedistError as error:
        run.failed(job, error)
    else:
        run.succeeded(job, facts)
    finally:
        run.progress.end(number)
    return []


def _size(count: int) -> str:
    """Return a number of bytes for people."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:  # noqa: PLR2004 - a thousand is a thousand
        size /= 1000
        units.pop(0)
    return f"{count} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
