"""Compare local manifests with the lock and with upstream."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cudaredist.cli.text import grouped
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.commands.versions.release_lines import newest_before
from cudaredist.commands.versions.report import LineReport
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    InvalidFileError,
    NotAtSourceError,
    ReadError,
    problems_of,
)
from cudaredist.formats.base import Channel
from cudaredist.formats.features import LockEntry
from cudaredist.formats.policy import DriverPolicy
from cudaredist.hints import command_line
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, sha256_of
from cudaredist.redists import Redist
from cudaredist.store.data_folder import Store
from cudaredist.tables.explain_driver import System, refusals


@dataclass(slots=True)
class Inventory:
    """The local manifests of one redistributable, read once."""

    redist: str
    channel: Channel
    locked: Mapping[str, LockEntry]
    manifests: dict[Version, Manifest] = field(default_factory=dict)
    """The valid manifests by label, in ascending order."""
    data: dict[Version, bytes] = field(default_factory=dict)
    """The bytes of every readable file, valid or not."""
    sha256: dict[Version, str] = field(default_factory=dict)
    """The hashes of `data`."""
    unreadable: list[Version] = field(default_factory=list)
    """Labels of files that could not be read."""
    findings: list[Finding] = field(default_factory=list)
    """Defects of the files."""

    @property
    def labels(self) -> tuple[Version, ...]:
        """All labels with a file, in ascending order."""
        return tuple(sorted({*self.sha256, *self.unreadable}))


def read_inventory(store: Store, redist: str, locked: Mapping[str, LockEntry] | None) -> Inventory:
    """Read local manifests and compare them with the lock.

    `locked` is None if the lock could not be read. Then the manifests are not compared with it.
    """
    folder = store.manifests(redist)
    try:
        labels = folder.labels()
    except ReadError as error:
        unreadable = finding("unreadable", error.message, redist=redist)
        return Inventory(redist, store.channel, {}, findings=[unreadable])
    local = Inventory(redist, store.channel, locked or {})
    for label in labels:
        about = partial(
            finding, redist=redist, label=label, path=store.relative(folder.path_of(label))
        )
        try:
            data = folder.read(label)
        except ReadError as error:
            local.unreadable.append(label)
            local.findings.append(about("unreadable", error.message))
            continue
        if data is None:
            continue
        local.data[label], local.sha256[label] = data, sha256_of(data)
        if locked is not None:
            entry = locked.get(str(label))
            download = partial(download_command, store.channel, redist=redist, version=label)
            local.findings += _lock_findings(about, download, local.sha256[label], entry)
        try:
            local.manifests[label] = read_manifest(data, label=label)
        except InvalidFileError as error:
            problems = problems_of(error)
            local.findings.append(about("invalid", "not a valid manifest", details=problems))
    local.findings += (
        finding(
            "missing-file",
            "the file is missing, but the lock records it",
            redist=redist,
            label=label,
            path=store.relative(folder.path_of(label)),
            hint=f"run `{download_command(store.channel, redist=redist, version=label)}`",
        )
        for label in sorted(map(Version.parse, local.locked))
        if label not in local.labels
    )
    return local


def download_command(channel: Channel, *flags: str, **options: object) -> str:
    """Return the command to download manifests."""
    return command_line("download-manifests", *flags, channel=channel, **options)


def _lock_findings(
    about: Callable[..., Finding],
    download: Callable[..., str],
    sha256: str,
    entry: LockEntry | None,
) -> Iterator[Finding]:
    """Compare a manifest's hash with the lock's record of it."""
    if entry is None:
        yield about(
            "unrecorded",
            "the lock does not record this file",
            hint=f"run `{download()}` to compare it with upstream and record it",
        )
    elif entry.sha256 != sha256:
        yield about(
            "edited-locally",
            f"edited locally: sha256 {sha256[:12]}…, recorded {entry.sha256[:12]}…",
            hint="restore it with git, or run "
            f"`{download('--accept-changed')}` to replace it with upstream's",
        )


def freshness_findings(
    lines: Sequence[LineReport], local: Inventory, newer: Mapping[Version, Manifest]
) -> Iterator[Finding]:
    """Find release lines with newer labels upstream.

    `newer` contains upstream's new manifests, to compare their platforms with the local ones.
    """
    behind = [line for line in lines if line.is_behind]
    if not local.labels:
        behind = behind[-1:]  # without local labels, every line is new: report only the newest
    for line in behind:
        newest = Version.parse(line.missing[-1])
        known = newest_before(newest, local.manifests)
        details = [f"missing: {', '.join(line.missing)}"]
        if newest in newer and known is not None:
            lost = local.manifests[known].platforms - newer[newest].platforms
            gained = newer[newest].platforms - local.manifests[known].platforms
            details += [f"{newest} lacks {name}, which {known} has" for name in sorted(lost)]
            details += [f"{newest} adds {name}" for name in sorted(gained)]
        message = (
            f"line {line.line}: {line.held} local, {newest} upstream"
            if line.held
            else f"new line {line.line}: {newest} upstream"
        )
        yield finding(
            "stale",
            message,
            redist=local.redist,
            label=newest,
            hint=f"run `{download_command(local.channel, redist=local.redist, version=newest)}`",
            details=details,
        )


def gone_findings(local: Inventory, listed: Sequence[Version]) -> Iterator[Finding]:
    """Find local labels that upstream no longer lists.

    If the lock already records that, the finding is a note.
    """
    for label in local.labels:
        entry = local.locked.get(str(label))
        if label in listed or entry is None:
            continue
        yield finding(
            "gone",
            "upstream no longer lists it" + (" (recorded in the lock)" if entry.gone else ""),
            redist=local.redist,
            label=label,
            hint=None
            if entry.gone
            else f"run `{download_command(local.channel, redist=local.redist)}` to record that",
            exit_code=EXIT_OK if entry.gone else EXIT_FINDINGS,
        )


def unsupported_releases(local: Inventory, name: str, policy: DriverPolicy) -> Iterator[Finding]:
    """Find local CUDA releases that are not known to run on a driver."""
    for label, manifest in local.manifests.items():
        systems: set[System] = {
            "windows" if platform.startswith("windows") else "linux"
            for platform in manifest.platforms
        }
        for support, _, words in refusals(name, [label], systems, policy):
            yield finding(
                "driver",
                words,
                redist=local.redist,
                label=label,
                hint=f"run `{command_line('explain', 'driver', name)}`",
                exit_code=EXIT_INCOMPLETE if support == "unknown" else EXIT_FINDINGS,
            )


def lost_platform_notes(local: Inventory) -> Iterator[Finding]:
    """Note platforms that newer manifests dropped.

    The newest manifest of each line, and of all lines, is compared with the older local ones.
    """
    by_line = grouped((label.line, label) for label in local.manifests)
    noted: set[tuple[str, Version]] = set()
    # Begin with all lines, so that a discontinued platform is not noted again for each line.
    for name, labels in [("", list(local.manifests)), *by_line.items()]:
        if not labels:
            continue
        newest = labels[-1]
        of = f"of line {name} " if name else ""
        last_with: dict[str, Version] = {}
        for label in labels:
            last_with |= dict.fromkeys(local.manifests[label].platforms, label)
        for platform, label in sorted(last_with.items()):
            if label != newest and (platform, label) not in noted:
                noted.add((platform, label))
                yield finding(
                    "platform-lost",
                    f"has no {platform}; the newest release {of}with it is {label}",
                    redist=local.redist,
                    label=newest,
                )


def absent_finding(redist: Redist, error: NotAtSourceError) -> Finding:
    """Report that no source has a redistributable.

    It is only a note if NVIDIA publishes no manifests of it.
    """
    return finding(
        "absent",
        f"no source has it ({error.message})",
        redist=redist.name,
        hint=error.hint,
        exit_code=EXIT_OK if redist.handwritten else EXIT_INCOMPLETE,
    )
