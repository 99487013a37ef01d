"""versions: compare local labels with those upstream, without fetching manifests."""

from collections.abc import Mapping, Sequence
from functools import partial

from cudaredist.commands.versions.local_versions import dates_of, line_reports, without_empty
from cudaredist.commands.versions.report import LineReport, VersionsReport
from cudaredist.errors import CudaRedistError, NotAtSourceError, worst_exit_code
from cudaredist.formats.error_report import ErrorReport
from cudaredist.primitives import PREVIEW, Version
from cudaredist.redists import Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.data_folder import Store
from cudaredist.store.upstream import (
    nvidia_channel_moves,
    nvidia_channel_query,
    unknown_nvidia_channels,
)
from cudaredist.tasks import Workers, each, raise_if_stopped


def read_versions(
    store: Store,
    redists: Sequence[Redist],
    sources: SourceChain,
    workers: Workers,
    *,
    is_explicit: bool = False,
    nvidia_channels: frozenset[str] = frozenset(),
) -> VersionsReport:
    """Return the local and upstream release lines of redistributables.

    New releases of NVIDIA's second server require that their channel is in `nvidia_channels`. If
    upstream lacks a redistributable, that is a failure if the user named it, or if it has local
    manifests that NVIDIA wrote. Failures are in the report and decide its exit code.
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
        summaries = {label: folder.summary(label) for label in local}
        dates[redist.name] = dates_of(summaries)
        previews = {label for label, about in summaries.items() if about.is_preview}
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
        selected = (label for label in upstream or () if pre or label not in previews)
        releases[redist.name] = tuple(map(str, selected))
    if not errors:
        errors |= _unknown(nvidia_channels, of_nvidia_channels)
    return VersionsReport(
        channel=store.channel,
        lines=tuple(lines),
        releases=without_empty(releases),
        dates=without_empty(dates),
        channels=without_empty(of_nvidia_channels),
        moved=without_empty(moved),
        absent=tuple(sorted(absent)),
        errors=tuple(errors[message] for message in sorted(errors)),
        exit_code=worst_exit_code(error.exit_code for error in errors.values()),
    )


def _answers(
    store: Store,
    redists: Sequence[Redist],
    sources: SourceChain,
    workers: Workers,
    nvidia_channels: frozenset[str],
) -> Sequence[Listing | CudaRedistError]:
    """Return the listing of each redistributable, or its error."""
    workers.progress.expect(len(redists))
    ask = partial(_ask, sources, store, workers, nvidia_channels)
    return each(redists, ask, workers.jobs, workers.stop)


def _failures(answer: Listing | CudaRedistError, *, is_expected: bool) -> dict[str, ErrorReport]:
    """Return the errors of a redistributable's listing by message.

    That a source lacks the redistributable is an error only if `is_expected`.
    """
    failures: Sequence[CudaRedistError] = ()
    if isinstance(answer, Listing):
        failures = answer.failures
    elif isinstance(answer, NotAtSourceError):
        failures = (answer,) if is_expected else ()
    else:
        failures = (answer,)
    return {error.message: ErrorReport.of(error) for error in failures}


def _published(
    answer: Listing | CudaRedistError, local: Sequence[Version], *, pre: bool
) -> tuple[Version, ...] | None:
    """Return the labels upstream, None if they are unknown.

    New early-access releases require `pre`.
    """
    if not isinstance(answer, Listing):
        return None
    if pre:
        return tuple(answer.labels)
    return tuple(label for label in answer.labels if label in local or label not in answer.previews)


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
