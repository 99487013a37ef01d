"""process-manifests: inspect archives and write feature files."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from cudaredist.commands.process.feature_file import (
    EXCLUDED,
    ArchiveItem,
    Document,
    FeatureFile,
    checked_bytes,
    features_of,
    known_features,
)
from cudaredist.commands.process.options import ProcessOptions
from cudaredist.commands.process.report import ArchiveOutcome, ArchiveStatus, ProcessReport
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    CudaRedistError,
    IncompleteError,
    InvalidFileError,
    StoppedError,
)
from cudaredist.features.facts import Facts
from cudaredist.features.legacy import legacy_json
from cudaredist.features.wheel_notes import unusual_notes
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.features import Features
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.outcomes import FeatureOutcome
from cudaredist.formats.report import exit_code_of
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version, sha256_of
from cudaredist.progress import size_words
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import FILES_KIND
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.targets import LocalManifest, LocalManifests
from cudaredist.tasks import run_tasks
from cudaredist.words import plural

_NO_HASH = "the manifest states no hash"
_BEYOND = "beyond --max-download"
_UNKNOWN_SIZE = "of unknown size, left out because of --max-download"
UNREACHED = "the run was stopped before"
FAILED = "failed: "
"""The beginning of reasons for archives that a later run may examine."""
_NOT_READ = "not read because nothing is written"
_INCOMPLETE = frozenset({_NO_HASH, _BEYOND, _UNKNOWN_SIZE})

Engine: TypeAlias = Callable[["FeatureRun", Sequence["Job"]], None]
"""Runs all jobs, and reports each result to the run as soon as it is known."""


@dataclass(slots=True, kw_only=True)
class Job:
    """An archive to inspect, for all manifests that list it."""

    request: ArchiveRequest
    users: list[tuple[FeatureFile, ArchiveItem]]

    def add(self, file: FeatureFile, item: ArchiveItem) -> None:
        """Add a manifest that lists the archive."""
        archive, request = item.archive, self.request
        self.users.append((file, item))
        self.request = request._replace(
            paths=tuple(dict.fromkeys([*request.paths, *file.source.paths(archive)])),
            # If two manifests state different sizes, only the hash is verified.
            size=request.size if request.size == archive.size else None,
        )

    def mark(
        self,
        status: ArchiveStatus,
        reason: str | None = None,
        *,
        error: ErrorReport | None = None,
        features: Document | None = None,
    ) -> None:
        """Set the state of the archive in all manifests."""
        for _, item in self.users:
            item.status, item.reason, item.error, item.features = status, reason, error, features


@dataclass(kw_only=True)
class FeatureRun:
    """One run of process-manifests."""

    manifests: LocalManifests
    service: ArchiveService
    cache: Cache
    options: ProcessOptions = field(default_factory=ProcessOptions)
    max_download: int | None = None
    """The limit of bytes to fetch. With a limit, the smallest archives are selected first."""
    engine: Engine | None = None
    announce: Callable[[str], None] = lambda _: None
    """Called with a summary of the work before anything is fetched."""
    _files: list[FeatureFile] = field(default_factory=list)
    _outcomes: dict[tuple[str, Version], FeatureOutcome] = field(default_factory=dict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._filter, self._may_write = self.options.archives.filter, not self.options.check

    def run(self) -> ProcessReport:
        """Inspect unknown archives, and write a feature file per manifest.

        Finished work is kept, even if Ctrl-C or --fail-fast ends the run. Raises `UnknownNameError`
        if the filter has a name that matches no archive.
        """
        jobs = self._plan()
        try:
            if jobs and self._may_write:
                self.cache.sweep()
                self.service.expect([job.request.size for job in jobs])
                (self.engine or run_locally)(self, jobs)
        finally:
            for file in self._files:
                if file.waiting:
                    self._write(file)
        return self._report()

    # -- the plan

    def _plan(self) -> list[Job]:
        """Return the archives to inspect, largest first.

        Writes the feature files that need no inspection.
        """
        readable, broken = self.manifests.readable, self.manifests.broken
        if not broken:
            # With an unreadable manifest, this check could refuse a name that is in it.
            self._filter.check(a for manifest in readable for a in manifest.manifest.archives)
        for outcome in broken:
            self._outcomes[outcome.redist, Version.parse(outcome.release)] = outcome
        jobs: dict[str, Job] = {}
        self._files = [self._file(manifest, jobs) for manifest in readable]
        if self._may_write:
            requests = self.service.sized([job.request for job in jobs.values()])
            for job, request in zip(jobs.values(), requests, strict=True):
                job.request = request
        selection = self._within_budget(list(jobs.values()))
        self._announce(selection)
        for job in selection:
            for file, _ in job.users:
                file.waiting += 1
        for file in self._files:
            if not file.waiting and file.key not in self._outcomes:
                self._write(file)
        return selection

    def _file(self, manifest: LocalManifest, jobs: dict[str, Job]) -> FeatureFile:
        file = FeatureFile(source=manifest)
        archives = manifest.manifest.archives
        if self._is_done(file):
            file.items = [ArchiveItem(archive=archive, status="known") for archive in archives]
        else:
            file.items = [self._item(file, archive, jobs) for archive in archives]
            if all(item.status != "would-examine" for item in file.items):
                self._write(file)
            file.forget()
        return file

    def _announce(self, selection: Sequence[Job]) -> None:
        known = {
            file.source.key(item.archive): item.archive.size or 0
            for file in self._files
            for item in file.items
            if item.status == "known"
        }
        total = size_words(sum(job.request.size or 0 for job in selection))
        count = plural(len(selection), "archive")
        unknown = sum(job.request.size is None for job in selection)
        sizes = f"{total}, {unknown:,} of unknown size" if unknown else total
        self.announce(f"{count} to read, {sizes}; {size_words(sum(known.values()))} already known")

    def _is_done(self, file: FeatureFile) -> bool:
        """Check if the existing feature file is complete and unchanged."""
        sha256 = self.cache.get(FILES_KIND, file.source.sha256)
        if sha256 is None or self.options.legacy or self.options.fill_cache:
            return False
        data = file.read()
        return data is not None and sha256_of(data).encode() == sha256

    def _item(self, file: FeatureFile, archive: Archive, jobs: dict[str, Job]) -> ArchiveItem:
        """Return an archive's item, and add a job if necessary."""
        item = ArchiveItem(archive=archive, status="known")
        excluding_option = self._filter.excluding(archive)
        item.features = known_features(self.cache, archive.sha256)
        if item.features is not None:
            return item
        # Archives without a hash are never cached.
        can_be_cached = archive.sha256 is not None
        fills_cache = self.options.fill_cache and can_be_cached and excluding_option is None
        if not fills_cache and self._is_in_file(file, item):
            return item
        if excluding_option is not None:
            item.status, item.reason = "skipped", f"{EXCLUDED}{excluding_option}"
        elif archive.sha256 is None and not self.options.allow_unverified:
            item.status, item.reason = "skipped", _NO_HASH
        else:
            key = file.source.key(archive)
            if key not in jobs:
                jobs[key] = Job(request=file.source.request(archive), users=[])
            jobs[key].add(file, item)
            item.status = "would-examine"
            item.reason = UNREACHED if self._may_write else _NOT_READ
        return item

    def _is_in_file(self, file: FeatureFile, item: ArchiveItem) -> bool:
        """Check if the existing feature file has an archive's features."""
        # If the entries are needed to write the file, an error is raised again there.
        with contextlib.suppress(CudaRedistError):
            previous = None if self.options.legacy else file.earlier_entry(item)
            return previous is not None and previous["status"] == "examined"
        return False

    def _within_budget(self, jobs: list[Job]) -> list[Job]:
        """Return the archives within --max-download, largest first.

        The smallest archives are selected first. Those in the cache do not count.
        """
        jobs.sort(key=lambda job: (job.request.size or 0, job.request.name))
        selection: list[Job] = []
        budget = self.max_download
        for job in jobs:
            if budget is not None and self.service.kept_at(job.request) is None:
                size = job.request.size
                if size is None:
                    job.mark("skipped", _UNKNOWN_SIZE)
                    continue
                if size > budget:
                    job.mark("skipped", _BEYOND)
                    continue
                budget -= size
            selection.append(job)
        selection.reverse()
        return selection

    # -- results, reported by an engine from any thread

    def settle(self, job: Job, answer: Facts | CudaRedistError | ErrorReport) -> None:
        """Store an archive's features or failure, and write complete feature files.

        With --fail-fast, a failure stops the run.
        """
        try:
            if not isinstance(answer, Facts):
                self._fail(job, ErrorReport.of(answer))
            else:
                job.mark("examined", features=features_of(answer))
        except InvalidFileError as error:
            self._fail(job, ErrorReport.of(error))
        complete = []
        with self._mutex:
            for file, _ in job.users:
                file.waiting -= 1
                if not file.waiting:
                    complete.append(file)
        for file in complete:
            self._write(file)

    def _fail(self, job: Job, error: ErrorReport) -> None:
        is_stopped = error.kind == StoppedError.kind
        job.mark("failed", UNREACHED if is_stopped else f"{FAILED}{error.kind}", error=error)
        if not self.options.keep_going:
            self.service.stop.set()

    # -- feature files

    def _write(self, file: FeatureFile) -> None:
        """Write a manifest's feature file, and record the outcome."""
        statuses = Counter(item.status for item in file.items)
        error: ErrorReport | None = None
        status: ManifestStatus = "failed"
        examined, notes = 0, None
        try:
            status, examined, notes = self._write_if_changed(file, statuses)
        except CudaRedistError as failure:
            error = ErrorReport.of(failure)
        redist, release = file.key
        self._outcomes[file.key] = FeatureOutcome(
            redist=redist,
            release=str(release),
            status=status,
            archives=len(file.items),
            examined=examined,
            failed=statuses["failed"],
            skipped=statuses["skipped"],
            notes=notes,
            warnings=file.source.warnings,
            error=error,
        )
        file.forget()

    def _write_if_changed(
        self, file: FeatureFile, statuses: Counter[ArchiveStatus]
    ) -> tuple[ManifestStatus, int, int | None]:
        """Write a feature file if it changed.

        Returns the status, the number of archives with features, and that of notes on unusual
        contents, None if a complete feature file was not read.
        """
        if self._is_done(file):
            return "unchanged", len(file.items), None
        before = file.read()
        document = file.document(self.cache, is_new=self.options.legacy)
        packages = document["packages"].values()
        entries = [entry for package in packages for entry in package["archives"]]
        examined = sum(entry["status"] == "examined" for entry in entries)
        if not examined and before is None:
            if statuses["failed"]:
                raise IncompleteError("none of its archives could be examined")
            return self._status(statuses, is_changed=False), 0, 0
        data = checked_bytes(document)
        is_whole = examined == len(entries) and all(entry["sha256"] for entry in entries)
        sha256 = sha256_of(data)
        if self.options.legacy:
            data = legacy_json(Features.model_validate_json(data), before)
        is_changed = data != before
        if is_changed and self._may_write:
            file.source.target.features.write(file.source.label, data)
        if is_whole and not self.options.legacy and (self._may_write or not is_changed):
            self.cache.put(FILES_KIND, file.source.sha256, sha256.encode())
        notes = sum(len(unusual_notes(entry.get("notes", ()))) for entry in entries)
        return self._status(statuses, is_changed=is_changed), examined, notes

    def _status(self, statuses: Counter[ArchiveStatus], *, is_changed: bool) -> ManifestStatus:
        if self._may_write:
            return "written" if is_changed else "unchanged"
        return "would-write" if is_changed or statuses["would-examine"] else "unchanged"

    def _report(self) -> ProcessReport:
        outcomes = tuple(outcome for _, outcome in sorted(self._outcomes.items()))
        archives = tuple(self._archive_outcomes())
        is_incomplete = any(a.status == "failed" or a.reason in _INCOMPLETE for a in archives)
        would_write = any(outcome.status == "would-write" for outcome in outcomes)
        return ProcessReport(
            manifests=outcomes,
            archives=archives,
            fetched_bytes=self.service.fetched,
            exit_code=exit_code_of(
                [*outcomes, *archives],
                EXIT_INCOMPLETE if is_incomplete else EXIT_OK,
                EXIT_FINDINGS if would_write else EXIT_OK,
            ),
        )

    def _archive_outcomes(self) -> Iterator[ArchiveOutcome]:
        for file in self._files:
            for item in file.items:
                yield ArchiveOutcome.of(
                    file.source.target.redist.name,
                    file.source.label,
                    item.archive,
                    size=item.archive.size,
                    sha256=item.archive.sha256,
                    status=item.status,
                    reason=None if item.status == "would-examine" else item.reason,
                    error=item.error,
                )


def run_locally(run: FeatureRun, jobs: Sequence[Job]) -> None:
    """Inspect archives with threads of this process.

    Threads are enough, because hashing and decompression release the interpreter's lock.
    """
    service = run.service
    run_tasks([partial(_inspect, run, job) for job in jobs], service.threads, service.stop)


def _inspect(run: FeatureRun, job: Job) -> None:
    answer: Facts | CudaRedistError
    try:
        answer = run.service.examine(job.request).facts
    except CudaRedistError as error:
        answer = error
    run.settle(job, answer)
