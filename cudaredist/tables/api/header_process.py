"""Parse headers in a process of its own, with limits of time and memory."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cudaredist.errors import UsageError
from cudaredist.tables.api.header_forms import HeaderForms, forms_of_json

_SECONDS = 300
"""Time limit of a package. The slowest of NVIDIA's takes twenty seconds."""
_MEMORY_MB = 4096
_STOPPED = HeaderForms(
    error="the parser needs too much time or memory, or fails", is_transient=True
)


def require_libclang() -> None:
    """Raise `UsageError` if libclang is not installed."""
    if find_spec("clang") is None:
        message = "update-api requires the package libclang"
        raise UsageError(message, hint="run `pip install 'cudaredist[api]'`")


class ParseRequest(NamedTuple):
    """Headers to parse in one process."""

    headers: Mapping[str, Sequence[str]]
    """The headers that include each one, or the private headers of each one of a library."""
    is_library: bool = False
    """Whether these are the headers of a C++ library, which are parsed together."""


def parse_headers(include: Sequence[Path], request: ParseRequest) -> dict[str, HeaderForms]:
    """Return the names of headers in the first folder.

    If the process ends or reaches the time limit, each header gets a process of its own, and those
    that stop it have an error.
    """
    together = _parse(include, request)
    if together is not None:
        return together
    forms: dict[str, HeaderForms] = {}
    for header, others in request.headers.items():
        one = ParseRequest({header: others}, request.is_library)
        forms |= _parse(include, one) or {header: _STOPPED}
    return forms


def _parse(include: Sequence[Path], request: ParseRequest) -> dict[str, HeaderForms] | None:
    """Parse headers in a new process. Return None if it fails."""
    lines = (_MEMORY_MB * 2**20, [str(path) for path in include], *request)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "cudaredist.tables.api.header_worker"],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
        answer = json.loads(result.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return forms_of_json(answer)
