"""Parse headers in a process of its own, with limits of time and memory."""

import contextlib
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cudaredist.errors import UsageError
from cudaredist.tables.api.header_forms import Declared, HeaderForms

_SECONDS = 60
"""Time limit of a header. The slowest of NVIDIA's takes one second."""
_LINE_LIMIT = 64 << 20
_STOPPED = HeaderForms(error="the parser needs too much time or memory, or fails")


def require_libclang() -> None:
    """Raise `UsageError` if libclang is not installed."""
    if importlib.util.find_spec("clang") is None:
        message = "update-api requires the package libclang"
        raise UsageError(message, hint="run `pip install 'cudaredist[api]'`")


def parse_headers(
    include: Sequence[Path], headers: Iterable[str]
) -> Iterator[tuple[str, HeaderForms]]:
    """Yield the names of headers in the first folder.

    If the process ends or reaches the time limit at a header, that header has an error, and another
    process parses the others.
    """
    worker: _Worker | None = None
    try:
        for header in headers:
            worker = worker or _Worker(include)
            forms = worker.parse(header)
            if forms is None:
                worker.close()
                worker = None
            yield header, forms or _STOPPED
    finally:
        if worker is not None:
            worker.close()


class _Worker:
    def __init__(self, include: Sequence[Path]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "cudaredist.tables.api.header_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._process, self._input, self._output = process, process.stdin, process.stdout
        self._send([str(path) for path in (include[0], *include)])

    def parse(self, header: str) -> HeaderForms | None:
        """Return the names of a header, None if the process fails."""
        timer = threading.Timer(_SECONDS, self._process.kill)
        timer.start()
        try:
            self._send(header)
            line = self._output.readline(_LINE_LIMIT)
            declared, error = json.loads(line)
        except (OSError, ValueError):
            return None
        finally:
            timer.cancel()
        return HeaderForms(tuple(Declared(*one) for one in declared), error)

    def _send(self, value: object) -> None:
        self._input.write(json.dumps(value).encode() + b"\n")
        self._input.flush()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()
