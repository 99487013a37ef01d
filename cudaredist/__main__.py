"""Start the command line: `python -m cudaredist` and the `cudaredist` script."""

import gc
import io
import sys

from cudaredist import __version__
from cudaredist.cli.console import Console
from cudaredist.errors import WriteError
from cudaredist.locks import end_as_interrupted, exit_interrupted


def main() -> None:
    """Run the command line. Ctrl-C exits with code 130."""
    end_as_interrupted()
    # The default of 700 takes up to a fifth of the time, because data stays until the end.
    gc.set_threshold(20_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # If a terminal or pipe cannot encode a character, print its escape.
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:] in (["--version"], ["-V"]):
        try:
            Console().result(f"cudaredist {__version__}\n")
        except WriteError as error:
            Console().failure(error)
            sys.exit(error.exit_code)
        return
    try:
        from cudaredist.app import app

        app()
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt)


if __name__ == "__main__":
    main()
