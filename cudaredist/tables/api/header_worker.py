"""A process that parses headers: libclang can crash, and hostile headers can take all memory.

It reads lines of JSON from its standard input: the limit of memory in bytes, the folders, and the
parts of a `ParseRequest`. It writes the names of the headers as JSON.
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
    memory, folders, headers, is_library = map(json.loads, sys.stdin)
    _limit_memory(memory)
    parser = HeaderParser([Path(path) for path in folders])
    parse = parser.parse_library if is_library else parser.parse
    json.dump(parse(headers), sys.stdout)


if __name__ == "__main__":
    main()
