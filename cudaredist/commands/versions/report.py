"""The report of versions."""

import json
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from cudaredist.cli.text import columns, nvidia_channel_lines
from cudaredist.formats.base import OwnModel, optional
from cudaredist.formats.report import ErrorReport, Report
from cudaredist.redists import NVIDIA_BASE
from cudaredist.words import plural

LineStatus = Literal["current", "stale", "new", "not-held", "local-only", "unknown"]


class LineReport(OwnModel):
    """A release line of a redistributable, compared to upstream."""

    redist: str
    line: str
    held: str | None = Field(description="Newest local label. Null: none")
    upstream: str | None = Field(description="Newest label upstream. Null: none or unknown")
    missing: tuple[str, ...] = Field(
        description="Labels upstream that are newer than all local ones"
    )
    status: LineStatus
    early_access: tuple[str, ...] = optional("Labels of early-access releases", ())

    @property
    def is_behind(self) -> bool:
        """Whether upstream has a newer release or a new line."""
        return self.status in {"stale", "new"}


class VersionsReport(Report):
    """The result of versions."""

    command: Literal["versions"] = "versions"
    lines: tuple[LineReport, ...]
    releases: dict[str, tuple[str, ...]] = Field(
        description="Releases upstream (offline: local releases), oldest first. Absent: unknown"
    )
    dates: dict[str, dict[str, str]] = Field(
        default={}, description="Day of local releases, by redistributable and release"
    )
    channels: dict[str, dict[str, tuple[str, ...]]] = Field(
        default={},
        description="Releases of each channel of NVIDIA's second server, by redistributable",
    )
    moved: dict[str, dict[str, str]] = Field(
        default={}, description="Local releases that left their channel, by redistributable"
    )
    absent: tuple[str, ...] = Field(default=(), description="Redistributables without a source")
    hint: str | None = Field(
        default=None, description="Why there are no releases, with a command. Null: there are some"
    )
    errors: tuple[ErrorReport, ...] = ()


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
    for redist, nvidia_channels in report.channels.items():
        yield from nvidia_channel_lines(redist, nvidia_channels)
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
