"""Retries of requests and the pauses between them."""

import logging
import random

import tenacity

from cudaredist.errors import TransientError
from cudaredist.sources.protocol import Settings

_log = logging.getLogger(__name__)


def retrying(settings: Settings) -> tenacity.Retrying:
    """Return a caller that retries after each `TransientError`."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(TransientError),
        stop=lambda state: (
            state.attempt_number > settings.retries
            or state.idle_for + state.upcoming_sleep > settings.longest_wait
        ),
        wait=lambda state: pause_after(_error(state), state.attempt_number),
        sleep=tenacity.sleep_using_event(settings.stop),
        before_sleep=_log_retry,
        reraise=True,
    )


def pause_after(error: BaseException | None, failures: int) -> float:
    """Return the server's `Retry-After`, but at least the back-off."""
    requested = error.retry_after if isinstance(error, TransientError) else None
    return max(backoff(failures), requested or 0.0)


def backoff(failures: int) -> float:
    """Return the back-off in seconds after a number of failures.

    It grows with each failure. A random part keeps clients from retrying at the same time.
    """
    longest: float = min(20.0, 0.5 * 2.0 ** min(failures - 1, 10))
    return longest + random.uniform(0, 0.5)  # noqa: S311 - no secret


def _error(state: tenacity.RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _log_retry(state: tenacity.RetryCallState) -> None:
    pause = state.upcoming_sleep
    _log.info("attempt %d failed: %s; retry in %.1f s", state.attempt_number, _error(state), pause)
