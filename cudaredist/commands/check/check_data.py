"""check: compare a data folder with upstream, and check its consistency."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cudaredist.commands.check.file_findings import (
    feature_findings,
    lock_findings,
    table_findings,
    unknown_redist_findings,
)
from cudaredist.commands.check.findings import finding as make_finding
from cudaredist.commands.check.inventory import (
    Inventory,
    absent_finding,
    download_command,
    freshness_findings,
    gone_findings,
    lost_platform_notes,
    read_inventory,
    unsupported_releases,
)
from cudaredist.commands.check.report import CheckReport, Finding, FindingKind
from cudaredist.commands.check.symbol_findings import SymbolTables
from cudaredist.commands.versions.release_lines import line_reports
from cudaredist.commands.versions.report import LineReport
from cudaredist.errors import EXIT_CONTENT, CudaRedistError, NotAtSourceError, worst_exit_code
from cudaredist.formats.features import LockEntry
from cudaredist.formats.policy import DriverPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import REDISTS, Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import no_manifests
from cudaredist.store.upstream import describe_changes, fetch_manifest
from cudaredist.tasks import Task, raise_if_stopped, run_tasks


@dataclass(slots=True)
class _Comparison:
    """One redistributable, and upstream's answers, which several threads add."""

    redist: Redist
    local: Inventory
    listing: Listing | None = None
    newer: dict[Version, Manifest] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def check_data(
    store: Store,
    selected: Sequence[Redist] = (),
    *,
    sources: SourceChain | None,
    cache: Cache,
    stop: threading.Event,
    jobs: int = 16,
    progress: Progress = NO_PROGRESS,
    shipped: Store | None = None,
    driver: str | None = None,
    further: Iterable[Finding] = (),
) -> CheckReport:
    """Check the local files of the selected redistributables, or of all.

    Without `sources`, do only the checks that need no network. Otherwise request every local
    manifest again to detect changes in place. If the server sent an ETag before, its answer has no
    bytes. For each line with newer releases, fetch the newest manifest to compare platforms. The
    tables of the `shipped` data complete the local ones. The local CUDA releases have to run on the
    `driver`. Add the `further` findings. Write only to the cache.
    """
    findings = list(lock_findings(store))
    locked: Mapping[str, Mapping[str, LockEntry]] = {}
    has_lock = not any(finding.kind in {"invalid", "unreadable"} for finding in findings)
    if has_lock:
        locked = store.lock().redists
    names = sorted({*store.redists(), *store.feature_redists(), *locked})
    if selected:
        names = [redist.name for redist in selected]
    findings += unknown_redist_findings(names)
    redists = [REDISTS[name] for name in names if name in REDISTS]
    local = {
        redist.name: read_inventory(
            store, redist.name, locked.get(redist.name, {}) if has_lock else None
        )
        for redist in redists
    }
    upstream = {one.name: _Comparison(one, local[one.name]) for one in redists}
    if sources is not None:
        query = _UpstreamQuery(sources, store, cache, stop, progress)
        query.progress.expect(len(redists))
        run_tasks((partial(query.read_listing, one) for one in upstream.values()), jobs, stop)
    lines: list[LineReport] = []
    for _, one in sorted(upstream.items()):
        of_redist, differences = _compare(one)
        lines += of_redist
        findings += differences
    symbols = SymbolTables(store)
    findings += symbols.findings()
    findings += feature_findings(store, local, names, symbols)
    findings += _table_findings(store, local, shipped, driver)
    findings = sorted([*findings, *further], key=_order)
    listed_by = {n: theirs.listing.source for n, theirs in upstream.items() if theirs.listing}
    return CheckReport(
        offline=sources is None,
        sources=dict(sorted(listed_by.items())),
        lines=tuple(lines),
        findings=tuple(findings),
        exit_code=worst_exit_code(finding.exit_code for finding in findings),
    )


def _compare(theirs: _Comparison) -> tuple[tuple[LineReport, ...], list[Finding]]:
    """Compare the local manifests of a redistributable with upstream's."""
    own = theirs.local
    findings = [*own.findings, *theirs.findings]
    listed = None if theirs.listing is None else tuple(theirs.listing.folders)
    if listed is not None and theirs.listing and theirs.listing.is_complete:
        findings += gone_findings(own, listed)
    lines = line_reports(own.redist, own.labels, listed)
    findings += freshness_findings(lines, own, theirs.newer)
    findings += lost_platform_notes(own)
    return lines, findings


def _table_findings(
    store: Store, local: Mapping[str, Inventory], shipped: Store | None, driver: str | None
) -> Iterator[Finding]:
    if "cuda" in local:
        yield from table_findings(store, local["cuda"].labels, shipped)
        if driver is not None:
            policy = read_own_file(store.read_policy("drivers"), DriverPolicy)
            yield from unsupported_releases(local["cuda"], driver, policy)
    if not any(own.labels for own in local.values()):
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
    """Turn an error into a finding: `invalid` for bad contents, else `unreachable`."""
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
class _UpstreamQuery:
    """The requests to upstream, as tasks."""

    sources: SourceChain
    store: Store
    cache: Cache
    stop: threading.Event
    progress: Progress

    def read_listing(self, answer: _Comparison) -> list[Task]:
        """List a redistributable, and return the tasks to compare manifests."""
        tasks: list[Task] = []
        redist, labels = answer.redist, answer.local.labels
        try:
            raise_if_stopped(self.stop)
            previews = self.store.manifests(redist.name).has_preview()
            listing = self.sources.listing(redist.folders_to_list(previews=previews), labels)
        except NotAtSourceError as error:
            answer.findings.append(absent_finding(redist, error))
        except CudaRedistError as error:
            answer.findings.append(_failure(redist.name, None, error))
        else:
            answer.listing = listing
            listed = tuple(listing.folders)
            newest = {
                Version.parse(line.missing[-1])
                for line in line_reports(redist.name, labels, listed)
                if line.is_behind and labels
            }
            tasks += (
                partial(self.compare, answer, label, listing)
                for label in sorted({*labels} & {*listed} | newest)
            )
        self.progress.expect(len(tasks), None if tasks else 0)
        self.progress.done()
        return tasks

    def compare(self, answer: _Comparison, label: Version, listing: Listing) -> None:
        """Fetch one manifest, and report whether it changed or is new."""
        redist, local = answer.redist, answer.local
        data = local.data.get(label)
        size = 0
        try:
            raise_if_stopped(self.stop)
            upstream = fetch_manifest(self.sources, self.cache, label, listing, data, redist=redist)
            size = len(upstream.data)
            entry = local.locked.get(str(label))
            recorded = entry.sha256 if entry else local.sha256.get(label)
            if recorded is None:
                answer.newer[label] = read_manifest(upstream.data, label=label)
            elif upstream.sha256 != recorded:
                accept = download_command(
                    self.store.channel, "--accept-changed", redist=redist.name, version=label
                )
                answer.findings.append(
                    make_finding(
                        "changed-upstream",
                        "changed in place upstream",
                        redist=redist.name,
                        label=label,
                        path=self.store.relative(self.store.manifests(redist.name).path_of(label)),
                        hint=f"review the changes, then run `{accept}`",
                        details=describe_changes(data, upstream.data),
                    )
                )
        except CudaRedistError as error:
            answer.findings.append(_failure(redist.name, label, error))
        self.progress.done(size)
