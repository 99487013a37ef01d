"""versions: list local and upstream labels without fetching manifests."""

from collections.abc import Sequence
from functools import partial

from cudaredist.commands.versions.release_lines import line_reports
from cudaredist.commands.versions.report import LineReport, VersionsReport
from cudaredist.errors import CudaRedistError, NotAtSourceError, worst_exit_code
from cudaredist.formats.report import ErrorReport
from cudaredist.primitives import PREVIEW, Version
from cudaredist.redists import Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.data_folder import Store
from cudaredist.store.upstream import channel_moves, channel_query, unknown_channels
from cudaredist.tasks import Workers, each, raise_if_stopped


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
    their channel is in `channels`. If
    upstream lacks a redistributable, that is a failure if the user named it, or if it has local
    manifests that NVIDIA wrote. Failures are in the report and decide its exit code.
    """
    pre = PREVIEW in channels
    workers.progress.expect(len(redists))
    answers: Sequence[Listing | CudaRedistError | None] = [None] * len(redists)
    if sources is not None:
        ask = partial(_ask, sources, store, workers, channels)
        answers = each(redists, ask, workers.jobs, workers.stop)
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
            moves = channel_moves(store.recorded(redist.name), answer)
            moved |= {redist.name: {str(x.label): x.text for x in moves}} if moves else {}
            previews.difference_update(x.label for x in moves if x.after != PREVIEW)
            of_channels |= {redist.name: dict(answer.channels)} if answer.channels else {}
        upstream = _published(answer, local, previews, pre=pre)
        is_absent = isinstance(answer, NotAtSourceError)
        if is_absent:
            absent.append(redist.name)
        is_known = is_explicit or (folder.is_there() and not redist.handwritten)
        if isinstance(answer, CudaRedistError) and (is_known or not is_absent):
            errors[answer.message] = ErrorReport.of(answer)
        if local or upstream:
            lines += line_reports(redist.name, local, upstream, previews)
        known = local if sources is None else upstream
        selected = tuple(str(label) for label in known or () if pre or label not in previews)
        if selected:
            releases[redist.name] = selected
    if sources is not None and not errors:
        known_channels = {name for names in of_channels.values() for name in names}
        for error in unknown_channels(channels, known_channels):
            errors[error.message] = ErrorReport.of(error)
    return VersionsReport(
        lines=tuple(lines),
        releases=releases,
        dates=dates,
        channels=of_channels,
        moved=moved,
        absent=tuple(sorted(absent)),
        errors=tuple(errors[message] for message in sorted(errors)),
        exit_code=worst_exit_code(error.exit_code for error in errors.values()),
    )


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
