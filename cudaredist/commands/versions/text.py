"""The report of versions as text."""

import json
from collections.abc import Iterator

from cudaredist.cli.text import channel_lines, columns
from cudaredist.commands.versions.report import VersionsReport
from cudaredist.errors import plural
from cudaredist.redists import NVIDIA_BASE

_DESCRIBED = 3
"""Number of redistributables to describe in sentences."""


def versions_text(report: VersionsReport) -> Iterator[str]:
    """Yield a sentence about each of few redistributables, then their release lines."""
    if report.hint is not None:
        yield report.hint
        return
    if len(report.releases) <= _DESCRIBED:
        yield from (_sentence(redist, report) for redist in report.releases)
    rows = [("redist", "line", "local", "date", "upstream", "state")]
    for line in report.lines:
        newest = line.upstream or line.held
        mark = " (early access)" if newest in line.early_access else ""
        local, upstream = line.held or "-", line.upstream or "-"
        date = report.dates.get(line.redist, {}).get(local, "-")
        rows.append((line.redist, line.line, local, date, upstream, f"{line.status}{mark}"))
    yield from columns(rows)
    for redist, channels in report.channels.items():
        yield from channel_lines(redist, channels)
    for redist, moves in report.moved.items():
        yield from (f"{redist} {move}" for move in moves.values())
    if report.absent:
        yield f"not at this source: {', '.join(report.absent)}"


def _sentence(redist: str, report: VersionsReport) -> str:
    """Return the number of known releases, the oldest and the newest with their dates."""
    labels, dates = report.releases[redist], report.dates.get(redist, {})
    named = [f"{x} ({dates[x]})" if x in dates else x for x in (labels[:1] + labels[-1:])]
    return f"{redist}: {plural(len(labels), 'release')}, {' to '.join(dict.fromkeys(named))}"


def versions_renovate(report: VersionsReport) -> Iterator[str]:
    """Yield the releases of one redistributable for Renovate's custom data source.

    Local releases have their date.

    Without a listing, yields nothing: an empty list would mean that all releases are gone.
    """
    for redist, labels in report.releases.items():
        dates = report.dates.get(redist, {})
        releases = [
            {"version": label} | ({"releaseTimestamp": dates[label]} if label in dates else {})
            for label in labels
        ]
        document = {"releases": releases, "homepage": NVIDIA_BASE}
        yield from json.dumps(document, indent=2).splitlines()
