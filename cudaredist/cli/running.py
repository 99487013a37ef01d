"""What every command shares: the console, the exit codes, the way from options to values."""

import functools
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import typer

from cudaredist.cli.options import ChannelChoice, ColorChoice, LogLevel
from cudaredist.console import Console, configure_logging
from cudaredist.errors import (
    EXIT_BUG,
    EXIT_INTERRUPTED,
    CudaRedistError,
    UsageError,
    WriteError,
)
from cudaredist.redists import NVIDIA_BASE, REDISTS, Redist, find_redist

if TYPE_CHECKING:
    from cudaredist.schema.base import Channel
    from cudaredist.store.data_folder import Store

_Parameters = ParamSpec("_Parameters")


def make_console(
    color: ColorChoice = ColorChoice.AUTO,
    *,
    quiet: bool = False,
    verbose: int = 0,
    log_level: LogLevel | None = None,
) -> Console:
    """Return the console that the options ask for, and set up logging."""
    levels = ("WARNING", "INFO", "DEBUG")
    level = "ERROR" if quiet else levels[min(verbose, 2)]
    configure_logging(log_level.value if log_level else level)
    return Console(color.value, quiet=quiet)


def exits(command: Callable[_Parameters, int]) -> Callable[_Parameters, None]:
    """Turn what a command returns or raises into the process's exit code."""

    @functools.wraps(command)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except CudaRedistError as error:
            Console().failure(error)
            code = error.exit_code
        except KeyboardInterrupt:
            Console().error(
                "interrupted; everything finished until then is kept",
                hint="the same command goes on where this one stopped",
            )
            sys.stderr.flush()
            # Threads may still wait for a server; what they hold is not needed any more.
            os._exit(EXIT_INTERRUPTED)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, it is a bug, and has its own exit code
            traceback.print_exc()
            Console().error("this is a bug in cudaredist", hint="report it with the lines above")
            code = EXIT_BUG
        raise typer.Exit(code)

    run.__annotations__["return"] = None
    return run


def cache_folder(given: Path | None) -> Path:
    """Return the cache folder given, or of the environment, or the user's own."""
    folder = given or os.environ.get("CUDAREDIST_CACHE_DIR")
    if folder:
        return Path(folder)
    import platformdirs

    return platformdirs.user_cache_path("cudaredist", appauthor=False)


def is_typed(context: typer.Context, name: str) -> bool:
    """Say whether an option stands on the command line, and not only in the environment."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def chosen_redists(names: list[str] | None, channel: "Channel" = "redist") -> list[Redist]:
    """Return the entries named, each once, or the whole catalogue of the channel."""
    from cudaredist.wheels import FAMILIES

    catalogue = REDISTS if channel == "redist" else {"cuda": None, **FAMILIES}
    return [find_redist(name) for name in dict.fromkeys(names or catalogue)]


def read_store(
    console: Console,
    data_dir: Path | None,
    channel: ChannelChoice | None,
    base_url: list[str] | None = None,
) -> "Store":
    """Return the data to read, of the channel named, else of the one that is held.

    Somebody who names a server means redist. The choice of the other one is said.
    """
    from cudaredist.store.data_folder import Store, shipped_data
    from cudaredist.store.locate import data_folder, held_channel

    root = data_folder(data_dir, writing=False)
    if channel is not None:
        return Store(root, channel.value)
    held = "redist" if base_url else held_channel(root)
    if held != "redist":
        where = "the data shipped with cudaredist" if root == shipped_data() else str(root)
        console.note(f"--channel {held}: {where} holds nothing else")
    return Store(root, held)


def bases_of(context: typer.Context, channel: "Channel", base_url: list[str] | None) -> list[str]:
    """Return where manifests and archives come from: what was given, else what the channel has."""
    if channel == "wheels":
        if is_typed(context, "base_url"):
            raise UsageError(
                "--base-url does not go with --channel wheels",
                hint="wheels come from where pip finds them: pip config, PIP_INDEX_URL",
            )
        from cudaredist.source.chain import WHEELS

        return [WHEELS]
    return base_url or [NVIDIA_BASE]


def may_write(*, check: bool, dry_run: bool) -> bool:
    """Say whether a command may write. Raises `UsageError` for both options at once."""
    if check and dry_run:
        raise UsageError("--check and --dry-run exclude each other")
    return not (check or dry_run)


def archive_jobs(jobs: int | None, *, parallel: bool) -> int:
    """Return how many archives to work on at the same time: one a core if not told."""
    return (jobs or os.cpu_count() or 1) if parallel else 1


NOT_WITH_URL = ("redist", "channel", "base_url", "data_dir")
"""Options that contradict the positional form."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 1 << (10 * power) for power, unit in enumerate("kmgt", 1)}


def parse_size(text: str) -> int:
    """Read a number of bytes as people write it: `500MB`, `1.5 GiB`, `1000`."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]i?)?b?", text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is no size", hint="write it like 500MB, 5GB or 1.5GiB")
    return int(float(match[1]) * _UNITS[match[2] or ""])


def append_lines(variable: str, lines: Iterable[str]) -> None:
    """Add lines to the file that GitHub names in a variable, where it does."""
    path = os.environ.get(variable)
    if path:
        try:
            with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            raise WriteError(path, error) from error
