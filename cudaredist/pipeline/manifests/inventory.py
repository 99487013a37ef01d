"""The local manifests of one redistributable, compared with the lock and with upstream."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    InvalidFileError,
    NotAtSourceError,
    ReadError,
    command_line,
    problems_of,
)
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.pipeline.findings import finding
from cudaredist.primitives import Version, sha256_of
from cudaredist.redists import Redist
from cudaredist.reports.manifest_reports import Finding, LineReport
from cudaredist.schema.base import Channel
from cudaredist.schema.features import LockEntry
from cudaredist.store.data_folder import Store


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a data folder holds of one redistributable, read once."""

    redist: str
    channel: Channel
    manifests: dict[Version, Manifest]
    """Those that could be read, by label in ascending order."""
    data: dict[Version, bytes]
    """The bytes of every file that could be read, manifest or not."""
    sha256: dict[Version, str]
    """Of those bytes."""
    locked: Mapping[str, LockEntry]
    unreadable: tuple[Version, ...]
    """Labels for which there is something that is no readable file."""
    findings: tuple[Finding, ...] = field(default=())
    """What was wrong with the files themselves."""

    @property
    def labels(self) -> tuple[Version, ...]:
        """All labels for which there is a file, in ascending order."""
        return tuple(sorted({*self.sha256, *self.unreadable}))


def read_inventory(store: Store, redist: str, locked: Mapping[str, LockEntry] | None) -> Inventory:
    """Read every local manifest of one redistributable and compare it with the lock.

    `locked` is None if the lock could not be read, so that nothing can be said of it.
    """
    folder = store.manifests(redist)
    manifests, contents, hashes, findings, unreadable = {}, {}, {}, [], []
    try:
        labels = folder.labels()
    except ReadError as error:
        labels = ()
        locked = None
        findings.append(finding("unreadable", error.message, redist=redist))
    for label in labels:
        about = partial(
            finding, redist=redist, label=label, path=store.relative(folder.place(label))
        )
        try:
            data = folder.read(label)
        except ReadError as error:
            unreadable.append(label)
            findings.append(about("unreadable", error.message))
            continue
        if data is None:
            continue
        contents[label], hashes[label] = data, sha256_of(data)
        if locked is not None:
            entry = locked.get(str(label))
            findings += _lock_findings(about, store.channel, hashes[label], entry)
        try:
            manifests[label] = read_manifest(data, label=label)
        except InvalidFileError as error:
            findings.append(about("invalid", "not a valid manifest", details=problems_of(error)))
    findings += (
        finding(
            "missing-file",
            "recorded in the lock, but the file is not there",
            redist=redist,
            label=label,
            path=store.relative(folder.place(label)),
            hint=_download(store.channel, redist=redist, version=label),
        )
        for label in sorted(Version.parse(text) for text in locked or ())
        if label not in hashes and label not in unreadable
    )
    return Inventory(
        redist,
        store.channel,
        manifests,
        contents,
        hashes,
        locked or {},
        tuple(unreadable),
        tuple(findings),
    )


def _download(channel: Channel, *flags: str, **options: object) -> str:
    return command_line("download-manifests", *flags, channel=channel, **options)


def _lock_findings(
    about: Callable[..., Finding], channel: Channel, sha256: str, entry: LockEntry | None
) -> Iterator[Finding]:
    """Compare a manifest's hash with the lock's record of it."""
    if entry is None:
        yield about(
            "unrecorded",
            "held, but the lock has no record of it",
            hint=f"{_download(channel)} compares it with upstream and records it",
        )
    elif entry.sha256 != sha256:
        yield about(
            "edited-locally",
            f"edited locally: sha256 {sha256[:12]}…, recorded {entry.sha256[:12]}…",
            hint="restore it with git, or take upstream's by "
            + _download(channel, "--accept-changed"),
        )


def freshness_findings(
    lines: Sequence[LineReport], held: Inventory, newer: Mapping[Version, Manifest]
) -> Iterator[Finding]:
    """Find what upstream has and the data lacks; `newer` holds manifests to compare platforms."""
    behind = [line for line in lines if line.is_behind]
    if not held.labels:
        behind = behind[-1:]  # the newest line says enough where nothing is held
    for line in behind:
        newest = Version.parse(line.missing[-1])
        known = max((x for x in held.manifests if x.line == line.line), default=None)
        if known is None:
            known = max((x for x in held.manifests if x < newest), default=None)
        details = [f"missing: {', '.join(line.missing)}"]
        if newest in newer and known is not None:
            lost = held.manifests[known].platforms - newer[newest].platforms
            gained = newer[newest].platforms - held.manifests[known].platforms
            details += [f"{newest} lacks {name}, which {known} has" for name in sorted(lost)]
            details += [f"{newest} adds {name}" for name in sorted(gained)]
        what = (
            f"line {line.line}: {line.held} held, {newest} upstream"
            if line.held
            else f"new line {line.line}: {newest} upstream"
        )
        yield finding(
            "stale",
            what,
            redist=held.redist,
            label=newest,
            hint=_download(held.channel, redist=held.redist, version=newest),
            details=details,
        )


def gone_findings(held: Inventory, listed: Sequence[Version]) -> Iterator[Finding]:
    """Find held labels that upstream no longer lists; known ones are notes."""
    for label in held.labels:
        entry = held.locked.get(str(label))
        if label in listed or entry is None:
            continue
        yield finding(
            "gone",
            "upstream no longer lists it" + (" (recorded)" if entry.gone else ""),
            redist=held.redist,
            label=label,
            hint=None if entry.gone else f"{_download(held.channel)} records that",
            exit_code=EXIT_OK if entry.gone else EXIT_FINDINGS,
        )


def lost_platform_notes(held: Inventory) -> Iterator[Finding]:
    """Note platforms that an older held label has and the newest, of a line or of all, lacks."""
    by_line: dict[str, list[Version]] = {}
    for label in held.manifests:
        by_line.setdefault(label.line, []).append(label)
    noted: set[tuple[str, Version]] = set()
    # The whole series first: a platform that has ended is not noted again for each line.
    for name, labels in [("all lines", list(held.manifests)), *by_line.items()]:
        if not labels:
            continue
        newest = labels[-1]
        last_with: dict[str, Version] = {}
        for label in labels:
            last_with |= dict.fromkeys(held.manifests[label].platforms, label)
        for platform, label in sorted(last_with.items()):
            if label != newest and (platform, label) not in noted:
                noted.add((platform, label))
                yield finding(
                    "platform-lost",
                    f"{name if name == 'all lines' else f'line {name}'}: "
                    f"the newest with {platform} is {label}",
                    redist=held.redist,
                    label=newest,
                )


def absent_finding(redist: Redist, error: NotAtSourceError) -> Finding:
    """Find that no source has a redistributable; a note where NVIDIA publishes no manifests."""
    return finding(
        "absent",
        f"no source has it ({error.message})",
        redist=redist.name,
        hint=error.hint,
        exit_code=EXIT_OK if redist.handwritten else EXIT_INCOMPLETE,
    )
