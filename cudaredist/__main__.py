"""Start the command line: `python -m cudaredist` and the `cudaredist` script."""

import atexit
import gc
import os
import sys

from cudaredist import __version__
from cudaredist.cli.console import Console
from cudaredist.cli.streams import use_safe_streams
from cudaredist.errors import WriteError
from cudaredist.locks import end_as_interrupted, exit_interrupted

_NARROWEST, _WIDEST = 40, 1000
"""Columns of a terminal to write for, even if it has fewer or more."""


def main() -> None:
    """Run the command line. Ctrl-C exits with code 130."""
    end_as_interrupted()
    for name in ("COLUMNS", "TERMINAL_WIDTH"):
        _limit_width(name)
    # Data stays until the end, so that searches for cycles of garbage find little: those by the
    # default of 700, and the last one, which Python makes when it exits, take a third of the time.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    # No model needs plugins of pydantic. To search all installed packages for them takes long.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    use_safe_streams()
    try:
        _run()
    except KeyboardInterrupt as interrupt:
        exit_interrupted(interrupt)
    except WriteError as error:
        # Of the completion of a shell, or of the version.
        Console().failure(error)
        sys.exit(error.exit_code)


def _limit_width(name: str) -> None:
    """Limit the width in an environment variable, to which the help is filled with blanks."""
    text = os.environ.get(name, "")
    if not text.isascii() or not text.isdigit():
        os.environ.pop(name, None)
    else:
        # More digits than the limit has are not converted.
        width = int(text) if len(text) <= len(str(_WIDEST)) else _WIDEST
        os.environ[name] = str(min(max(width, _NARROWEST), _WIDEST))


def _run() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        Console().result(f"cudaredist {__version__}\n")
        return
    from cudaredist.app import app

    app()


if __name__ == "__main__":
    main()
