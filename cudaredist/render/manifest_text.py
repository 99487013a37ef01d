"""Reports on manifests and archives as text."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from cudaredist.render.common import columns, counted, grouped
from cudaredist.reports.archive_reports import (
    ArchiveOutcome,
    ArchiveStatus,
    FeatureOutcome,
    PeekedArchive,
    PeekReport,
    ProcessReport,
)
from cudaredist.reports.manifest_reports import DownloadReport
from cudaredist.reports.mirror_reports import MirrorSyncReport
from cudaredist.reports.report import ErrorReport

_FAILURES_SHOWN = 3
"""Maximum number of failures to show separately for one reason."""


def download_text(report: DownloadReport) -> Iterator[str]:
    """Yield the outcome of each manifest, and redistributables without manifests."""
    rows = [
        (o.redist, o.release, o.status.replace("-", " "), f"{o.size:,} bytes" if o.size else "")
        for o in report.manifests
    ]
    if rows:
        yield from columns(rows)
    absent = [outcome.redist for outcome in report.redists if outcome.status == "absent"]
    if absent:
        yield f"not at this source: {', '.join(absent)}"
    for outcome in report.redists:
        for label in outcome.gone:
            yield f"{outcome.redist} {label}: upstream no longer lists it"
    if report.is_lock_changed and all(o.status == "unchanged" for o in report.manifests):
        yield "only the lock changes"
    statuses: list[str] = [o.status for o in report.manifests]
    statuses += [o.status for o in report.redists if o.status == "failed"]
    counts = Counter(statuses)
    answered = [o.source for o in report.manifests] + [o.source for o in report.redists]
    sources = sorted({source for source in answered if source})
    yield f"{counted(counts) or 'nothing to do'}" + (
        f"; from {', '.join(sources)}" if sources else ""
    )


def download_errors(
    report: DownloadReport | MirrorSyncReport,
) -> Iterator[tuple[str, ErrorReport]]:
    """Yield the failed items and their errors, grouped by reason."""
    failures = [
        *((o.redist, o.error) for o in report.redists if o.status == "failed"),
        *((f"{o.redist} {o.release}", o.error) for o in report.manifests),
    ]
    groups = grouped(
        ((error.reason, error.hint, error.changes), (subject, error))
        for subject, error in failures
        if error is not None
    )
    for items in groups.values():
        error = items[0][1]
        origin = error.message.removesuffix(f": {error.reason}")
        if len(items) > 1 and origin != error.message:
            message = f"{error.reason}; the first at {origin}"
            error = error.model_copy(update={"message": message})
        yield ", ".join(subject for subject, _ in items), error
    yield from (("lock", error) for error in report.errors)


def process_text(report: ProcessReport) -> Iterator[str]:
    """Yield a line for each manifest, and the totals."""
    yield from columns(
        [
            (
                outcome.redist,
                outcome.release,
                outcome.status.replace("-", " "),
                f"{outcome.examined} of {outcome.archives} archives examined",
                counted({"failed": outcome.failed, "skipped": outcome.skipped}),
            )
            for outcome in report.manifests
        ]
    )
    counts = Counter(archive.status for archive in report.archives)
    total = counted({status: counts[status] for status in get_args(ArchiveStatus)})
    yield f"archives: {total or 'none'}; {report.fetched_bytes:,} bytes read"
    reasons = Counter(archive.reason for archive in report.archives if archive.reason is not None)
    if reasons:
        yield "skipped: " + ", ".join(f"{reasons[text]} {text}" for text in sorted(reasons))


def process_errors(
    outcomes: Iterable[FeatureOutcome | ArchiveOutcome | PeekedArchive],
) -> Iterator[tuple[str, ErrorReport]]:
    """Yield errors with their subjects, combined by reason."""
    groups = grouped((o.error.reason, (_subject(o), o.error)) for o in outcomes if o.error)
    for reason, group in groups.items():
        if len(group) <= _FAILURES_SHOWN:
            yield from group
            continue
        first, error = group[0]
        about = f"{first} and {len(group) - 1} more"
        yield about, error.model_copy(update={"message": reason})


def _subject(outcome: FeatureOutcome | ArchiveOutcome | PeekedArchive) -> str:
    subject = [outcome.redist, outcome.release]
    if not isinstance(outcome, FeatureOutcome):
        subject += [outcome.package, outcome.platform, outcome.variant or ""]
    return " ".join(filter(None, subject))


def peek_text(report: PeekReport) -> Iterator[str]:
    """Yield a line for each zip archive of --peek."""
    yield from columns(
        [
            (
                archive.redist,
                archive.release,
                archive.package,
                " ".join(filter(None, (archive.platform, archive.variant))),
                "unknown" if archive.outputs is None else " ".join(archive.outputs),
                f"{archive.fetched:,} of {archive.size or 0:,} bytes",
            )
            for archive in report.archives
        ]
    )
    undecided = sum(archive.undecided_libraries for archive in report.archives)
    if undecided:
        yield (
            f"{undecided} .lib files are listed as static, because --peek does not read them; "
            "import libraries would be in the output lib"
        )
    yield f"unverified; skipped {report.left_out} archives in other formats than zip"
