"""Compare local release lines with upstream's."""

from collections.abc import Sequence

from cudaredist.primitives import Version
from cudaredist.reports.manifest_reports import LineReport, LineStatus


def line_reports(
    redist: str, local: Sequence[Version], listed: Sequence[Version] | None
) -> tuple[LineReport, ...]:
    """Compare local and upstream labels by release line, oldest first.

    `listed` is None if upstream was not asked. A line is *stale* if upstream has a newer label than
    the newest local one. A line without local labels is *new* if its newest label is newer than all
    local labels. Otherwise it is an older line that a maintainer chose not to download.
    """
    newest_local = max(local, default=None)
    lines = {label.line: label for label in sorted([*local, *(listed or ())])}
    reports = []
    for line in sorted(lines, key=lambda line: lines[line]):
        local_labels = [label for label in local if label.line == line]
        upstream_labels = [label for label in listed or () if label.line == line]
        newest = max(local_labels, default=None)
        missing = sorted(
            x for x in upstream_labels if x not in local_labels and (newest is None or x > newest)
        )
        reports.append(
            LineReport(
                redist=redist,
                line=line,
                held=None if newest is None else str(newest),
                upstream=str(max(upstream_labels)) if upstream_labels else None,
                missing=tuple(map(str, missing)),
                status=_line_status(
                    newest, newest_local, missing, upstream_labels, listed is not None
                ),
            )
        )
    return tuple(reports)


def _line_status(
    newest: Version | None,
    newest_local: Version | None,
    missing: Sequence[Version],
    upstream_labels: Sequence[Version],
    is_listed: bool,  # noqa: FBT001 - an internal split of one function
) -> LineStatus:
    if not is_listed:
        return "unknown"
    if newest is None:
        return "new" if newest_local is None or missing[-1] > newest_local else "not-held"
    if not upstream_labels:
        return "local-only"
    return "stale" if missing else "current"
