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
from cudaredist.errors import listed
from cudaredist.formats.report import ErrorReport


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
    yield (
        f"archives: {archives}; {report.fetched_bytes:,} bytes fetched; existing files compared "
        f"by {report.compared_by}"
    )


def sync_errors(report: MirrorSyncReport) -> Iterator[tuple[str, ErrorReport]]:
    """Yield the errors of manifests and archives."""
    yield from download_errors(report.redists, report.manifests, report.errors)
    yield from ((one.path, one.error) for one in report.archives if one.error is not None)


def verify_text(report: MirrorVerifyReport) -> Iterator[str]:
    """List the defects, each with its hint, then the totals."""
    for defect in report.defects:
        yield f"{defect.kind}: {defect.path}: {defect.message}"
        yield f"    hint: {defect.hint}"
    count = len(report.defects)
    yield (
        f"{report.files} files, {report.contents} distinct contents, {report.size:,} bytes: "
        f"{count or 'no'} defect{'' if count == 1 else 's'}"
    )


def prune_text(report: MirrorPruneReport) -> Iterator[str]:
    """List the removed files, then the totals."""
    yield from report.removed
    verb = "to remove" if report.is_dry_run else "removed"
    releases = listed(report.releases) or "no release"
    yield (
        f"{len(report.removed)} files {verb}, {report.freed_bytes:,} bytes; {report.kept} kept, of "
        f"{releases}"
    )
