"""Release lines: local labels compared with those that upstream lists."""

from collections.abc import Sequence

from cudaredist.primitives import Version
from cudaredist.reports.manifest_reports import LineReport, LineStatus


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
