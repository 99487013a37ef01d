"""versions: list local and upstream labels without fetching manifests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from cudaredist.commands.versions.report import LineReport, LineStatus, VersionsReport
from cudaredist.errors import CudaRedistError, NotAtSourceError, worst_exit_code
from cudaredist.formats.report import ErrorReport
from cudaredist.hints import again
from cudaredist.primitives import PREVIEW, Version
from cudaredist.redists import Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.data_folder import Store
from cudaredist.store.upstream import channel_moves, channel_query, unknown_channels
from cudaredist.tasks import Workers, each, raise_if_stopped


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


def read_versions(
    store: Store,
    redists: Sequence[Redist],
    sources: SourceChain | None,
    workers: Workers,
    *,
    is_explicit: bool = False,
    channels: frozenset[str] = frozenset(),
) -> VersionsReport:
    """Return the local and upstream release lines of redistributables.

    Without `sources`, return only local ones. New releases of NVIDIA's second server require that
    their channel is in `channels`. If upstream lacks a redistributable, that is a failure if the
    user named it, or if it has local manifests that NVIDIA wrote. Failures are in the report and
    decide its exit code.
    """
    pre, answers = PREVIEW in channels, _answers(store, redists, sources, workers, channels)
    lines: list[LineReport] = []
    releases: dict[str, tuple[str, ...]] = {}
    dates: dict[str, dict[str, str]] = {}
    of_channels: dict[str, dict[str, tuple[str, ...]]] = {}
    moved: dict[str, dict[str, str]] = {}
    absent: list[str] = []
    # A source that is down causes the same message for every redistributable.
    errors: dict[str, ErrorReport] = {}
    for redist, answer in zip(redists, answers, strict=True):
        folder = store.manifests(redist.name)
        local = folder.labels()
        days = {str(label): day for label in local if (day := folder.date(label))}
        dates |= {redist.name: days} if days else {}
        previews = {label for label in local if folder.is_preview(label)}
        if isinstance(answer, Listing):
            errors |= {error.message: ErrorReport.of(error) for error in answer.failures}
            moves = _moves(store, redist, answer, previews)
            moved |= {redist.name: moves} if moves else {}
            of_channels |= {redist.name: dict(answer.channels)} if answer.channels else {}
        upstream = _published(answer, local, previews, pre=pre)
        absent += [redist.name] if isinstance(answer, NotAtSourceError) else []
        is_known = is_explicit or (folder.is_there() and not redist.handwritten)
        errors |= _failure(answer, is_known=is_known)
        if local or upstream:
            lines += line_reports(redist.name, local, upstream, previews)
        known = local if sources is None else upstream
        selected = tuple(str(label) for label in known or () if pre or label not in previews)
        if selected:
            releases[redist.name] = selected
    if sources is not None and not errors:
        errors |= _unknown(channels, of_channels)
    return VersionsReport(
        lines=tuple(lines),
        releases=releases,
        dates=dates,
        channels=of_channels,
        moved=moved,
        absent=tuple(sorted(absent)),
        hint=_nothing_local(store, redists) if sources is None and not lines else None,
        errors=tuple(errors[message] for message in sorted(errors)),
        exit_code=worst_exit_code(error.exit_code for error in errors.values()),
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
    channels: frozenset[str],
) -> Sequence[Listing | CudaRedistError | None]:
    """Return the listing of each redistributable, or its error. None: not asked."""
    workers.progress.expect(len(redists))
    if sources is None:
        return [None] * len(redists)
    ask = partial(_ask, sources, store, workers, channels)
    return each(redists, ask, workers.jobs, workers.stop)


def _failure(answer: object, *, is_known: bool) -> dict[str, ErrorReport]:
    """Return the error of a listing by message. An absence counts only `is_known`."""
    is_absent = isinstance(answer, NotAtSourceError)
    if isinstance(answer, CudaRedistError) and (is_known or not is_absent):
        return {answer.message: ErrorReport.of(answer)}
    return {}


def _unknown(
    channels: frozenset[str], listed: Mapping[str, Mapping[str, object]]
) -> dict[str, ErrorReport]:
    """Return the errors for selected channels that no redistributable has, by message."""
    known = {name for names in listed.values() for name in names}
    return {e.message: ErrorReport.of(e) for e in unknown_channels(channels, known)}


def _moves(
    store: Store, redist: Redist, listing: Listing, previews: set[Version]
) -> dict[str, str]:
    """Describe the local releases that left their channel.

    If they left `preview`, they are removed from `previews`.
    """
    moves = channel_moves(store.recorded(redist.name), listing)
    previews.difference_update(move.label for move in moves if move.after != PREVIEW)
    return {str(move.label): move.text for move in moves}


def _ask(
    sources: SourceChain,
    store: Store,
    workers: Workers,
    channels: frozenset[str],
    redist: Redist,
) -> Listing:
    """Return the listing of a redistributable from the sources."""
    try:
        raise_if_stopped(workers.stop)
        query = channel_query(store, redist, channels)
        return sources.listing(redist.manifest_folders, (), query)
    finally:
        workers.progress.done()


def _published(
    answer: object, local: Sequence[Version], previews: set[Version], *, pre: bool
) -> tuple[Version, ...] | None:
    """Return the labels upstream, and add the early-access ones to `previews`.

    None: unknown. New early-access releases require `pre`.
    """
    if not isinstance(answer, Listing):
        return None
    new = {label for label in answer.previews if label not in local}
    previews |= new
    return tuple(label for label in answer.labels if pre or label not in new)
