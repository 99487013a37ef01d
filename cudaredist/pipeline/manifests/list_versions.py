"""versions: labels held and labels upstream; nothing but listings is fetched."""

import threading
from collections.abc import Sequence
from functools import partial

from cudaredist.errors import (
    CudaRedistError,
    NotAtSourceError,
    worst_exit_code,
)
from cudaredist.pipeline.manifests.release_lines import line_reports
from cudaredist.pipeline.tasks import Task, raise_if_stopped, run_tasks
from cudaredist.primitives import Version
from cudaredist.redists import Redist
from cudaredist.reports.manifest_reports import LineReport, VersionsReport
from cudaredist.reports.report import ErrorReport
from cudaredist.source.chain import SourceChain
from cudaredist.source.protocol import NO_PROGRESS, Progress
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
    """Return the release lines of redistributables, held and upstream.

    Without `sources` only what is held. That upstream lacks a redistributable is a failure where it
    was asked for by name, or is held and not written by packagers themselves; failures are in the
    report, and decide its exit code.
    """
    progress.expect(len(redists))
    listed: dict[str, tuple[Version, ...]] = {}
    absent: list[str] = []
    errors: list[ErrorReport] = []
    mutex = threading.Lock()

    def ask(redist: Redist, chain: SourceChain) -> list[Task]:
        try:
            raise_if_stopped(stop)
            labels = tuple(sorted(chain.listing(redist.manifest_folders).folders))
            with mutex:
                listed[redist.name] = labels
        except NotAtSourceError as error:
            is_held = store.manifests(redist.name).is_there()
            with mutex:
                absent.append(redist.name)
                if are_asked_for or (is_held and not redist.handwritten):
                    errors.append(ErrorReport.of(error))
        except CudaRedistError as error:
            with mutex:
                errors.append(ErrorReport.of(error))
        progress.done(redist.name, 0)
        return []

    if sources is not None:
        run_tasks([partial(ask, redist, sources) for redist in redists], jobs, stop)
    lines: list[LineReport] = []
    releases: dict[str, tuple[str, ...]] = {}
    for redist in redists:
        local = store.manifests(redist.name).labels()
        upstream = listed.get(redist.name)
        if local or upstream:
            lines += line_reports(redist.name, local, upstream)
        known = local if sources is None else upstream
        if known:
            releases[redist.name] = tuple(map(str, known))
    return _report(lines, releases, absent, errors)


def _report(
    lines: Sequence[LineReport],
    releases: dict[str, tuple[str, ...]],
    absent: Sequence[str],
    errors: Sequence[ErrorReport],
) -> VersionsReport:
    # A source that is down says the same of every redistributable.
    by_message = {error.message: error for error in errors}
    return VersionsReport(
        lines=tuple(lines),
        releases=releases,
        absent=tuple(sorted(absent)),
        errors=tuple(by_message[message] for message in sorted(by_message)),
        exit_code=worst_exit_code(error.exit_code for error in errors),
    )
