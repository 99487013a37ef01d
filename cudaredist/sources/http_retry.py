"""Retries of requests and the pauses between them."""

import logging
import random
from collections.abc import Callable
from typing import TypeVar

from cudaredist.errors import StoppedError, TransientError
from cudaredist.sources.protocol import Settings

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


class Attempts:
    """Consecutive failures of the requests for one file."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._failures, self._waited, self._pause = 0, 0.0, 0.0
        self._error: TransientError | None = None

    def count(self, error: TransientError) -> None:
        """Count a failure. Raises its error if no attempt is left.

        The pause is the server's `Retry-After`, but at least the back-off.
        """
        self._failures += 1
        self._pause = max(backoff(self._failures), error.retry_after or 0.0)
        self._waited += self._pause
        settings = self._settings
        if self._failures > settings.retries or self._waited > settings.longest_wait:
            raise error
        self._error = error

    def wait(self) -> None:
        """Pause before the next attempt. Raises `StoppedError`."""
        text = "attempt %d failed: %s; retry in %.1f s"
        _log.info(text, self._failures, self._error, self._pause)
        if self._settings.stop.wait(self._pause):
            raise StoppedError


def retrying(settings: Settings, attempt: Callable[[], _Result]) -> _Result:
    """Return the result of an attempt, repeated after each `TransientError`."""
    attempts = Attempts(settings)
    while True:
        try:
            return attempt()
        except TransientError as error:
            attempts.count(error)
        attempts.wait()


def backoff(failures: int) -> float:
    """Return the back-off in seconds after a number of failures.

    It grows with each failure. A random part keeps clients from retrying at the same time.
    """
    longest: float = min(20.0, 0.5 * 2.0 ** min(failures - 1, 10))
    return longest + random.uniform(0, 0.5)  # noqa: S311 - no secret
