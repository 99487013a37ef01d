"""download-manifests: list, fetch, compare and store manifests."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from cudaredist.commands.download.report import DownloadReport, RedistOutcome
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    ContentError,
    CudaRedistError,
    EditedLocallyError,
    IncompleteError,
    ManifestChangedError,
    NotAtSourceError,
    WriteError,
)
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.lock import LockEntry
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.outcomes import ManifestOutcome
from cudaredist.formats.report import exit_code_of
from cudaredist.hints import again, command_line, server_line
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, find_release, sha256_of
from cudaredist.redists import Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import ManifestFolder, Store
from cudaredist.store.files import read_file
from cudaredist.store.selection import Selection, redist_at
from cudaredist.store.upstream import (
    UpstreamManifest,
    archive_hashes,
    describe_changes,
    fetch_manifest,
    fetch_nvidia_channel_manifest,
    nvidia_channel_moves,
    nvidia_channel_query,
    unknown_nvidia_channels,
)
from cudaredist.tasks import Task, Workers, raise_if_stopped, run_tasks

_WRITERS = 4
"""Threads that write manifests. More of them only wait for each other."""


@dataclass(frozen=True, slots=True)
class Target:
    """A redistributable to download, and the folder for its manifests."""

    redist: Redist
    folder: ManifestFolder
    is_explicit: bool
    """Whether the user named it. If so, its absence upstream is a failure."""
    recorded: Mapping[str, LockEntry] = field(default_factory=dict)
    """The lock's entries as they were before the run."""
    changed: dict[str, LockEntry] = field(default_factory=dict)
    """The lock's entries that the run added or changed."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The folders for a run's manifests."""

    targets: tuple[Target, ...]
    store: Store | None = None
    """The data folder with the lock. None: a plain folder without a lock."""
    has_lock: bool = False
    """Whether the data folder records downloads. Checkouts of nixpkgs have no lock."""
    adds_line_feed: bool = False
    """Whether manifests get a line feed at the end, as in nixpkgs."""

    @property
    def is_lock_changed(self) -> bool:
        """Whether the run added or changed lock entries."""
        return self.has_lock and any(target.changed for target in self.targets)

    def save_lock(self) -> None:
        """Record the changes in the lock."""
        if self.store is not None and self.has_lock:
            self.store.update_lock({target.redist.name: target.changed for target in self.targets})

    def entry(self, redist: str, label: Version) -> LockEntry | None:
        """Return the lock's entry of a release, with the changes of the run."""
        target = next(target for target in self.targets if target.redist.name == redist)
        return target.changed.get(str(label)) or target.recorded.get(str(label))

    def sweep(self) -> None:
        """Remove the temporary files of killed runs.

        The caller must have locked the folder.
        """
        if self.store is not None:
            self.store.sweep()
        for target in self.targets:
            target.folder.sweep()


def store_destination(
    store: Store,
    redists: Sequence[Redist],
    recorded: Mapping[str, Mapping[str, LockEntry]],
    *,
    is_explicit: bool,
) -> Destination:
    """Return a data folder as the destination. `recorded` has the entries of its lock.

    The folder of nixpkgs gets no lock, and its manifests end as those that it has.
    """
    targets = (
        Target(redist, store.manifests(redist.name), is_explicit, recorded.get(redist.name, {}))
        for redist in redists
    )
    return Destination(
        tuple(targets),
        store,
        has_lock=not store.is_of_nixpkgs or os.path.lexists(store.stored_lock_path),
        adds_line_feed=store.is_of_nixpkgs and _end_with_line_feed(store.manifest_paths()),
    )


def _end_with_line_feed(manifests: Sequence[Path]) -> bool:
    """Check if a manifest ends with a line feed, or if there is none."""
    return not manifests or any((read_file(path) or b"").endswith(b"\n") for path in manifests)


def folder_destination(url: str, folder: Path) -> Destination:
    """Return a plain folder as the destination for one address's manifests."""
    return Destination((Target(redist_at(url), ManifestFolder(folder), is_explicit=True),))


@dataclass
class ManifestDownload:
    """One run of download-manifests."""

    sources: SourceChain
    to: Destination
    selection: Selection
    cache: Cache
    workers: Workers
    """They share the stop event of the sources. An early end sets it, so that no thread waits."""
    _: KW_ONLY
    write: bool = True
    """Whether to write files. If not, outcomes report the files that would be written."""
    accept_changed: bool = False
    strict: bool = False
    fail_fast: bool = False
    replace_command: str | None = None
    """The command that replaces changed manifests. Default: it replaces one manifest only."""
    begin: Callable[[], object] = lambda: None
    """Called before the first writes, to create and lock the folder."""
    unwritten: dict[tuple[str, Version], UpstreamManifest] = field(default_factory=dict)
    """In a dry run, the manifests that would be written, by redistributable and label."""
    _redists: list[RedistOutcome] = field(default_factory=list)
    _manifests: list[ManifestOutcome] = field(default_factory=list)
    _errors: list[ErrorReport] = field(default_factory=list)
    _failures: set[ErrorReport] = field(default_factory=set)
    """Failures of NVIDIA's second server. What the usual server gave is kept."""
    _saving: threading.Lock = field(default_factory=threading.Lock)
    _is_locked: bool = False
    """Whether the folder is locked."""

    def __post_init__(self) -> None:
        """Create the writers, so that no connection waits for the disk."""
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="cudaredist-write")
        self._writes: list[Future[None]] = []
        self._unwritten = threading.Semaphore(2 * self.workers.jobs)
        """Limits the number of fetched manifests that wait to be written."""

    def run(self) -> DownloadReport:
        """Download the manifests and return an outcome for each.

        Finished manifests stay in place, even if Ctrl-C or `fail_fast` ends the run.
        """
        self.workers.progress.expect(len(self.to.targets))
        try:
            tasks = [partial(self._list, target) for target in self.to.targets]
            with self._writers:
                run_tasks(tasks, self.workers.jobs, self.workers.stop)
            for write in self._writes:
                write.result()
        finally:
            self._save()
        return self._report()

    def _save(self) -> None:
        """Save the lock, or add the failure to the report."""
        if self.write:
            with self._saving:
                self._errors.clear()
                try:
                    self.to.save_lock()
                except WriteError as error:
                    # The fetched manifests are in place and in the report. The next run records
                    # them.
                    self._errors.append(ErrorReport.of(error).about("lock"))

    def _list(self, target: Target) -> list[Task]:
        """List a redistributable upstream, and return the tasks that fetch it."""
        tasks: list[Task] = []
        try:
            raise_if_stopped(self.workers.stop)
            listing = self._listing(target)
        except CudaRedistError as error:
            outcome = self._unlisted(target, error)
        else:
            select = partial(Selection.of, labels=listing.labels, is_preview=listing.is_preview)
            moves = nvidia_channel_moves(target.recorded, listing)
            labels = sorted({*select(self.selection), *(move.label for move in moves)})
            tasks = [partial(self._fetch, target, label, listing) for label in labels]
            self._failures.update(map(ErrorReport.of, listing.failures))
            newest = select(Selection(pre=self.selection.pre))
            outcome = RedistOutcome(
                redist=target.redist.name,
                status="listed",
                source=listing.source,
                newest=str(newest[-1]) if newest else None,
                listed=len(listing.labels),
                gone=self._mark_gone(target, listing),
                channels=dict(listing.nvidia_channels),
                moved=tuple(move.text for move in moves),
            )
        self._redists.append(outcome)
        self.workers.progress.expect(len(tasks), None if tasks else 0)
        self._finish(is_failed=outcome.status == "failed")
        return tasks

    def _listing(self, target: Target) -> Listing:
        """List a redistributable upstream."""
        # These labels are searched for in all sources, not only in the first.
        labels = map(Version.parse, {*target.recorded, *self.selection.named})
        query = None
        if self.to.store is not None:
            query = nvidia_channel_query(
                self.to.store, target.redist, self.selection.nvidia_channels
            )
        return self.sources.listing(target.redist.manifest_folders, labels, query)

    def _unlisted(self, target: Target, error: CudaRedistError) -> RedistOutcome:
        is_failure = True
        if isinstance(error, NotAtSourceError):
            error = _with_redist_hint(error, target.redist)
            is_local = target.recorded or target.folder.is_there()
            # No server has the manifests that packagers write themselves.
            is_failure = target.is_explicit or bool(is_local and not target.redist.handwritten)
        status: Literal["failed", "absent"] = "failed" if is_failure else "absent"
        return RedistOutcome(redist=target.redist.name, status=status, error=ErrorReport.of(error))

    def _finish(self, *, is_failed: bool, size: int = 0) -> None:
        """Count an item as done."""
        if is_failed and self.fail_fast:
            self.workers.stop.set()
        self.workers.progress.done(size)

    def _mark_gone(self, target: Target, listing: Listing) -> tuple[str, ...]:
        """Update in the lock which labels upstream no longer lists.

        Return the labels that are newly marked as gone.
        """
        if not listing.is_complete:
            return ()
        labels = listing.labels
        newly_gone: list[str] = []
        for text, entry in target.recorded.items():
            is_gone = Version.parse(text) not in labels
            if is_gone != entry.gone:
                target.changed[text] = entry.model_copy(update={"gone": is_gone})
                if is_gone:
                    newly_gone.append(text)
        return tuple(sorted(newly_gone, key=Version.parse))

    def _fetch(self, target: Target, label: Version, listing: Listing) -> None:
        """Fetch one manifest and pass it to a writer, or record the failure."""
        try:
            raise_if_stopped(self.workers.stop)
            upstream, status = self._compare(target, label, listing)
        except CudaRedistError as error:
            self._record(target, label, "failed", error=ErrorReport.of(error))
        else:
            self._unwritten.acquire()
            self._writes.append(self._writers.submit(self._write, target, label, upstream, status))

    def _compare(
        self, target: Target, label: Version, listing: Listing
    ) -> tuple[UpstreamManifest, ManifestStatus]:
        """Fetch a manifest, and compare it with the lock and the local file."""
        was_locked = self._is_locked
        local = target.folder.read(label)
        entry = target.recorded.get(str(label))
        upstream = self._fetch_upstream(target, label, listing, local)
        if self.write and not was_locked:
            self.begin()
            self._is_locked = True
            # Before this run locked the folder, another one may have written the file.
            local = target.folder.read(label)
        is_recorded = entry is None or entry.sha256 == upstream.sha256
        if local == upstream.data + b"\n" and is_recorded:
            return upstream, "unchanged"  # nixpkgs' copy, with one more line feed
        local_sha256 = None if local is None else sha256_of(local)
        # Without an entry in the lock, the local file is the record.
        recorded = local_sha256 if entry is None else entry.sha256
        is_changed = recorded is not None and recorded != upstream.sha256
        is_edited = recorded is not None and local is not None and local != upstream.data
        is_unedited = recorded == local_sha256
        is_moved = is_changed and is_unedited and _is_moved(entry, local, upstream)
        # Nobody has compared this copy with the server before, so nothing changed there.
        is_first_comparison = entry is not None and entry.as_read and is_unedited
        is_expected = self.accept_changed or is_moved or is_first_comparison
        if (is_changed or is_edited) and not is_expected:
            error = ManifestChangedError if is_changed else EditedLocallyError
            raise error(self._redownload(target, label), describe_changes(local, upstream.data))
        if local == upstream.data:
            return upstream, "unchanged"
        return upstream, "written" if self.write else "would-write"

    def _fetch_upstream(
        self, target: Target, label: Version, listing: Listing, local: bytes | None
    ) -> UpstreamManifest:
        """Fetch a manifest from the server that it is to be read from.

        If both servers have the release, that is the usual one. If their archives differ, it is the
        recorded one, and a warning reports that.
        """
        release, entry = listing.releases.get(label), target.recorded.get(str(label))
        fetch_usual = partial(
            fetch_manifest,
            *(self.sources, self.cache, label, listing, local),
            redist=target.redist,
            strict=self.strict,
            whole=self.accept_changed,
        )
        if release is None:
            return fetch_usual()
        fetch_other = partial(
            fetch_nvidia_channel_manifest,
            *(self.sources, release, listing, local),
            redist=target.redist,
            strict=self.strict,
        )
        if label not in listing.folders:
            return fetch_other()
        usual = fetch_usual()
        try:
            other = fetch_other()
        except CudaRedistError as error:
            if entry is not None and entry.nvidia_channel is not None:
                raise  # the usual one would seem to be a change of the recorded one
            self._failures.add(ErrorReport.of(error).about(f"{target.redist.name} {label}"))
            return usual
        if archive_hashes(usual.data) == archive_hashes(other.data):
            return usual
        chosen = usual if entry is None or entry.nvidia_channel is None else other
        warning = (
            f"its archives differ in the channel {release.nvidia_channel}; kept {chosen.origin}"
        )
        return chosen._replace(warnings=(*chosen.warnings, warning))

    def _write(
        self, target: Target, label: Version, upstream: UpstreamManifest, status: ManifestStatus
    ) -> None:
        """Write a manifest while its connection already fetches the next one."""
        try:
            if status == "written":
                end = b"\n" if self.to.adds_line_feed else b""
                target.folder.write(label, upstream.data + end)
            elif status == "would-write":
                self.unwritten[target.redist.name, label] = upstream
        except WriteError as error:
            self._record(target, label, "failed", error=ErrorReport.of(error))
        else:
            entry = upstream.entry
            if entry != target.recorded.get(str(label)):
                target.changed[str(label)] = entry
                if str(label) in target.recorded:
                    # If the run is killed, the next one would refuse the accepted change.
                    self._save()
            # Doubts about an unchanged manifest are notes of `check`.
            warnings = upstream.warnings + (() if status == "unchanged" else upstream.doubts)
            about = {"sha256": entry.sha256, "size": entry.size, "warnings": warnings}
            self._record(target, label, status, source=upstream.source, **about)
        finally:
            self._unwritten.release()

    def _record(
        self, target: Target, label: Version, status: ManifestStatus, **about: object
    ) -> None:
        """Add a manifest's outcome."""
        fields = {"redist": target.redist.name, "release": str(label), "status": status}
        outcome = ManifestOutcome.model_validate(fields | about)
        self._manifests.append(outcome)
        self._finish(is_failed=status == "failed", size=outcome.size or 0)

    def _redownload(self, target: Target, label: Version) -> str:
        """Return the command that replaces one local manifest."""
        if self.replace_command is not None:
            return self.replace_command
        accept, store = "--replace", self.to.store
        if store is None:
            return again(f"{accept} --version", str(label), without=["--version"])
        about = {"redist": target.redist.name, "version": label}
        return command_line("download-manifests", accept, channel=store.channel, **about)

    def _report(self) -> DownloadReport:
        """Sort all outcomes, and add a failure for each unlisted release."""
        labels = [Version.parse(outcome.release) for outcome in self._manifests]
        redists = sorted(self._redists, key=lambda outcome: outcome.redist)
        listed = [outcome for outcome in redists if outcome.status == "listed"]
        nvidia_channels = {name for outcome in listed for name in outcome.channels}
        failures = sorted(self._failures, key=lambda error: error.message)
        if listed and not failures:
            failures += map(
                ErrorReport.of,
                unknown_nvidia_channels(self.selection.nvidia_channels, nvidia_channels),
            )
        codes = [error.exit_code for error in (*self._errors, *failures)]
        for text in self.selection.named:
            if listed and find_release(text, labels) is None:
                newest = {outcome.redist: outcome.newest for outcome in listed}
                error = not_listed(text, newest, self.to.store, pre=self.selection.pre)
                report = ErrorReport.of(error).changed(kind=NotAtSourceError.kind)
                redists_of = ", ".join(outcome.redist for outcome in listed)
                self._manifests.append(
                    ManifestOutcome(redist=redists_of, release=text, status="failed", error=report)
                )
        if all(outcome.status == "absent" for outcome in redists):
            codes.append(EXIT_INCOMPLETE)
        would_write = any(o.status == "would-write" for o in self._manifests)
        if not self.write and (would_write or self.to.is_lock_changed):
            codes.append(EXIT_FINDINGS)
        return DownloadReport(
            redists=tuple(redists),
            manifests=tuple(
                sorted(self._manifests, key=lambda o: (o.redist, Version.parse(o.release)))
            ),
            is_lock_changed=self.to.is_lock_changed,
            errors=(*self._errors, *failures),
            exit_code=exit_code_of(
                [*self._manifests, *(o for o in redists if o.status == "failed")], *codes
            ),
        )


def _with_redist_hint(error: NotAtSourceError, redist: Redist) -> NotAtSourceError:
    if error.hint is not None:
        return error
    hint = server_line("set --base-url to the address or folder that contains compute/")
    if redist.handwritten:
        hint = (
            f"NVIDIA publishes no manifest for {redist.title}; set --base-url to a folder that "
            f"contains {redist.manifest_folders[0]}/"
        )
    return NotAtSourceError(error.where, error.reason, hint=hint)


def _is_moved(entry: LockEntry | None, local: bytes | None, upstream: UpstreamManifest) -> bool:
    """Check if a local manifest names the same archives at another server's paths."""
    if local is None:
        return False
    is_of_nvidia_channel = upstream.release is not None or (entry and entry.nvidia_channel)
    try:
        if not is_of_nvidia_channel and not read_manifest(local).is_preview:
            return False
        return archive_hashes(local) == archive_hashes(upstream.data)
    except ContentError:  # the local file is invalid
        return False


def not_listed(
    text: str, newest: Mapping[str, str | None], store: Store | None, *, pre: bool
) -> IncompleteError:
    """Return the error for a release that no redistributable lists.

    `newest` has the newest release upstream of each redistributable. The hint names `--pre`, if the
    store can have early-access releases.
    """
    labels = ", ".join(f"{name} {label or 'only with --pre'}" for name, label in newest.items())
    hint = f"newest upstream: {labels}; run `{again(without=['--version'])}`"
    if store is not None and store.channel == "redist" and not pre:
        hint += f", or for early-access releases `{again('--pre')}`"
    return IncompleteError(
        f"none of the selected redistributables lists {text} upstream", hint=hint
    )
