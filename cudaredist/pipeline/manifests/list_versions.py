"""versions: labels held and labels upstream; nothing but listings is fetched."""

import threading
from collections.abc import Sequence
from functools import partial

from cudaredist.errors import (
    EXIT_OK,
    CudaRedistError,
    NotAtSourceError,
    StoppedError,
    worst_exit_code,
)
from cudaredist.pipeline.manifests.release_lines import line_reports
from cudaredist.pipeline.tasks import Task, run_tasks
from cudaredist.primitives import Version
from cudaredist.redists import Redist
from cudaredist.reports.manifest_reports import LineReport, VersionsReport
from cudaredist.reports.report import ErrorReport
from cudaredist.source.chain import SourceChain
from cudaredist.source.protocol import NoProgress, Progress
from cudaredist.store.data_folder import Store


def read_versions(
    store: Store,
    redists: Sequence[Redist],
    *,
    sources: SourceChain | None,
    stop: threading.Event,
    jobs: int = 16,
    progress: Progress | None = None,
    are_asked_for: bool = False,
) -> VersionsReport:
    """Return the release lines of redistributables, held and upstream.

    Without `sources` only what is held. That upstream lacks a redistributable is a failure where it
    was asked for by name, or is held and not written by packagers themselves; failures are in the
    report, and decide its exit code.
    """
    shown = progress or NoProgress()
    shown.expect(len(redists))
    listed: dict[str, tuple[Version, ...]] = {}
    absent: list[str] = []
    errors: list[ErrorReport] = []
    mutex = threading.Lock()

    def ask(redist: Redist, chain: SourceChain) -> list[Task]:
        try:
            if stop.is_set():
                raise StoppedError
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
        shown.done(redist.name, 0)
        return []

    if sources is not None:
        run_tasks([partial(ask, redist, sources) for redist in redists], jobs, stop)
    lines: list[LineReport] = []
    releases: dict[str, tuple[str, ...]] = {}
    for redist in redists:
        held = store.manifests(redist.name).labels()
        there = listed.get(redist.name)
        if held or there:
            lines += line_reports(redist.name, held, there)
        known = held if sources is None else there
        if known:
            releases[redist.name] = tuple(map(str, known))
    # A source that is down says the same of every redistributable.
    told = {error.message: error for error in errors}
    return VersionsReport(
        lines=tuple(lines),
        releases=releases,
        absent=tuple(sorted(absent)),
        errors=tuple(told[message] for message in sorted(told)),
        exit_code=worst_exit_code([EXIT_OK, *(error.exit_code for error in errors)]),
    )
