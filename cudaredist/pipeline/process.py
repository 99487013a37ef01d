"""process-manifests: every archive looked into, and what it provides written down."""

import threading
from collections.abc import Callable, Iterator, Sequence
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
from cudaredist.pipeline.examine import Examination, Wanted
from cudaredist.pipeline.plan import (
    EXCLUDED,
    FACTS_KIND,
    Document,
    FeatureTarget,
    Filter,
    Subject,
    known_before,
    read_existing,
    recalled,
    remember_features,
)
from cudaredist.pipeline.selection import Selection
from cudaredist.pipeline.tasks import Task, run_tasks
from cudaredist.pipeline.upstream import error_report, judge_manifest
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
_UNREACHED = "the run was stopped before"
_NOT_READ = "not read without leave to write"

Engine: TypeAlias = Callable[["FeatureRun", Sequence["Job"]], None]
"""Works on all jobs, and tells the run of each result as it is known."""


@dataclass(slots=True, kw_only=True)
class Job:
    """One archive to be looked into, for all manifests that name it."""

    wanted: Wanted
    users: list[tuple[Subject, Archive]]
    key: str


@dataclass(kw_only=True)
class FeatureRun:
    """One run of process-manifests."""

    sources: SourceChain
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
    _statuses: dict[str, ArchiveStatus] = field(default_factory=dict)
    _errors: dict[str, ErrorReport] = field(default_factory=dict)
    _fetched: int = 0
    _unfinished: int = 0
    _waiting: dict[int, int] = field(default_factory=dict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> ProcessReport:
        """Look into every archive that is not known yet, and write a feature file per manifest.

        What was finished stays finished, also where Ctrl-C or `fail_fast` ends the run. Raises
        `UsageError` where nothing is held, and `UnknownNameError` for names no archive has.
        """
        self.read_manifests()
        jobs = self._plan()
        self._unfinished = len(jobs)
        self._waiting = {id(subject): 0 for subject in self._subjects}
        for job in jobs:
            for subject, _ in job.users:
                self._waiting[id(subject)] += 1
        try:
            for subject in self._subjects:
                if not self._waiting[id(subject)]:
                    self._write(subject)
            if jobs and self.write:
                self.progress.expect(sum(job.wanted.size or 0 for job in jobs))
                (self.engine or run_locally)(self, jobs)
        finally:
            for subject in self._subjects:
                if self._waiting[id(subject)]:
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
        self.filter.check(
            archive for subject in self._subjects for archive in subject.manifest.archives
        )
        return self._subjects

    def _subject(self, target: FeatureTarget, label: Version) -> Subject:
        data = target.manifests.read(label)
        if data is None:
            raise IncompleteError(f"{target.manifests.place(label)}: gone meanwhile")
        manifest, warnings = judge_manifest(data, label, target.redist, strict=self.strict)
        existing = target.features.read(label)
        return Subject(
            target=target,
            label=label,
            manifest=manifest,
            warnings=first_of([str(warning) for warning in warnings]),
            manifest_sha256=sha256_of(data),
            existing=read_existing(existing),
            existing_data=existing,
        )

    def _plan(self) -> list[Job]:
        """Recall what is known and return what is not, largest first."""
        jobs: dict[str, Job] = {}
        known: dict[str, Document] = {}
        for subject in self._subjects:
            known |= known_before(subject.existing)
        known_bytes = 0
        for subject in self._subjects:
            for archive in subject.manifest.archives:
                key = subject.key(archive)
                reason = self._reason_to_skip(archive)
                if reason is not None:
                    subject.reasons[key] = reason
                elif key in jobs:
                    jobs[key].users.append((subject, archive))
                elif (features := recalled(self.cache, archive.sha256) or known.get(key)) is None:
                    users = [(subject, archive)]
                    jobs[key] = Job(wanted=subject.wanted(archive), users=users, key=key)
                else:
                    known[key] = subject.found[key] = features
                    known_bytes += archive.size or 0
        chosen = self._within_budget(list(jobs.values()))
        total = sum(job.wanted.size or 0 for job in chosen)
        self.announce(
            f"{len(chosen):,} archives to read, {_size(total)}; {_size(known_bytes)} known already"
        )
        return chosen

    def _reason_to_skip(self, archive: Archive) -> str | None:
        option = self.filter.excluding(archive)
        if option is not None:
            return f"{EXCLUDED}{option}"
        if archive.sha256 is None and not self.allow_unverified:
            return _NO_HASH
        return None

    def _within_budget(self, jobs: list[Job]) -> list[Job]:
        jobs.sort(key=lambda job: (job.wanted.size or 0, job.key))
        chosen, left = [], self.max_download
        for job in jobs:
            size = job.wanted.size or 0
            if left is not None and size > left:
                self._skip(job, _BEYOND)
                continue
            if left is not None:
                left -= size
            for subject, _ in job.users:
                subject.reasons[job.key] = _UNREACHED if self.write else _NOT_READ
            chosen.append(job)
        return chosen[::-1]

    def _skip(self, job: Job, reason: str) -> None:
        for subject, _ in job.users:
            subject.reasons[job.key] = reason
        self._statuses[job.key] = "skipped"

    # -- results, told by an engine from any thread

    def examination(self, job: Job, advance: Callable[[int], None]) -> Examination:
        """Return how this machine looks into an archive; the last ones get threads to spare."""
        wanted = job.wanted
        keep_at = None
        if wanted.sha256 is not None:
            place = self.cache.archive_path(wanted.sha256, wanted.suffix)
            keep_at = place if self.keep_archives or place.exists() else None
        return Examination(
            sources=self.sources,
            advance=advance,
            keep_at=keep_at,
            threads=max(1, self.jobs // max(1, self._unfinished)),
        )

    def succeeded(self, job: Job, facts: Facts) -> None:
        """Keep what was read; every manifest that needed nothing else is written."""
        sha256 = job.wanted.sha256
        if sha256 is not None:
            self.cache.put(FACTS_KIND, sha256, facts_to_bytes(facts))
        features = remember_features(self.cache, sha256, derive(facts))
        with self._mutex:
            self._statuses[job.key] = "examined"
            self._fetched += job.wanted.size or 0
        for subject, _ in job.users:
            subject.found[job.key] = features
        self._finish(job)

    def failed(self, job: Job, error: CudaRedistError | ErrorReport) -> None:
        """Note why an archive could not be examined; the others go on unless asked otherwise."""
        report = error_report(error) if isinstance(error, CudaRedistError) else error
        stopped = report.kind == StoppedError.kind
        with self._mutex:
            self._statuses[job.key] = "failed"
            self._errors[job.key] = report
        for subject, _ in job.users:
            subject.reasons[job.key] = _UNREACHED if stopped else f"failed: {report.kind}"
        if self.fail_fast:
            self.stop.set()
        self._finish(job)

    def _finish(self, job: Job) -> None:
        complete = []
        with self._mutex:
            self._unfinished -= 1
            for subject, _ in job.users:
                self._waiting[id(subject)] -= 1
                if not self._waiting[id(subject)]:
                    complete.append(subject)
        for subject in complete:
            self._write(subject)

    # -- feature files

    def _write(self, subject: Subject) -> None:
        """Write a manifest's feature file; what stands in the way becomes the outcome."""
        key = (subject.target.redist.name, subject.label)
        archives = list(subject.manifest.archives)
        counts = [self._status(subject, archive) for archive in archives]
        error: ErrorReport | None = None
        status: ManifestStatus = "written"
        try:
            if not subject.found and "failed" in counts:
                raise IncompleteError(f"{subject.name}: none of its archives could be examined")
            data = subject.to_bytes()
            if self.legacy:
                data = legacy_json(Features.model_validate_json(data))
            would = any(s == "would-examine" for s in counts)
            if data == subject.existing_data and not would:
                status = "unchanged"
            elif not self.write:
                status = "would-write"
            else:
                subject.target.features.write(subject.label, data)
        except CudaRedistError as failure:
            status, error = "failed", error_report(failure)
        self._outcomes[key] = FeatureOutcome(
            redist=subject.target.redist.name,
            label=str(subject.label),
            status=status,
            archives=len(archives),
            examined=sum(s in {"examined", "known"} for s in counts),
            failed=counts.count("failed"),
            skipped=counts.count("skipped"),
            warnings=subject.warnings,
            error=error,
        )

    def _status(self, subject: Subject, archive: Archive) -> ArchiveStatus:
        key = subject.key(archive)
        status = self._statuses.get(key)
        if status is not None:
            return status
        if key in subject.found:
            return "known"
        reason = subject.reasons[key]
        if reason == _NOT_READ:
            return "would-examine"
        return "failed" if reason == _UNREACHED else "skipped"

    def _report(self) -> ProcessReport:
        outcomes = sorted(self._outcomes.items())
        archives = tuple(self._archive_outcomes())
        codes = [o.error.exit_code for _, o in outcomes if o.error is not None]
        codes += [error.exit_code for error in self._errors.values()]
        if any(a.status == "failed" or a.reason in {_BEYOND, _NO_HASH} for a in archives):
            codes.append(EXIT_INCOMPLETE)
        if any(outcome.status == "would-write" for _, outcome in outcomes):
            codes.append(EXIT_FINDINGS)
        return ProcessReport(
            manifests=tuple(outcome for _, outcome in outcomes),
            archives=archives,
            fetched_bytes=self._fetched,
            exit_code=worst_exit_code(codes),
        )

    def _archive_outcomes(self) -> Iterator[ArchiveOutcome]:
        for subject in self._subjects:
            for archive in subject.manifest.archives:
                key = subject.key(archive)
                status = self._status(subject, archive)
                yield ArchiveOutcome(
                    **subject.place(archive).model_dump(),
                    sha256=archive.sha256,
                    status=status,
                    reason=subject.reasons.get(key) if status in {"skipped", "failed"} else None,
                    error=self._errors.get(key),
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
