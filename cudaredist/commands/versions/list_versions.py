"""versions: list local and upstream labels without fetching manifests."""

from collections.abc import Sequence
from functools import partial

from cudaredist.commands.versions.release_lines import line_reports
from cudaredist.commands.versions.report import LineReport, VersionsReport
from cudaredist.errors import CudaRedistError, NotAtSourceError, worst_exit_code
from cudaredist.formats.report import ErrorReport
from cudaredist.primitives import Version
from cudaredist.redists import Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.data_folder import Store
from cudaredist.tasks import Workers, each, raise_if_stopped


def read_versions(
    store: Store,
    redists: Sequence[Redist],
    sources: SourceChain | None,
    workers: Workers,
    *,
    is_explicit: bool = False,
    pre: bool = False,
) -> VersionsReport:
    """Return the local and upstream release lines of redistributables.

    Without `sources`, return only local ones. New early-access releases require `pre`. If
    upstream lacks a redistributable, that is a failure if the user named it, or if it has local
    manifests that NVIDIA wrote. Failures are in the report and decide its exit code.
    """
    workers.progress.expect(len(redists))
    answers: Sequence[Listing | CudaRedistError | None] = [None] * len(redists)
    if sources is not None:
        ask = partial(_ask, sources, store, workers, pre=pre)
        answers = each(redists, ask, workers.jobs, workers.stop)
    lines: list[LineReport] = []
    releases: dict[str, tuple[str, ...]] = {}
    dates: dict[str, dict[str, str]] = {}
    absent: list[str] = []
    # A source that is down causes the same message for every redistributable.
    errors: dict[str, ErrorReport] = {}
    for redist, answer in zip(redists, answers, strict=True):
        folder = store.manifests(redist.name)
        local = folder.labels()
        days = {str(label): day for label in local if (day := folder.date(label))}
        dates |= {redist.name: days} if days else {}
        previews = {label for label in local if folder.is_preview(label)}
        upstream = _published(redist, answer, local, previews, pre=pre)
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
    return VersionsReport(
        lines=tuple(lines),
        releases=releases,
        dates=dates,
        absent=tuple(sorted(absent)),
        errors=tuple(errors[message] for message in sorted(errors)),
        exit_code=worst_exit_code(error.exit_code for error in errors.values()),
    )


def _ask(
    sources: SourceChain, store: Store, workers: Workers, redist: Redist, *, pre: bool
) -> Listing:
    """Return the listing of a redistributable from the sources."""
    try:
        raise_if_stopped(workers.stop)
        previews = pre or store.manifests(redist.name).has_preview()
        return sources.listing(redist.folders_to_list(previews=previews))
    finally:
        workers.progress.done()


def _published(
    redist: Redist, answer: object, local: Sequence[Version], previews: set[Version], *, pre: bool
) -> tuple[Version, ...] | None:
    """Return the labels upstream, and add the early-access ones to `previews`.

    None: unknown. New early-access releases require `pre`.
    """
    if not isinstance(answer, Listing):
        return None
    folders = answer.folders
    new = {x for x in folders if folders[x] == redist.preview_folder and x not in local}
    previews |= new
    return tuple(sorted(label for label in folders if pre or label not in new))
