"""The report of versions as text."""

import json
from collections.abc import Iterator

from cudaredist.cli.text import columns
from cudaredist.commands.versions.report import VersionsReport
from cudaredist.redists import NVIDIA_BASE


def versions_text(report: VersionsReport) -> Iterator[str]:
    """Yield the release lines, local and upstream."""
    rows = [("redist", "line", "local", "date", "upstream", "state")]
    for line in report.lines:
        newest = line.upstream or line.held
        mark = " (early access)" if newest in line.early_access else ""
        local, upstream = line.held or "-", line.upstream or "-"
        date = report.dates.get(line.redist, {}).get(local, "-")
        rows.append((line.redist, line.line, local, date, upstream, f"{line.status}{mark}"))
    yield from columns(rows)
    if report.absent:
        yield f"not at this source: {', '.join(report.absent)}"


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
