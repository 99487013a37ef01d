"""The report of download-manifests as text."""

from collections import Counter
from collections.abc import Iterable, Iterator

from cudaredist.cli.text import columns, counted, nvidia_channel_lines
from cudaredist.commands.download.report import DownloadReport, RedistOutcome
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.outcomes import ManifestOutcome
from cudaredist.grouping import grouped


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
        yield from (f"{outcome.redist} {move}" for move in outcome.moved)
        yield from nvidia_channel_lines(outcome.redist, outcome.channels)
    if report.is_lock_changed and all(o.status == "unchanged" for o in report.manifests):
        yield "only the lock changes"
    counts: Counter[str] = Counter(outcome.status for outcome in report.manifests)
    counts.update(outcome.status for outcome in report.redists if outcome.status == "failed")
    sources = {o.source for o in report.manifests} | {o.source for o in report.redists}
    origin = ", ".join(sorted(filter(None, sources)))
    yield (counted(counts) or "nothing to do") + (f"; from {origin}" if origin else "")


def download_errors(
    redists: Iterable[RedistOutcome],
    manifests: Iterable[ManifestOutcome],
    errors: Iterable[ErrorReport],
) -> Iterator[tuple[str, ErrorReport]]:
    """Yield the failures of a download, grouped by reason."""
    failures = [
        *((o.redist, o.error) for o in redists if o.status == "failed"),
        *((o.subject, o.error) for o in manifests),
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
            error = error.changed(message=message)
        yield ", ".join(subject for subject, _ in items), error
    yield from (("", error) for error in errors)
