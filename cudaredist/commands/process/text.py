"""The reports of process-manifests as text."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from cudaredist.cli.text import columns, counted
from cudaredist.commands.process.report import ArchiveOutcome, ArchiveStatus, ProcessReport
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.outcomes import FeatureOutcome
from cudaredist.grouping import grouped

_FAILURES_SHOWN = 3
"""Maximum number of failures to show separately for one reason."""


def process_text(report: ProcessReport) -> Iterator[str]:
    """Yield a line for each manifest, and the totals."""
    yield from columns(
        [
            (
                outcome.redist,
                outcome.release,
                outcome.status.replace("-", " "),
                f"{outcome.examined} of {outcome.archives} archives examined",
                counted(
                    {
                        "failed": outcome.failed,
                        "skipped": outcome.skipped,
                        "notes": outcome.notes or 0,
                    }
                ),
            )
            for outcome in report.manifests
        ]
    )
    counts = Counter(archive.status for archive in report.archives)
    total = counted({status: counts[status] for status in get_args(ArchiveStatus)})
    yield f"archives: {total or 'none'}; {report.fetched_bytes:,} bytes read"
    if any(outcome.notes for outcome in report.manifests):
        yield "notes are on unusual contents; `cudaredist check --archive-notes` lists them"
    reasons = Counter(archive.reason for archive in report.archives if archive.reason is not None)
    if reasons:
        yield "skipped: " + ", ".join(f"{reasons[text]} {text}" for text in sorted(reasons))


def process_errors(
    outcomes: Iterable[FeatureOutcome | ArchiveOutcome],
) -> Iterator[tuple[str, ErrorReport]]:
    """Yield errors with their subjects, combined by reason."""
    groups = grouped((o.error.reason, (o.subject, o.error)) for o in outcomes if o.error)
    for reason, group in groups.items():
        if len(group) <= _FAILURES_SHOWN:
            yield from group
            continue
        first, error = group[0]
        about = f"{first} and {len(group) - 1} more"
        yield about, error.changed(message=reason)
