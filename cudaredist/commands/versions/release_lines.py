"""Compare local release lines with upstream's."""

from collections.abc import Collection, Iterable, Sequence

from cudaredist.commands.versions.report import LineReport, LineStatus
from cudaredist.primitives import Version


def line_reports(
    redist: str,
    local: Sequence[Version],
    listed: Sequence[Version] | None,
    previews: Collection[Version] = (),
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
        status: LineStatus = "stale" if missing else "current"
        if listed is None:
            status = "unknown"
        elif newest is None:
            is_new = newest_local is None or missing[-1] > newest_local
            status = "new" if is_new else "not-held"
        elif not upstream_labels:
            status = "local-only"
        reports.append(
            LineReport(
                redist=redist,
                line=line,
                held=None if newest is None else str(newest),
                upstream=str(max(upstream_labels)) if upstream_labels else None,
                missing=tuple(map(str, missing)),
                status=status,
                early_access=tuple(str(x) for x in sorted(previews) if x.line == line),
            )
        )
    return tuple(reports)


def newest_before(label: Version, labels: Iterable[Version]) -> Version | None:
    """Return the newest older label of the same line, else of all."""
    older = [other for other in labels if other < label]
    in_line = [other for other in older if other.line == label.line]
    return max(in_line or older, default=None)
