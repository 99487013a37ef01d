"""The report of versions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from cudaredist.cli.text import columns, nvidia_channel_lines
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import CHANNEL_TITLES, Channel
from cudaredist.formats.plain_report import PlainEntry, PlainReport
from cudaredist.redists import NVIDIA_BASE
from cudaredist.words import plural

LineStatus = Literal["current", "stale", "new", "not-held", "local-only", "unknown"]


class LineReport(PlainEntry):
    """A release line of a redistributable, compared to upstream."""

    channel: Channel
    redist: str
    line: str
    held: Annotated[str | None, Field(description="Newest local label. Null: none")]
    upstream: Annotated[
        str | None, Field(description="Newest label upstream. Null: none or unknown")
    ]
    missing: Annotated[
        tuple[str, ...], Field(description="Labels upstream that are newer than all local ones")
    ]
    status: LineStatus
    early_access: Annotated[
        tuple[str, ...], Field(description="Labels of early-access releases", exclude_if=not_)
    ] = ()

    @property
    def is_behind(self) -> bool:
        """Whether upstream has a newer release or a new line."""
        return self.status in {"stale", "new"}


class ChannelReleases(PlainEntry):
    """The local releases of a channel."""

    channel: Channel
    releases: Annotated[
        dict[str, tuple[str, ...]],
        Field(description="Local releases by redistributable, oldest first"),
    ]
    dates: Annotated[
        dict[str, dict[str, str]],
        Field(description="Day of local releases, by redistributable and release"),
    ]


class VersionsReport(PlainReport):
    """The result of versions."""

    command: Literal["versions"] = "versions"
    channel: Annotated[
        Channel, Field(description="The channel of `releases`, whose source was asked")
    ]
    lines: tuple[LineReport, ...]
    releases: Annotated[
        dict[str, tuple[str, ...]],
        Field(
            description="Releases upstream (offline: local releases), oldest first. Absent: unknown"
        ),
    ]
    dates: Annotated[
        dict[str, dict[str, str]],
        Field(description="Day of local releases, by redistributable and release"),
    ] = field(default_factory=dict)
    channels: Annotated[
        dict[str, dict[str, tuple[str, ...]]],
        Field(description="Releases of each channel of NVIDIA's second server, by redistributable"),
    ] = field(default_factory=dict)
    moved: Annotated[
        dict[str, dict[str, str]],
        Field(description="Local releases that left their channel, by redistributable"),
    ] = field(default_factory=dict)
    other: Annotated[
        ChannelReleases | None,
        Field(description="Of the other channel, which is never asked. Null: not selected"),
    ] = None
    absent: Annotated[tuple[str, ...], Field(description="Redistributables without a source")] = ()
    hint: Annotated[
        str | None,
        Field(description="Why there are no releases, with a command. Null: there are some"),
    ] = None
    errors: tuple[ErrorReport, ...] = ()


_DESCRIBED = 3
"""Number of redistributables to describe in sentences."""


def versions_text(report: VersionsReport) -> Iterator[str]:
    """Yield a sentence about each of few redistributables, then their release lines."""
    if report.hint is not None:
        yield report.hint
        return
    own = ChannelReleases(channel=report.channel, releases=report.releases, dates=report.dates)
    kinds = [own] if report.other is None else [own, report.other]
    yield from _sentences(sorted(kinds, key=lambda kind: kind.channel))  # `redist` comes first
    dates_of = {kind.channel: kind.dates for kind in kinds}
    rows = [("redist", "kind", "line", "local", "date", "upstream", "state")]
    for line in report.lines:
        newest = line.upstream or line.held
        mark = " (early access)" if newest in line.early_access else ""
        local, upstream = line.held or "-", line.upstream or "-"
        date = dates_of[line.channel].get(line.redist, {}).get(local, "-")
        kind = CHANNEL_TITLES[line.channel]
        rows.append((line.redist, kind, line.line, local, date, upstream, f"{line.status}{mark}"))
    yield from columns(rows)
    for redist, nvidia_channels in report.channels.items():
        yield from nvidia_channel_lines(redist, nvidia_channels)
    for redist, moves in report.moved.items():
        yield from (f"{redist} {move}" for move in moves.values())
    if report.absent:
        yield f"not at this source: {', '.join(report.absent)}"


def _sentences(kinds: Sequence[ChannelReleases]) -> Iterator[str]:
    """Yield a sentence for each kind of few redistributables."""
    names = sorted({redist for kind in kinds for redist in kind.releases})
    for redist in names if len(names) <= _DESCRIBED else ():
        for kind in kinds:
            labels, dates = kind.releases.get(redist, ()), kind.dates.get(redist, {})
            if labels:
                yield _sentence(redist, kind.channel, labels, dates)


def _sentence(
    redist: str, channel: Channel, labels: Sequence[str], dates: Mapping[str, str]
) -> str:
    """Return the number of known releases, the oldest and the newest with their dates."""
    named = [f"{x} ({dates[x]})" if x in dates else x for x in (*labels[:1], *labels[-1:])]
    count = plural(len(labels), "release")
    return f"{redist}, {CHANNEL_TITLES[channel]}: {count}, {' to '.join(dict.fromkeys(named))}"


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
