"""What is not as it should be in a data folder, as values: against upstream, and in itself.

Nothing here fetches, prints or mends. Each finding carries the exit code that it alone would cause;
0 is a note, which a maintainer should know and which fails no build.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cudaredist.errors import (
    EXIT_CONTENT,
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_INTEGRITY,
    EXIT_OK,
    CudaRedistError,
    InvalidFileError,
    NotAtSourceError,
    ReadError,
)
from cudaredist.features import RULES
from cudaredist.jsontext import canonical_json
from cudaredist.manifests import Manifest, read_manifest
from cudaredist.primitives import Version, sha256_of
from cudaredist.redists import REDISTS, Redist
from cudaredist.reports.manifest_reports import Finding, FindingKind, LineReport, LineStatus
from cudaredist.schema import (
    FILE_KINDS,
    Features,
    FileKind,
    Gpus,
    LockEntry,
    NvccCompat,
    OwnModel,
    parse_own_json,
    read_own_document,
)
from cudaredist.store import Store, problems_of, read_file

_PROCESS_HINT = "cudaredist process-manifests makes what is missing"

_EXIT_CODES: dict[FindingKind, int] = {
    "gone": EXIT_OK,
    "platform-lost": EXIT_OK,
    "changed-upstream": EXIT_INTEGRITY,
    "edited-locally": EXIT_INTEGRITY,
    "invalid": EXIT_CONTENT,
    "unreachable": EXIT_INCOMPLETE,
    "unreadable": EXIT_INCOMPLETE,
}
_TABLES = {"nvcc_compat": "nvcc-compat", "gpus": "gpus"}
TABLE_COMMANDS = {"nvcc_compat": "update-nvcc-compat", "gpus": "update-gpus"}
"""The command that makes each table."""


def finding(
    kind: FindingKind,
    message: str,
    *,
    redist: str | None = None,
    label: Version | None = None,
    path: str | None = None,
    hint: str | None = None,
    details: Sequence[str] = (),
    exit_code: int | None = None,
) -> Finding:
    """Make a finding; its kind decides the exit code unless one is given."""
    return Finding(
        kind=kind,
        exit_code=_EXIT_CODES.get(kind, EXIT_FINDINGS) if exit_code is None else exit_code,
        redist=redist,
        label=None if label is None else str(label),
        path=path,
        message=message,
        hint=hint,
        details=tuple(details),
    )


@dataclass(frozen=True, slots=True)
class Held:
    """What a data folder holds of one redistributable, read once."""

    redist: str
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


def read_held(store: Store, redist: str, locked: Mapping[str, LockEntry] | None) -> Held:
    """Read every manifest held of one redistributable and compare it with the lock.

    `locked` is None where the lock could not be read, so that nothing can be said of it.
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
        path = store.relative(folder.place(label))
        try:
            data = folder.read(label)
        except ReadError as error:
            unreadable.append(label)
            findings.append(
                finding("unreadable", error.message, redist=redist, label=label, path=path)
            )
            continue
        if data is None:
            continue
        contents[label] = data
        hashes[label] = sha256_of(data)
        entry = None if locked is None else locked.get(str(label))
        if entry is None and locked is not None:
            findings.append(
                finding(
                    "unrecorded",
                    "held, but the lock has no record of it",
                    redist=redist,
                    label=label,
                    path=path,
                    hint="cudaredist download-manifests compares it with upstream and records it",
                )
            )
        elif entry is not None and entry.sha256 != hashes[label]:
            findings.append(
                finding(
                    "edited-locally",
                    f"edited locally: sha256 {hashes[label][:12]}…, recorded {entry.sha256[:12]}…",
                    redist=redist,
                    label=label,
                    path=path,
                    hint="restore it with git, or take upstream's by "
                    "cudaredist download-manifests --accept-changed",
                )
            )
        try:
            manifests[label] = read_manifest(data, label=label)
        except InvalidFileError as error:
            findings.append(
                finding(
                    "invalid",
                    "not a valid manifest",
                    redist=redist,
                    label=label,
                    path=path,
                    details=problems_of(error),
                )
            )
    findings += (
        finding(
            "missing-file",
            "recorded in the lock, but the file is not there",
            redist=redist,
            label=label,
            path=store.relative(folder.place(label)),
            hint=f"cudaredist download-manifests --redist {redist} --version {label}",
        )
        for label in sorted(Version.parse(text) for text in locked or ())
        if label not in hashes and label not in unreadable
    )
    return Held(
        redist, manifests, contents, hashes, locked or {}, tuple(unreadable), tuple(findings)
    )


def line_reports(
    redist: str, held: Sequence[Version], listed: Sequence[Version] | None
) -> tuple[LineReport, ...]:
    """Compare held and listed labels, release line by release line, oldest line first.

    `listed` is None where upstream was not asked. A line is *stale* where upstream has a newer
    label than the newest held of it, and *new* where nothing of it is held and its newest label is
    newer than everything held. Older lines that are not held are a maintainer's choice: *not-held*.
    """
    newest_held = max(held, default=None)
    lines = {label.line: label for label in sorted([*held, *(listed or ())])}
    reports = []
    for line in sorted(lines, key=lambda line: lines[line]):
        here = [label for label in held if label.line == line]
        there = [label for label in listed or () if label.line == line]
        newest = max(here, default=None)
        missing = sorted(x for x in there if x not in here and (newest is None or x > newest))
        reports.append(
            LineReport(
                redist=redist,
                line=line,
                held=None if newest is None else str(newest),
                upstream=str(max(there)) if there else None,
                missing=tuple(map(str, missing)),
                status=_line_status(newest, newest_held, missing, there, listed is not None),
            )
        )
    return tuple(reports)


def _line_status(
    newest: Version | None,
    newest_held: Version | None,
    missing: Sequence[Version],
    there: Sequence[Version],
    was_asked: bool,  # noqa: FBT001 - an internal split of one function
) -> LineStatus:
    if not was_asked:
        return "unknown"
    if newest is None:
        return "new" if newest_held is None or missing[-1] > newest_held else "not-held"
    if not there:
        return "local-only"
    return "stale" if missing else "current"


def freshness_findings(
    lines: Sequence[LineReport], held: Held, newer: Mapping[Version, Manifest]
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
            hint=f"cudaredist download-manifests --redist {held.redist} --version {newest}",
            details=details,
        )


def gone_findings(held: Held, listed: Sequence[Version]) -> Iterator[Finding]:
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
            hint=None if entry.gone else "cudaredist download-manifests records that",
            exit_code=EXIT_OK if entry.gone else EXIT_FINDINGS,
        )


def lost_platform_notes(held: Held) -> Iterator[Finding]:
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


def feature_findings(
    store: Store, held: Mapping[str, Held], redists: Sequence[str]
) -> Iterator[Finding]:
    """Find manifests whose feature file is missing, stale or broken, and orphaned feature files."""
    for redist in redists:
        hashes = held[redist].sha256 if redist in held else {}
        try:
            with_features = store.features(redist).labels()
        except ReadError as error:
            yield finding("unreadable", error.message, redist=redist)
            continue
        for label in sorted({*hashes, *with_features}):
            path = store.features(redist).place(label)
            if label not in with_features:
                yield finding(
                    "no-features",
                    "no feature file",
                    redist=redist,
                    label=label,
                    path=store.relative(path),
                    hint=_PROCESS_HINT,
                )
                continue
            model = yield from _own_file_findings(store, path, FILE_KINDS["features"])
            if label not in hashes:
                yield finding(
                    "orphan-features",
                    "a feature file without its manifest",
                    redist=redist,
                    label=label,
                    path=store.relative(path),
                )
            elif isinstance(model, Features) and (
                model.manifest_sha256 != hashes[label]
                or (model.redist, model.label) != (redist, str(label))
            ):
                yield finding(
                    "stale-features",
                    "made from another manifest than the one held",
                    redist=redist,
                    label=label,
                    path=store.relative(path),
                    hint=_PROCESS_HINT,
                )
            elif isinstance(model, Features) and model.rules != RULES:
                yield finding(
                    "stale-features",
                    f"made by other rules than today's ({model.rules}, not {RULES})",
                    redist=redist,
                    label=label,
                    path=store.relative(path),
                    hint=_PROCESS_HINT,
                )


def unknown_redist_findings(names: Sequence[str]) -> Iterator[Finding]:
    """Find names in the data folder or its lock that stand in no catalogue."""
    for name in names:
        if name not in REDISTS:
            yield finding(
                "unknown-redist",
                "is no redistributable, so nothing of it is checked",
                redist=name,
                hint="is the folder's name spelled right?",
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


def table_findings(store: Store, cuda_labels: Sequence[Version]) -> Iterator[Finding]:
    """Find tables that are broken or lack a CUDA release that is held."""
    for name, kind in _TABLES.items():
        path = store.table_path(name)
        if not path.exists():
            if cuda_labels:
                held = ", ".join(map(str, cuda_labels))
                yield finding(
                    "table-missing",
                    f"no such table, for the CUDA releases held: {held}",
                    path=store.relative(path),
                    hint=_table_hint(store, name, "makes it"),
                )
            continue
        model = yield from _own_file_findings(store, path, FILE_KINDS[kind])
        if isinstance(model, NvccCompat):
            known = set(model.releases)
        elif isinstance(model, Gpus):
            known = set(model.sources)
        else:
            continue
        lacking = [str(label) for label in cuda_labels if str(label) not in known]
        if lacking:
            yield finding(
                "table-lacks",
                f"has no entry for CUDA {', '.join(lacking)}",
                path=store.relative(path),
                hint=_table_hint(store, name, "adds it"),
            )


def _table_hint(store: Store, name: str, does: str) -> str:
    channel = "" if store.channel == "redist" else f" --channel {store.channel}"
    return f"cudaredist {TABLE_COMMANDS[name]}{channel} {does}"


def lock_findings(store: Store) -> Iterator[Finding]:
    """Find what is wrong with the lock file itself."""
    if store.lock_path.exists():
        yield from _own_file_findings(store, store.lock_path, FILE_KINDS["lock"])


def _own_file_findings(
    store: Store, path: Path, kind: FileKind
) -> Generator[Finding, None, OwnModel | None]:
    try:
        data = read_file(path) or b""
        document = parse_own_json(data)
        model = read_own_document(document, data, kind.model)
    except ReadError as error:
        yield finding("unreadable", error.message, path=store.relative(path))
        return None
    except CudaRedistError as error:
        yield finding(
            "invalid",
            f"not a valid {kind.name} file",
            path=store.relative(path),
            details=problems_of(error),
        )
        return None
    if canonical_json(document) != data:
        yield finding(
            "not-canonical",
            "not in canonical form (sorted keys, two spaces, final newline)",
            path=store.relative(path),
            hint="the command that writes it restores the form",
        )
    return model
