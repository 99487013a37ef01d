"""check: the data folder held against upstream, and against itself."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cudaredist.errors import (
    EXIT_CONTENT,
    CudaRedistError,
    NotAtSourceError,
    command_line,
    worst_exit_code,
)
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.pipeline.file_findings import (
    feature_findings,
    lock_findings,
    table_findings,
    unknown_redist_findings,
)
from cudaredist.pipeline.findings import finding as make_finding
from cudaredist.pipeline.manifests.inventory import (
    Inventory,
    absent_finding,
    freshness_findings,
    gone_findings,
    lost_platform_notes,
    read_inventory,
)
from cudaredist.pipeline.manifests.release_lines import line_reports
from cudaredist.pipeline.manifests.upstream import described_changes, fetch_manifest
from cudaredist.pipeline.read_data import no_manifests
from cudaredist.pipeline.tasks import Task, raise_if_stopped, run_tasks
from cudaredist.primitives import Version
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import REDISTS, Redist
from cudaredist.reports.manifest_reports import CheckReport, Finding, FindingKind, LineReport
from cudaredist.schema.features import LockEntry
from cudaredist.source.chain import SourceChain
from cudaredist.source.protocol import Listing
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store


@dataclass(slots=True)
class _Upstream:
    """What upstream answered about one redistributable; filled by several threads."""

    listing: Listing | None = None
    newer: dict[Version, Manifest] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def check_data(
    store: Store,
    asked: Sequence[Redist] = (),
    *,
    sources: SourceChain | None,
    cache: Cache,
    stop: threading.Event,
    jobs: int = 16,
    progress: Progress = NO_PROGRESS,
    further: Iterable[Finding] = (),
) -> CheckReport:
    """Check what is held of the redistributables asked about, or of all that anything is held of.

    Without `sources` only what needs no network is checked.
    Every manifest held is asked for again, by its validators where the server gave some, so that a
    change in place is seen. Of a newer release only the newest manifest is fetched, to compare
    platforms. `further` findings are added to those. Writes nothing but the cache.
    """
    findings = list(lock_findings(store))
    locked: Mapping[str, Mapping[str, LockEntry]] = {}
    has_lock = not any(finding.kind in {"invalid", "unreadable"} for finding in findings)
    if has_lock:
        locked = store.lock().redists
    names = sorted({*store.redists(), *store.feature_redists(), *locked})
    if asked:
        names = [redist.name for redist in asked]
    findings += unknown_redist_findings(names)
    redists = [REDISTS[name] for name in names if name in REDISTS]
    held = {
        redist.name: read_inventory(
            store, redist.name, locked.get(redist.name, {}) if has_lock else None
        )
        for redist in redists
    }
    upstream = {redist.name: _Upstream() for redist in redists}
    if sources is not None:
        asking = _Asking(sources, store, cache, stop, progress)
        asking.progress.expect(len(redists))
        run_tasks(
            [partial(asking.ask, r, held[r.name], upstream[r.name]) for r in redists], jobs, stop
        )
    lines: list[LineReport] = []
    for name in sorted(held):
        of_redist, found = _compared(held[name], upstream[name])
        lines += of_redist
        findings += found
    findings += feature_findings(store, held, names)
    findings += _table_findings(store, held)
    findings += further
    findings.sort(key=_order)
    answered = {n: theirs.listing.source for n, theirs in upstream.items() if theirs.listing}
    return CheckReport(
        offline=sources is None,
        sources=dict(sorted(answered.items())),
        lines=tuple(lines),
        findings=tuple(findings),
        exit_code=worst_exit_code(finding.exit_code for finding in findings),
    )


def _compared(own: Inventory, theirs: _Upstream) -> tuple[tuple[LineReport, ...], list[Finding]]:
    """Compare the local manifests of a redistributable with upstream's."""
    findings = [*own.findings, *theirs.findings]
    listed = None
    if theirs.listing is not None:
        listed = tuple(theirs.listing.folders)
        if theirs.listing.is_complete:
            findings += gone_findings(own, listed)
    lines = line_reports(own.redist, own.labels, listed)
    findings += freshness_findings(lines, own, theirs.newer)
    findings += lost_platform_notes(own)
    return lines, findings


def _table_findings(store: Store, held: Mapping[str, Inventory]) -> Iterator[Finding]:
    if "cuda" in held:
        yield from table_findings(store, held["cuda"].labels)
    if not any(own.labels for own in held.values()):
        error = no_manifests(store)
        yield make_finding("nothing-held", error.message, hint=error.hint)


def _order(finding: Finding) -> tuple[bool, str, tuple[Version, ...], str, str]:
    label = () if finding.release is None else (Version.parse(finding.release),)
    return (
        finding.exit_code == 0,
        finding.redist or "",
        label,
        finding.kind,
        finding.path or finding.message,
    )


def _failure(redist: str, label: Version | None, error: CudaRedistError) -> Finding:
    """Turn an error into a finding: bytes not understood are never called unreachable."""
    kind: FindingKind = "invalid" if error.exit_code == EXIT_CONTENT else "unreachable"
    return make_finding(
        kind,
        error.message,
        redist=redist,
        label=label,
        hint=error.hint,
        exit_code=error.exit_code,
    )


@dataclass(frozen=True, slots=True)
class _Asking:
    """The questions put to upstream, as tasks."""

    sources: SourceChain
    store: Store
    cache: Cache
    stop: threading.Event
    progress: Progress

    def ask(self, redist: Redist, held: Inventory, answer: _Upstream) -> list[Task]:
        """Ask for the listing; return the questions about single manifests that follow."""
        tasks: list[Task] = []
        try:
            raise_if_stopped(self.stop)
            listing = self.sources.listing(redist.manifest_folders, held.labels)
        except NotAtSourceError as error:
            answer.findings.append(absent_finding(redist, error))
        except CudaRedistError as error:
            answer.findings.append(_failure(redist.name, None, error))
        else:
            answer.listing = listing
            listed = tuple(listing.folders)
            newest = {
                Version.parse(line.missing[-1])
                for line in line_reports(redist.name, held.labels, listed)
                if line.is_behind and held.labels
            }
            tasks += (
                partial(self.compare, redist, label, listing, held, answer)
                for label in sorted({*held.labels} & {*listed} | newest)
            )
        self.progress.expect(len(tasks), None if tasks else 0)
        self.progress.done()
        return tasks

    def compare(
        self,
        redist: Redist,
        label: Version,
        listing: Listing,
        held: Inventory,
        answer: _Upstream,
    ) -> list[Task]:
        """Fetch one manifest; note that it changed in place, or keep it where it is new."""
        data = held.data.get(label)
        size = 0
        try:
            raise_if_stopped(self.stop)
            upstream = fetch_manifest(self.sources, self.cache, label, listing, data, redist=redist)
            size = len(upstream.data)
            entry = held.locked.get(str(label))
            recorded = entry.sha256 if entry else held.sha256.get(label)
            if recorded is None:
                answer.newer[label] = read_manifest(upstream.data, label=label)
            elif upstream.sha256 != recorded:
                answer.findings.append(
                    make_finding(
                        "changed-upstream",
                        "changed in place upstream",
                        redist=redist.name,
                        label=label,
                        path=self.store.relative(self.store.manifests(redist.name).place(label)),
                        hint="look at it, then "
                        + command_line(
                            "download-manifests",
                            "--accept-changed",
                            channel=self.store.channel,
                            redist=redist.name,
                            version=label,
                        ),
                        details=described_changes(data, upstream.data),
                    )
                )
        except CudaRedistError as error:
            answer.findings.append(_failure(redist.name, label, error))
        self.progress.done(size)
        return []
