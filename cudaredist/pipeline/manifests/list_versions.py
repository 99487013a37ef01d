"""versions: list local and upstream labels without fetching manifests."""

import threading
from collections.abc import Sequence
from functools import partial

from cudaredist.errors import (
    CudaRedistError,
    NotAtSourceError,
    worst_exit_code,
)
from cudaredist.pipeline.manifests.release_lines import line_reports
from cudaredist.pipeline.tasks import raise_if_stopped, run_tasks
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import Redist
from cudaredist.reports.manifest_reports import LineReport, VersionsReport
from cudaredist.reports.report import ErrorReport
from cudaredist.source.chain import SourceChain
from cudaredist.source.protocol import Listing
from cudaredist.store.data_folder import Store


def read_versions(
    store: Store,
    redists: Sequence[Redist],
    *,
    sources: SourceChain | None,
    stop: threading.Event,
    jobs: int = 16,
    progress: Progress = NO_PROGRESS,
    are_asked_for: bool = False,
) -> VersionsReport:
    """Return the local and upstream release lines of redistributables.

    Without `sources`, return only local ones. If upstream lacks a redistributable, that is a
    failure if the user named it, or if it has local manifests that NVIDIA wrote. Failures are in
    the report and decide its exit code.
    """
    progress.expect(len(redists))
    answers: dict[str, Listing | CudaRedistError] = {}

    def ask(redist: Redist, chain: SourceChain) -> None:
        try:
            raise_if_stopped(stop)
            answers[redist.name] = chain.listing(redist.manifest_folders)
        except CudaRedistError as error:
            answers[redist.name] = error
        progress.done()

    if sources is not None:
        run_tasks([partial(ask, redist, sources) for redist in redists], jobs, stop)
    lines: list[LineReport] = []
    releases: dict[str, tuple[str, ...]] = {}
    absent: list[str] = []
    # A source that is down causes the same message for every redistributable.
    errors: dict[str, ErrorReport] = {}
    for redist in redists:
        folder, answer = store.manifests(redist.name), answers.get(redist.name)
        local = folder.labels()
        upstream = tuple(sorted(answer.folders)) if isinstance(answer, Listing) else None
        if isinstance(answer, NotAtSourceError):
            absent.append(redist.name)
            if not are_asked_for and (redist.handwritten or not folder.is_there()):
                answer = None
        if isinstance(answer, CudaRedistError):
            errors[answer.message] = ErrorReport.of(answer)
        if local or upstream:
            lines += line_reports(redist.name, local, upstream)
        known = local if sources is None else upstream
        if known:
            releases[redist.name] = tuple(map(str, known))
    return VersionsReport(
        lines=tuple(lines),
        releases=releases,
        absent=tuple(sorted(absent)),
        errors=tuple(errors[message] for message in sorted(errors)),
        exit_code=worst_exit_code(error.exit_code for error in errors.values()),
    )
