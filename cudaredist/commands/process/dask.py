"""Process archives on a Dask cluster.

A worker receives the sources of an archive, reads it, and returns its facts or an error report as
bytes. Workers share no folder, cache or state. If a worker dies, the scheduler assigns its archives
to another one.
"""

import contextlib
import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from cudaredist.commands.process.feature_run import Engine, FeatureRun, Job
from cudaredist.errors import (
    CudaRedistError,
    IncompleteError,
    SourceError,
    StoppedError,
    UsageError,
    error_kinds,
)
from cudaredist.features.facts import Facts, facts_from_bytes, facts_to_bytes
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.plain_report import as_json
from cudaredist.hints import again, redacted
from cudaredist.jsontext import is_too_deep
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings, without_credentials
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.facts_cache import remember_facts
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.words import shown

if TYPE_CHECKING:
    from distributed import Future
    from distributed import as_completed as AsCompleted  # noqa: N812 - a class

    from cudaredist.commands.process.dask_client import BytesClient

_PATIENCE = 30.0
"""Seconds to wait for the scheduler, and again for its first worker."""
_SCHEDULER = r"((tcp|tls|ucxx?|wss?)://)?[^\s/?#@]+/?"
_SAME_VERSION = "install the same cudaredist on the scheduler and on every worker"


def run_task(
    request: ArchiveRequest, timeout: float, retries: int, *, allow_http: bool, max_archive: int
) -> bytes:
    """Examine an archive on a worker, and return facts or an error.

    Both are JSON. The request's bases have no credentials. Never raises, because an exception would
    arrive at the client as a pickle.
    """
    try:
        settings = Settings(
            timeout=timeout, retries=retries, allow_http=allow_http, stop=threading.Event()
        )
        with contextlib.closing(open_sources(map(_own_base, request.bases), settings)) as sources:
            service = ArchiveService(chains={request.bases: sources}, max_archive=max_archive)
            return facts_to_bytes(service.examine(request).facts)
    except CudaRedistError as error:
        report = ErrorReport.of(error)
    except Exception as error:  # noqa: BLE001 - see above
        message = f"{request.name}: {type(error).__name__}: {error}"
        report = ErrorReport.of(IncompleteError(message))
    return json.dumps(as_json(report)).encode()


def _own_base(base: str) -> str:
    """Return a source with this worker's credentials, if it has any."""
    for own in os.environ.get("CUDAREDIST_BASE_URL", "").split():
        if without_credentials(own).rstrip("/") == base.rstrip("/"):
            return own
    return base


@contextlib.contextmanager
def dask_engine(address: str, settings: Settings) -> Iterator[Engine]:
    """Connect to a scheduler, and yield an engine for its workers.

    Raises `UsageError` for an invalid address or without Dask, and `SourceError` if the scheduler
    does not answer or has no workers.
    """
    try:
        from distributed import as_completed  # noqa: PLC0415 - an extra

        from cudaredist.commands.process.dask_client import BytesClient  # noqa: PLC0415
    except ImportError:
        hint = "run `pip install 'cudaredist[dask]'` here and on the workers"
        raise UsageError("--engine dask requires Dask", hint=hint) from None
    if re.fullmatch(_SCHEDULER, address) is None:
        message = f"{shown(redacted(address))} is not the address of a Dask scheduler"
        hint = "use --scheduler tls://host:8786, without user name and password"
        raise UsageError(message, hint=hint)
    try:
        client = BytesClient(address, _PATIENCE)
    except (OSError, ValueError, ImportError) as error:
        start = "start one with `dask scheduler`, and workers with `dask worker`"
        hint = f"{start}; tls:// requires distributed.comm.tls in Dask's configuration"
        reason = f"cannot connect to a Dask scheduler: {error}"
        raise SourceError(address, reason, hint=hint) from error

    try:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            hint = "start some with `dask worker`"
            raise SourceError(address, "the scheduler has no workers", hint=hint) from None
        yield partial(_run_on_workers, client, as_completed, settings)
    finally:
        # A dead scheduler does not answer, and a busy machine may take too long.
        with contextlib.suppress(TimeoutError):
            client.close(timeout=_PATIENCE)


def _run_on_workers(
    client: "BytesClient",
    as_completed: "type[AsCompleted]",
    settings: Settings,
    run: FeatureRun,
    jobs: Sequence[Job],
) -> None:
    """Send all archives to the workers, and report their answers."""
    if any(without_credentials(base) != base for job in jobs for base in job.request.bases):
        run.announce(
            "credentials in base URLs are not sent to workers; set CUDAREDIST_BASE_URL on the "
            "workers instead"
        )
    waiting: dict[Future[bytes], Job] = {}
    try:
        for position, job in enumerate(jobs):
            request = job.request._replace(bases=tuple(map(_shared_base, job.request.bases)))
            future = client.submit(
                run_task,
                request,
                settings.timeout,
                settings.retries,
                allow_http=settings.allow_http,
                max_archive=run.service.max_archive,
                # Keep the order of the jobs: largest first.
                priority=-position,
                pure=False,
            )
            waiting[future] = job
        for future in as_completed(list(waiting), loop=client.loop):
            job = waiting.pop(future)
            # Only the cluster knows which archives are in progress, so show the finished ones.
            number = run.service.progress.begin(job.request.name, job.request.size)
            answer = _answer_of(job, future)
            if isinstance(answer, Facts):
                run.service.count_fetched(job.request.size or 0)
                remember_facts(run.cache, job.request.sha256, answer)
            run.settle(job, answer)
            run.service.progress.advance(number, job.request.size or 0)
            run.service.progress.end(number)
            if run.service.stop.is_set():
                break
        for job in waiting.values():
            run.settle(job, StoppedError())
    finally:
        with contextlib.suppress(Exception):
            # A dead scheduler cannot cancel anything.
            client.cancel(list(waiting))


def _shared_base(base: str) -> str:
    """Return a source as an absolute path or a URL without credentials."""
    return without_credentials(base) if ":" in base else str(Path(base).absolute())


def _answer_of(job: Job, future: "Future[bytes]") -> Facts | ErrorReport | CudaRedistError:
    """Return the facts of a worker's archive, or the failure."""
    name = job.request.name
    if future.cancelled():
        return SourceError("the Dask scheduler", "disconnected", hint=f"run `{again()}`")
    try:
        answer = read_answer(future.result())
    except Exception as error:  # noqa: BLE001 - whatever Dask raises
        hint = f"read the logs of the workers; {_SAME_VERSION}"
        return IncompleteError(f"{name}: {error}", hint=hint)
    if answer is None:
        message = f"{name}: unknown format of a worker's answer"
        return IncompleteError(message, hint=_SAME_VERSION)
    return answer


def read_answer(answer: object) -> Facts | ErrorReport | None:
    """Parse a worker's answer. Return None if it is invalid."""
    if not isinstance(answer, bytes) or is_too_deep(answer):
        return None
    facts = facts_from_bytes(answer)
    if facts is not None:
        return facts
    try:
        report = TypeAdapter(ErrorReport).validate_json(answer)
    except ValidationError:
        return None
    return report if (report.kind, report.exit_code) in error_kinds() else None
