"""check: compare a data folder with upstream, and check its consistency."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cudaredist.commands.check.archive_tables import ApiTables, SymbolTables
from cudaredist.commands.check.checked_files import CheckedFiles
from cudaredist.commands.check.file_findings import (
    feature_findings,
    lock_findings,
    table_findings,
    unknown_redist_findings,
)
from cudaredist.commands.check.findings import finding as make_finding
from cudaredist.commands.check.inventory import (
    Inventory,
    read_inventory,
    unsupported_releases,
    upstream_findings,
)
from cudaredist.commands.check.report import CheckReport, Finding, FindingKind
from cudaredist.errors import (
    EXIT_CONTENT,
    EXIT_INCOMPLETE,
    EXIT_OK,
    CudaRedistError,
    NotAtSourceError,
    worst_exit_code,
)
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, sha256_of
from cudaredist.redists import REDISTS, Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, layer_of
from cudaredist.store.local_manifests import no_manifests
from cudaredist.store.upstream import (
    describe_changes,
    fetch_listed,
    nvidia_channel_moves,
    nvidia_channel_query,
)
from cudaredist.tasks import Task, Workers, raise_if_stopped, run_tasks


def check_data(
    store: Store,
    selected: Sequence[Redist],
    sources: SourceChain | None,
    cache: Cache,
    workers: Workers,
    *,
    checked: CheckedFiles,
    shipped: Store | None = None,
    driver: str | None = None,
    nvidia_channels: frozenset[str] = frozenset(),
    further: Iterable[Finding] = (),
) -> CheckReport:
    """Check the local files of the selected redistributables, or of all.

    Without `sources`, do only the checks that need no network. Otherwise request every local
    manifest again to detect changes in place. If the server sent an ETag before, its answer has no
    bytes. For each line with newer releases, fetch the newest manifest to compare platforms. The
    tables of the `shipped` data complete the local ones. The local CUDA releases have to run on the
    `driver`. Add the `further` findings. Write only to the cache.
    """
    findings = list(lock_findings(store, checked))
    has_lock = not any(finding.kind in {"invalid", "unreadable"} for finding in findings)
    locked = store.lock().redists if has_lock else {}
    names = [redist.name for redist in selected]
    names = names or sorted({*store.redists(), *store.feature_redists(), *locked})
    findings += unknown_redist_findings(names)
    local = {
        name: read_inventory(
            store, REDISTS[name], locked.get(name, {}) if has_lock else None, checked
        )
        for name in names
        if name in REDISTS
    }
    inventories = [inventory for _, inventory in sorted(local.items())]
    if sources is not None:
        query = _UpstreamQuery(sources, cache, workers, nvidia_channels)
        workers.progress.expect(len(local))
        tasks = [partial(query.read_listing, inventory) for inventory in local.values()]
        run_tasks(tasks, workers.jobs, workers.stop)
    for inventory in inventories:
        findings += upstream_findings(inventory)
    tables = SymbolTables(store), ApiTables(store)
    for each in tables:
        findings += each.findings(checked)
    findings += feature_findings(store, local, names, tables, checked)
    findings += _table_findings(store, local, shipped, driver, checked)
    findings = sorted([*findings, *further], key=_order)
    return CheckReport(
        offline=sources is None,
        sources={one.redist.name: one.listing.source for one in inventories if one.listing},
        lines=tuple(line for inventory in inventories for line in inventory.lines),
        findings=tuple(findings),
        exit_code=worst_exit_code(finding.exit_code for finding in findings),
    )


def _table_findings(
    store: Store,
    local: Mapping[str, Inventory],
    shipped: Store | None,
    driver: str | None,
    checked: CheckedFiles,
) -> Iterator[Finding]:
    if "cuda" in local:
        yield from table_findings(store, local["cuda"].labels, shipped, checked)
        if driver is not None:
            policy = read_own_file(store.read_policy("drivers"), DriverPolicy)
            yield from unsupported_releases(local["cuda"], driver, policy)
    if not any(own.labels for own in local.values()):
        error = no_manifests(store)
        yield make_finding("nothing-held", error.message, hint=error.hint)


def _order(finding: Finding) -> tuple[bool, str, tuple[Version, ...], str, str]:
    label = () if finding.release is None else (Version.parse(finding.release),)
    about = finding.path or finding.message
    return finding.exit_code == 0, finding.redist or "", label, finding.kind, about


class _UpstreamQuery(NamedTuple):
    """The requests to upstream, as tasks."""

    sources: SourceChain
    cache: Cache
    workers: Workers
    nvidia_channels: frozenset[str]

    def read_listing(self, local: Inventory) -> list[Task]:
        """List a redistributable, and return the tasks to compare manifests."""
        tasks: list[Task] = []
        redist, labels = local.redist, local.labels
        try:
            raise_if_stopped(self.workers.stop)
            query = nvidia_channel_query(local.store, redist, self.nvidia_channels, is_direct=True)
            listing = self.sources.listing(redist.manifest_folders, labels, query)
        except NotAtSourceError as error:
            # It is only a note if NVIDIA publishes no manifests of it.
            code = EXIT_OK if redist.handwritten else EXIT_INCOMPLETE
            message = f"no source has it ({error.message})"
            local.findings.append(local.finding("absent", message, hint=error.hint, exit_code=code))
        except CudaRedistError as error:
            local.findings.append(_failure(local, None, error))
        else:
            local.listing = listing
            local.moves = nvidia_channel_moves(local.locked, listing)
            local.findings += (_failure(local, None, error) for error in listing.failures)
            behind = [line for line in local.lines if line.is_behind and labels]
            newest = {Version.parse(line.missing[-1]) for line in behind}
            moved = {move.label for move in local.moves}
            still_listed = set(labels) & (set(listing.labels) - moved)
            compared = sorted(newest | still_listed)
            tasks += (partial(self.compare, local, label, listing) for label in compared)
        self.workers.progress.expect(len(tasks), None if tasks else 0)
        self.workers.progress.done()
        return tasks

    def compare(self, local: Inventory, label: Version, listing: Listing) -> None:
        """Fetch one manifest, and report whether it changed or is new."""
        data, size = local.data.get(label), 0
        try:
            raise_if_stopped(self.workers.stop)
            entry = local.locked.get(str(label))
            upstream = fetch_listed(
                self.sources, self.cache, label, listing, data, redist=local.redist, entry=entry
            )
            size = len(upstream.data)
            # Shipped data has nothing to correct for a user without a data folder.
            is_shipped = layer_of(local.store.layer_of(local.redist.name, label).root) == "shipped"
            correct = "if that is wrong, add the release to `policy/wheels.json` in the data folder"
            hint = None if is_shipped else correct
            doubts = upstream.doubts
            if doubts and _has_versions_of_archives(local, label, upstream.data):
                doubts = ()
            for doubt in doubts:
                message = f"its metapackage may require the wrong wheels: {doubt}"
                local.findings.append(local.finding("doubtful-wheels", message, label, hint=hint))
            recorded = entry.sha256 if entry else local.sha256.get(label)
            if recorded is None:
                local.newer[label] = read_manifest(upstream.data, label=label).platforms
            elif recorded != upstream.sha256 and recorded != sha256_of(upstream.data + b"\n"):
                details = describe_changes(data, upstream.data)
                local.findings.append(_difference(local, label, details))
        except CudaRedistError as error:
            local.findings.append(_failure(local, label, error))
        self.workers.progress.done(size)


def _has_versions_of_archives(local: Inventory, label: Version, data: bytes) -> bool:
    """Check if NVIDIA's own manifest of a release has the versions of its wheels."""
    published = local.store.of_channel("redist").manifests(local.redist.name).read(label)
    if published is None:
        return False
    archives = _versions(read_manifest(published, label=label))
    wheels = _versions(read_manifest(data, label=label))
    common = archives.keys() & wheels.keys()
    return bool(common) and all(archives[name] == wheels[name] for name in common)


def _versions(manifest: Manifest) -> dict[str, Sequence[Version]]:
    return {package.name: package.versions for package in manifest.packages}


def _difference(local: Inventory, label: Version, details: Iterable[str]) -> Finding:
    """Return the finding for a manifest that is not the recorded one."""
    entry = local.locked.get(str(label))
    if entry is not None and entry.as_read:
        message = "upstream's manifest differs from this copy, which was never compared with it"
        hint = f"run `{local.download(version=label)}`"
        return local.file_finding("copy-differs", message, label, hint=hint, details=details)
    accept = local.download("--replace", version=label)
    hint = f"review the changes, then run `{accept}`"
    return local.file_finding(
        "changed-upstream", "changed in place upstream", label, hint=hint, details=details
    )


def _failure(local: Inventory, label: Version | None, error: CudaRedistError) -> Finding:
    """Turn an error into a finding: `invalid` for bad contents, else `unreachable`."""
    kind: FindingKind = "invalid" if error.exit_code == EXIT_CONTENT else "unreachable"
    return local.finding(kind, error.message, label, hint=error.hint, exit_code=error.exit_code)
