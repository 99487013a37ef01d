"""The results of mirror as text."""

from collections import Counter
from collections.abc import Iterator

from cudaredist.cli.text import counted
from cudaredist.commands.download.text import download_errors
from cudaredist.commands.mirror.report import (
    MirrorPruneReport,
    MirrorSyncReport,
    MirrorVerifyReport,
)
from cudaredist.formats.error_report import ErrorReport
from cudaredist.words import listed, plural


def sync_text(report: MirrorSyncReport) -> Iterator[str]:
    """Count manifests and archives, and list gone releases."""
    for outcome in report.redists:
        for label in outcome.gone:
            yield f"{outcome.redist} {label}: upstream no longer lists it; the mirror keeps it"
    manifests, archives = (
        counted(dict(sorted(Counter(one.status for one in outcomes).items()))) or "none"
        for outcomes in (report.manifests, report.archives)
    )
    names = listed([o.subject for o in report.manifests])
    yield f"manifests: {manifests}" + (f" ({names})" if names else "")
    fetched = f"{report.fetched_bytes:,} bytes fetched"
    if report.is_dry_run:
        fetched = f"{report.missing_bytes:,} bytes to fetch"
        if report.unknown_sizes:
            fetched += f", and {plural(report.unknown_sizes, 'archive')} of unknown size"
    yield f"archives: {archives}; {fetched}; existing files compared by {report.compared_by}"
    if report.other_files:
        others = plural(len(report.other_files), "other file")
        yield f"{others} to change ({listed(report.other_files)})"


def sync_errors(report: MirrorSyncReport) -> Iterator[tuple[str, ErrorReport]]:
    """Yield the errors of manifests and archives."""
    yield from download_errors(report.redists, report.manifests, report.errors)
    yield from ((one.path, one.error) for one in report.archives if one.error is not None)


def verify_text(report: MirrorVerifyReport) -> Iterator[str]:
    """List the defects, each with its hint, then the totals."""
    for defect in report.defects:
        yield f"{defect.kind}: {defect.path}: {defect.message}"
        yield f"    hint: {defect.hint}"
    files = f"{plural(report.files, 'file')}, {plural(report.contents, 'distinct content')}"
    defects = plural(len(report.defects), "defect") if report.defects else "no defects"
    yield f"{files}, {report.size:,} bytes: {defects}"


def prune_text(report: MirrorPruneReport) -> Iterator[str]:
    """List the removed files, then the totals."""
    yield from report.removed
    verb = "to remove" if report.is_dry_run else "removed"
    files = f"{plural(len(report.removed), 'file')} {verb}, {report.freed_bytes:,} bytes"
    yield f"{files}; {report.kept:,} kept, of {listed(report.releases) or 'no release'}"
    if report.other_files:
        others = plural(len(report.other_files), "other file")
        yield f"{others} to change ({listed(report.other_files)})"
