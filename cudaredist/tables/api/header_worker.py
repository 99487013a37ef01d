"""A process that parses headers: libclang can crash, and hostile headers can take all memory.

It reads three lines of JSON from its standard input: the limit of memory in bytes, the folders, and
the headers with those that include each one. It writes the names of the headers as JSON.
"""

import contextlib
import json
import sys
from pathlib import Path

from cudaredist.tables.api.parse_header import HeaderParser


def _limit_memory(size: int) -> None:
    # Windows has no such limits.
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - not on Windows

        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main() -> None:
    """Parse the headers of the request."""
    _limit_memory(json.loads(sys.stdin.readline()))
    parser = HeaderParser([Path(path) for path in json.loads(sys.stdin.readline())])
    json.dump(parser.parse(json.loads(sys.stdin.readline())), sys.stdout)


if __name__ == "__main__":
    main()
