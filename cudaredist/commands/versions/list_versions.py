"""versions: list local and upstream labels without fetching manifests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from cudaredist.commands.versions.report import (
    ChannelReleases,
    LineReport,
    LineStatus,
    VersionsReport,
)
from cudaredist.errors import CudaRedistError, NotAtSourceError, worst_exit_code
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import Channel
from cudaredist.hints import again
from cudaredist.primitives import PREVIEW, Version
from cudaredist.redists import Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.data_folder import ManifestFolder, Store
from cudaredist.store.upstream import (
    nvidia_channel_moves,
    nvidia_channel_query,
    unknown_nvidia_channels,
)
from cudaredist.tasks import Workers, each, raise_if_stopped

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


def read_versions(
    store: Store,
    redists: Sequence[Redist],
    sources: SourceChain | None,
    workers: Workers,
    *,
    is_explicit: bool = False,
    nvidia_channels: frozenset[str] = frozenset(),
) -> VersionsReport:
    """Return the local and upstream release lines of redistributables.

    Without `sources`, return only local ones. New releases of NVIDIA's second server require that
    their channel is in `nvidia_channels`. If upstream lacks a redistributable, that is a failure if
    the user named it, or if it has local manifests that NVIDIA wrote. Failures are in the report
    and decide its exit code.
    """
    pre = PREVIEW in nvidia_channels
    answers = _answers(store, redists, sources, workers, nvidia_channels)
    lines: list[LineReport] = []
    releases: dict[str, tuple[str, ...]] = {}
    dates: dict[str, dict[str, str]] = {}
    of_nvidia_channels: dict[str, dict[str, tuple[str, ...]]] = {}
    moved: dict[str, dict[str, str]] = {}
    absent: list[str] = []
    # A source that is down causes the same message for every redistributable.
    errors: dict[str, ErrorReport] = {}
    for redist, answer in zip(redists, answers, strict=True):
        folder = store.manifests(redist.name)
        local = folder.labels()
        dates[redist.name] = _dates(folder, local)
        previews = {label for label in local if folder.is_preview(label)}
        if isinstance(answer, Listing):
            moves = nvidia_channel_moves(store.recorded(redist.name), answer)
            moved[redist.name] = {str(move.label): move.text for move in moves}
            of_nvidia_channels[redist.name] = dict(answer.nvidia_channels)
            previews -= {move.label for move in moves if move.after != PREVIEW}
            previews |= {label for label in answer.previews if label not in local}
        elif isinstance(answer, NotAtSourceError):
            absent.append(redist.name)
        is_expected = is_explicit or (folder.is_there() and not redist.handwritten)
        errors |= _failures(answer, is_expected=is_expected)
        upstream = _published(answer, local, pre=pre)
        if local or upstream:
            lines += line_reports(store.channel, redist.name, local, upstream, previews)
        known = local if sources is None else upstream
        selected = (label for label in known or () if pre or label not in previews)
        releases[redist.name] = tuple(map(str, selected))
    if sources is not None and not errors:
        errors |= _unknown(nvidia_channels, of_nvidia_channels)
    return VersionsReport(
        channel=store.channel,
        lines=tuple(lines),
        releases=_without_empty(releases),
        dates=_without_empty(dates),
        channels=_without_empty(of_nvidia_channels),
        moved=_without_empty(moved),
        absent=tuple(sorted(absent)),
        hint=_nothing_local(store, redists) if sources is None and not lines else None,
        errors=tuple(errors[message] for message in sorted(errors)),
        exit_code=worst_exit_code(error.exit_code for error in errors.values()),
    )


def with_other_channel(report: VersionsReport, other: VersionsReport) -> VersionsReport:
    """Add the local releases of the other channel. NVIDIA's archives come before wheels."""
    lines = sorted((*report.lines, *other.lines), key=lambda line: (line.redist, line.channel))
    releases = ChannelReleases(channel=other.channel, releases=other.releases, dates=other.dates)
    return report.model_copy(
        update={"lines": tuple(lines), "other": releases, "hint": None if lines else report.hint}
    )


def _nothing_local(store: Store, redists: Sequence[Redist]) -> str:
    """Return the sentence for local data without releases, with a command that lists some."""
    other = store.in_other_channel()
    command = f"for those upstream, run `{again(without=['--offline'])}`"
    if {redist.name for redist in redists} & {*other.redists()}:
        command = f"--channel {other.channel} has some: run `{again(channel=other.channel)}`"
    return f"no local releases for --channel {store.channel}; {command}"


def _answers(
    store: Store,
    redists: Sequence[Redist],
    sources: SourceChain | None,
    workers: Workers,
    nvidia_channels: frozenset[str],
) -> Sequence[Listing | CudaRedistError | None]:
    """Return the listing of each redistributable, or its error. None: not asked."""
    workers.progress.expect(len(redists))
    if sources is None:
        return [None] * len(redists)
    ask = partial(_ask, sources, store, workers, nvidia_channels)
    return each(redists, ask, workers.jobs, workers.stop)


def _without_empty(values: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the redistributables with a value that is not empty."""
    return {redist: value for redist, value in values.items() if value}


def _failures(
    answer: Listing | CudaRedistError | None, *, is_expected: bool
) -> dict[str, ErrorReport]:
    """Return the errors of a redistributable's listing by message.

    That a source lacks the redistributable is an error only if `is_expected`.
    """
    failures: Sequence[CudaRedistError] = ()
    if isinstance(answer, Listing):
        failures = answer.failures
    elif isinstance(answer, NotAtSourceError):
        failures = (answer,) if is_expected else ()
    elif answer is not None:
        failures = (answer,)
    return {error.message: ErrorReport.of(error) for error in failures}


def _published(
    answer: Listing | CudaRedistError | None, local: Sequence[Version], *, pre: bool
) -> tuple[Version, ...] | None:
    """Return the labels upstream, None if they are unknown.

    New early-access releases require `pre`.
    """
    if not isinstance(answer, Listing):
        return None
    if pre:
        return tuple(answer.labels)
    return tuple(label for label in answer.labels if label in local or label not in answer.previews)


def _dates(folder: ManifestFolder, labels: Iterable[Version]) -> dict[str, str]:
    """Return the days of local releases, by label."""
    days = {}
    for label in labels:
        day = folder.date(label)
        if day:
            days[str(label)] = day
    return days


def _unknown(
    nvidia_channels: frozenset[str], listed: Mapping[str, Mapping[str, object]]
) -> dict[str, ErrorReport]:
    """Return the errors for selected NVIDIA channels that no redistributable has, by message."""
    known = {name for names in listed.values() for name in names}
    return {e.message: ErrorReport.of(e) for e in unknown_nvidia_channels(nvidia_channels, known)}


def _ask(
    sources: SourceChain,
    store: Store,
    workers: Workers,
    nvidia_channels: frozenset[str],
    redist: Redist,
) -> Listing:
    """Return the listing of a redistributable from the sources."""
    try:
        raise_if_stopped(workers.stop)
        query = nvidia_channel_query(store, redist, nvidia_channels)
        return sources.listing(redist.manifest_folders, (), query)
    finally:
        workers.progress.done()
