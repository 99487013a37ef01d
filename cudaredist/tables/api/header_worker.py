"""A process that parses headers: libclang can crash, and hostile headers can take all memory.

It reads a line with the folders from its standard input, then a line with a path for each header,
and writes a line with the names of each. Lines are JSON.
"""

import contextlib
import json
import sys
from pathlib import Path

from cudaredist.tables.api.parse_header import HeaderParser

_MEMORY_LIMIT = 4 << 30


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))


def main() -> None:
    """Answer requests until the input ends."""
    _limit_memory()
    folder, *include = map(Path, json.loads(sys.stdin.readline()))
    parser = HeaderParser(folder, include)
    for line in sys.stdin:
        forms = parser.parse(json.loads(line))
        sys.stdout.write(f"{json.dumps(forms)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
