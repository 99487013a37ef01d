"""Start the command line: `python -m cudaredist` and the `cudaredist` script."""

import io
import os
import sys

from cudaredist import __version__
from cudaredist.console import Console
from cudaredist.errors import EXIT_INTERRUPTED, WriteError


def main() -> None:
    """Run the command line. Ctrl-C exits with code 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # If a terminal or pipe cannot encode a character, print its escape.
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:] == ["--version"]:
        try:
            Console().result(f"cudaredist {__version__}\n")
        except WriteError as error:
            Console().failure(error)
            sys.exit(error.exit_code)
        return
    try:
        from cudaredist.cli import app

        app()
    except KeyboardInterrupt:
        # Threads may still wait for a server. Their results are not needed.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
