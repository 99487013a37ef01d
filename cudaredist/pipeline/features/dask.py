"""The same work on a Dask cluster: workers look into archives and send back facts, nothing else.

A worker gets where archives may lie and which one it is to read; it shares no folder, no cache and
no state with others. A worker that dies costs the archives it had in hand, which the scheduler
gives to another one.
"""

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.errors import (
    CudaRedistError,
    IncompleteError,
    SourceError,
    StoppedError,
    UsageError,
)
from cudaredist.features import facts_from_bytes, facts_to_bytes
from cudaredist.pipeline.archives import ArchiveRequest, ArchiveService
from cudaredist.pipeline.facts_cache import remember_facts
from cudaredist.pipeline.features.process import Engine, FeatureRun, Job
from cudaredist.reports.report import ErrorReport
from cudaredist.source import Settings, open_sources

if TYPE_CHECKING:
    from distributed import Future

_PATIENCE = 10.0
"""Seconds that a scheduler, and a first worker, are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What a worker needs to know to look into one archive."""

    request: ArchiveRequest
    timeout: float
    retries: int
    allow_http: bool


def run_errand(errand: Errand) -> bytes | str:
    """Look into an archive, on a worker; return its facts as bytes, or an error report as JSON."""
    settings = Settings(
        timeout=errand.timeout,
        retries=errand.retries,
        allow_http=errand.allow_http,
        stop=threading.Event(),
    )
    try:
        sources = open_sources(errand.request.bases, settings)
        try:
            service = ArchiveService(chains={errand.request.bases: sources})
            return facts_to_bytes(service.examine(errand.request).facts)
        finally:
            sources.close()
    except CudaRedistError as error:
        return ErrorReport.of(error).model_dump_json()


def dask_engine(address: str, settings: Settings) -> Engine:
    """Return an engine that gives all archives to the cluster at a scheduler's address.

    Raises `UsageError` where Dask is not installed, and `SourceError` where no scheduler answers or
    it has no worker.
    """
    try:
        from distributed import Client, as_completed  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError(
            "--engine dask needs Dask", hint="pip install 'cudaredist[dask]', here and there"
        ) from None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SourceError(
            address,
            f"no Dask scheduler answers: {error}",
            hint="start one with dask scheduler, and workers with dask worker",
        ) from error
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        client.close()
        raise SourceError(
            address, "the scheduler has no worker", hint="start some with dask worker"
        ) from None

    def engine(run: FeatureRun, jobs: Sequence[Job]) -> None:
        waiting: dict[Future[bytes | str], Job] = {}
        try:
            for place, job in enumerate(jobs):
                errand = Errand(
                    request=job.request._replace(bases=tuple(map(_absolute, job.request.bases))),
                    timeout=settings.timeout,
                    retries=settings.retries,
                    allow_http=settings.allow_http,
                )
                # The jobs come largest first, and so they stay.
                future = client.submit(run_errand, errand, priority=-place, pure=False)
                waiting[future] = job
            for future in as_completed(list(waiting), loop=client.loop):
                job = waiting.pop(future)
                # What is in hand where, only the cluster knows: a line shows when it is done.
                number = run.service.progress.begin(job.request.name, job.request.size)
                _settle(run, job, future)
                run.service.progress.advance(number, job.request.size or 0)
                run.service.progress.end(number)
                if run.service.stop.is_set():
                    break
            for job in waiting.values():
                run.failed(job, StoppedError())
        finally:
            with contextlib.suppress(Exception):
                # Of a scheduler that has died nothing more is wanted.
                client.cancel(list(waiting))
            client.close(timeout=1)

    return engine


def _absolute(base: str) -> str:
    """Return a folder's whole path: a worker may have been started elsewhere."""
    return base if ":" in base else str(Path(base).absolute())


def _settle(run: FeatureRun, job: Job, future: "Future[bytes | str]") -> None:
    """Tell the run what a worker found; an archive that kills workers is a failure like others."""
    if future.cancelled():
        run.failed(
            job,
            SourceError("the Dask scheduler", "went away", hint="run the same command again"),
        )
        return
    failure = future.exception()
    if failure is not None:
        run.failed(job, IncompleteError(f"{job.request.name}: {type(failure).__name__}: {failure}"))
        return
    run.service.count_fetched(job.request.size or 0)
    answer = future.result()
    if isinstance(answer, str):
        run.failed(job, ErrorReport.model_validate_json(answer))
        return
    facts = facts_from_bytes(answer)
    if facts is None:
        run.failed(
            job,
            IncompleteError(
                f"{job.request.name}: a worker answered in another form",
                hint="install the same cudaredist on every worker",
            ),
        )
    else:
        remember_facts(run.cache, job.request.sha256, facts)
        run.succeeded(job, facts)
