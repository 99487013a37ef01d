"""versions: the local releases of redistributables, without questions to a source."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from cudaredist.commands.versions.report import (
    ChannelReleases,
    LineReport,
    LineStatus,
    VersionsReport,
)
from cudaredist.errors import EXIT_OK
from cudaredist.formats.names import Channel
from cudaredist.hints import again
from cudaredist.primitives import Version
from cudaredist.redists import Redist
from cudaredist.store.data_folder import ManifestSummary, Store

_Value = TypeVar("_Value")


def line_reports(
    channel: Channel,
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
                channel=channel,
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


def local_versions(
    store: Store, redists: Sequence[Redist], *, with_previews: bool = False
) -> VersionsReport:
    """Return the local release lines of redistributables.

    Early-access releases are only among the `releases` of the report `with_previews`.
    """
    lines: list[LineReport] = []
    releases: dict[str, tuple[str, ...]] = {}
    dates: dict[str, dict[str, str]] = {}
    for redist in redists:
        folder = store.manifests(redist.name)
        local = folder.labels()
        summaries = {label: folder.summary(label) for label in local}
        previews = {label for label, about in summaries.items() if about.is_preview}
        lines += line_reports(store.channel, redist.name, local, None, previews)
        selected = (label for label in local if with_previews or label not in previews)
        releases[redist.name] = tuple(map(str, selected))
        dates[redist.name] = dates_of(summaries)
    return VersionsReport(
        channel=store.channel,
        lines=tuple(lines),
        releases=without_empty(releases),
        dates=without_empty(dates),
        hint=None if lines else _nothing_local(store, redists),
        exit_code=EXIT_OK,
    )


def with_other_channel(report: VersionsReport, other: VersionsReport) -> VersionsReport:
    """Add the local releases of the other channel. NVIDIA's archives come before wheels."""
    lines = sorted((*report.lines, *other.lines), key=lambda line: (line.redist, line.channel))
    releases = ChannelReleases(channel=other.channel, releases=other.releases, dates=other.dates)
    hint = None if lines else report.hint
    return report.changed(lines=tuple(lines), other=releases, hint=hint)


def _nothing_local(store: Store, redists: Sequence[Redist]) -> str:
    """Return the sentence for local data without releases, with a command that lists some."""
    other = store.in_other_channel()
    command = f"for those upstream, run `{again(without=['--offline'])}`"
    if {redist.name for redist in redists} & {*other.redists()}:
        command = f"--channel {other.channel} has some: run `{again(channel=other.channel)}`"
    return f"no local releases for --channel {store.channel}; {command}"


def without_empty(values: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the redistributables with a value that is not empty."""
    return {redist: value for redist, value in values.items() if value}


def dates_of(summaries: Mapping[Version, ManifestSummary]) -> dict[str, str]:
    """Return the days of releases that state one, by label."""
    return {str(label): about.date for label, about in summaries.items() if about.date}
