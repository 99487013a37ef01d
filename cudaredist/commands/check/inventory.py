"""Compare local manifests with the lock and with upstream."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cudaredist.commands.check.checked_files import CheckedFiles
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding, FindingKind
from cudaredist.commands.versions.local_versions import line_reports, newest_before
from cudaredist.commands.versions.report import LineReport
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    InvalidFileError,
    ReadError,
    problems_of,
)
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.lock import LockEntry
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, published_sha256, sha256_of
from cudaredist.redists import Redist
from cudaredist.sources.protocol import Listing
from cudaredist.store.data_folder import Store
from cudaredist.store.upstream import NvidiaChannelMove
from cudaredist.tables.driver_support import refusals


@dataclass(slots=True)
class Inventory:
    """The manifests of one redistributable: local ones, and upstream's answers.

    Local files are read once. Several threads add upstream's answers.
    """

    redist: Redist
    store: Store
    locked: Mapping[str, LockEntry]
    platforms: dict[Version, frozenset[str]] = field(default_factory=dict)
    """The platforms of valid manifests by label, in ascending order."""
    data: dict[Version, bytes] = field(default_factory=dict)
    """The bytes of every readable file, valid or not."""
    sha256: dict[Version, str] = field(default_factory=dict)
    """The hashes of `data`."""
    unreadable: list[Version] = field(default_factory=list)
    """Labels of files that could not be read."""
    findings: list[Finding] = field(default_factory=list)
    """Defects of the files, and differences from upstream."""
    listing: Listing | None = None
    """Upstream's listing, if it answered."""
    moves: tuple[NvidiaChannelMove, ...] = ()
    """Local releases that left their NVIDIA channel."""
    newer: dict[Version, frozenset[str]] = field(default_factory=dict)
    """The platforms of upstream's new manifests, to compare them with the local ones."""

    @property
    def labels(self) -> tuple[Version, ...]:
        """All labels with a file, in ascending order."""
        return tuple(sorted({*self.sha256, *self.unreadable}))

    @property
    def lines(self) -> tuple[LineReport, ...]:
        """The release lines, compared with upstream's."""
        listed = None if self.listing is None else self.listing.labels
        return line_reports(self.store.channel, self.redist.name, self.labels, listed)

    def finding(
        self, kind: FindingKind, message: str, label: Version | None = None, **more: object
    ) -> Finding:
        """Create a finding about the redistributable or one of its releases."""
        return finding(kind, message, redist=self.redist.name, label=label, **more)

    def file_finding(
        self, kind: FindingKind, message: str, label: Version, **more: object
    ) -> Finding:
        """Create a finding about the file of a local manifest."""
        path = self.store.relative(self.store.manifests(self.redist.name).path_of(label))
        return self.finding(kind, message, label, path=path, **more)

    def download(self, *flags: str, **version: Version) -> str:
        """Return the command to download manifests of the redistributable."""
        options = {"redist": self.redist.name, **version}
        return command_line("download-manifests", *flags, channel=self.store.channel, **options)


def read_inventory(
    store: Store, redist: Redist, locked: Mapping[str, LockEntry] | None, checked: CheckedFiles
) -> Inventory:
    """Read local manifests and compare them with the lock.

    `locked` is None if the lock could not be read. Then the manifests are not compared with it.
    """
    folder, local = store.manifests(redist.name), Inventory(redist, store, locked or {})
    try:
        labels = folder.labels()
    except ReadError as error:
        unreadable = local.finding("unreadable", error.message)
        return Inventory(redist, store, {}, findings=[unreadable])
    for label in labels:
        try:
            data = folder.read(label)
        except ReadError as error:
            local.unreadable.append(label)
            local.findings.append(local.file_finding("unreadable", error.message, label))
            continue
        if data is None:
            continue
        entry = local.locked.get(str(label))
        local.data[label] = data
        local.sha256[label] = published_sha256(data, entry.sha256 if entry else None)
        if locked is not None:
            local.findings += _lock_findings(local, label)
        try:
            local.platforms[label] = _platforms(data, label, checked)
        except InvalidFileError as error:
            details, message = problems_of(error), "not a valid manifest"
            local.findings.append(local.file_finding("invalid", message, label, details=details))
    local.findings += (
        local.file_finding(
            "missing-file",
            "the file is missing, but the lock records it",
            label,
            hint=f"run `{local.download(version=label)}`",
        )
        for label in sorted(map(Version.parse, local.locked))
        if label not in local.labels
    )
    return local


def _platforms(data: bytes, label: Version, checked: CheckedFiles) -> frozenset[str]:
    """Return the platforms of a manifest. Raises `InvalidFileError`."""
    kind, sha256 = f"manifest of {label}", sha256_of(data)
    facts = checked.facts(kind, sha256)
    if facts is None:
        platforms = read_manifest(data, label=label).platforms
        facts = checked.add(kind, sha256, {"platforms": sorted(platforms)})
    return frozenset(facts["platforms"])


def _lock_findings(local: Inventory, label: Version) -> Iterator[Finding]:
    """Compare a manifest's hash with the lock's record of it."""
    sha256, entry = local.sha256[label], local.locked.get(str(label))
    if entry is None:
        message = "the lock does not record this file"
        hint = f"run `{local.download(version=label)}` to compare it with upstream and record it"
        yield local.file_finding("unrecorded", message, label, hint=hint)
    elif entry.sha256 != sha256:
        accept = local.download("--replace", version=label)
        message = f"edited locally: sha256 {sha256[:12]}…, recorded {entry.sha256[:12]}…"
        hint = f"restore it with git, or run `{accept}` to replace it with upstream's"
        yield local.file_finding("edited-locally", message, label, hint=hint)


def upstream_findings(local: Inventory) -> Iterator[Finding]:
    """Yield all findings about local manifests, compared with upstream's and with each other."""
    yield from local.findings
    if local.listing is not None and local.listing.is_complete:
        yield from _gone_findings(local, local.listing)
    for move in local.moves:
        hint = f"run `{local.download(version=move.label)}` to record that"
        yield local.finding("left-channel", move.text, move.label, hint=hint)
    yield from _freshness_findings(local)
    yield from _lost_platform_notes(local)


def _freshness_findings(local: Inventory) -> Iterator[Finding]:
    """Find release lines with newer labels upstream."""
    behind = [line for line in local.lines if line.is_behind]
    if not local.labels:
        behind = behind[-1:]  # without local labels, every line is new: report only the newest
    for line in behind:
        newest = Version.parse(line.missing[-1])
        known = newest_before(newest, local.platforms)
        details = [f"missing: {', '.join(line.missing)}"]
        if newest in local.newer and known is not None:
            before, after = local.platforms[known], local.newer[newest]
            details += [
                f"{newest} lacks {name}, which {known} has" for name in sorted(before - after)
            ]
            details += [f"{newest} adds {name}" for name in sorted(after - before)]
        about = f"line {line.line}: {line.held} local," if line.held else f"new line {line.line}:"
        message = f"{about} {newest} upstream"
        hint = f"run `{local.download(version=newest)}`"
        yield local.finding("stale", message, newest, hint=hint, details=tuple(details))


def _gone_findings(local: Inventory, listing: Listing) -> Iterator[Finding]:
    """Find local labels that upstream no longer lists.

    If the lock already records that, the finding is a note.
    """
    message = "upstream no longer lists it"
    for label in local.labels:
        entry = local.locked.get(str(label))
        if label in listing.labels or entry is None:
            continue
        if entry.gone:
            yield local.finding("gone", f"{message} (recorded in the lock)", label)
        else:
            hint = f"run `{local.download()}` to record that"
            yield local.finding("gone", message, label, hint=hint, exit_code=EXIT_FINDINGS)


def unsupported_releases(local: Inventory, name: str, policy: DriverPolicy) -> Iterator[Finding]:
    """Find local CUDA releases that are not known to run on a driver."""
    hint = f"run `{command_line('explain', 'driver', name)}`"
    for label, platforms in local.platforms.items():
        for support, words in refusals(name, [label], platforms, policy):
            code = EXIT_INCOMPLETE if support == "unknown" else EXIT_FINDINGS
            yield local.finding("driver", words, label, hint=hint, exit_code=code)


def _lost_platform_notes(local: Inventory) -> Iterator[Finding]:
    """Note platforms that newer manifests dropped.

    The newest manifest of each line, and of all lines, is compared with the older local ones.
    """
    by_line = grouped((label.line, label) for label in local.platforms)
    noted: set[tuple[str, Version]] = set()
    # Begin with all lines, so that a discontinued platform is not noted again for each line.
    for name, labels in [("", list(local.platforms)), *by_line.items()]:
        if not labels:
            continue
        newest = labels[-1]
        of = f"of line {name} " if name else ""
        last_with: dict[str, Version] = {}
        for label in labels:
            last_with |= dict.fromkeys(local.platforms[label], label)
        for platform, label in sorted(last_with.items()):
            if label != newest and (platform, label) not in noted:
                noted.add((platform, label))
                message = f"has no {platform}; the newest release {of}with it is {label}"
                yield local.finding("platform-lost", message, newest)
