"""The terminal: results on stdout, everything else on stderr. With `cli`, the only rich module."""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TextIO

from cudaredist.errors import CudaRedistError, WriteError

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, TaskID

_BEFORE_PROGRESS = 1.0
"""Seconds a run may take before progress is shown."""

_STYLES = {"error": "31", "warning": "33", "hint": "36"}
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160)) if code != 10}  # noqa: PLR2004 - a line break stays

Color = Literal["auto", "always", "never"]


class Console:
    """Where a command's words go."""

    def __init__(self, color: Color = "auto", *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._is_coloured = color == "always" or (
            color == "auto" and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        )
        self.is_interactive = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def result(self, text: str) -> None:
        """Write to stdout as it is; a reader that has gone away is no error."""
        if sys.stdout is None:
            raise WriteError("standard output", OSError("closed"))
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            # What is left in the buffer would raise again when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                raise WriteError("standard output", error) from error

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines to stdout."""
        self.result("".join(f"{line.translate(_CONTROL)}\n" for line in lines))

    def error(self, message: str, hint: str | None = None, details: Iterable[str] = ()) -> None:
        """Say what went wrong, where, and what to do next."""
        self._say("error", message)
        for detail in details:
            self._write(f"    {detail.translate(_CONTROL)}")
        if hint:
            self._say("hint", hint)

    def failure(self, error: CudaRedistError) -> None:
        """Say an error of ours."""
        self.error(error.message, error.hint)

    def warning(self, message: str) -> None:
        """Say something odd that does not stop the run; --quiet leaves it out."""
        if not self._quiet:
            self._say("warning", message)

    def note(self, message: str) -> None:
        """Say what is about to happen; --quiet leaves it out."""
        if not self._quiet:
            self._write(message)

    def byte_progress(self, title: str) -> "TerminalByteProgress":
        """Return progress on large files, which shows on a terminal only."""
        return TerminalByteProgress(title, is_shown=self.is_interactive and not self._quiet)

    def progress(self, title: str) -> "TerminalProgress":
        """Return progress that shows on a terminal only, and only on work of some length."""
        return TerminalProgress(title, is_shown=self.is_interactive and not self._quiet)

    def _say(self, kind: str, message: str) -> None:
        prefix = f"{kind}:"
        if self._is_coloured:
            prefix = f"\x1b[{_STYLES[kind]}m{prefix}\x1b[0m"
        self._write(f"{prefix} {message.translate(_CONTROL)}")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")


class _Shown:
    """A bar that comes once the work has taken a second, and goes away when it is done."""

    def __init__(self, title: str, *, is_shown: bool) -> None:
        self._title = title
        self._is_shown = is_shown
        self._started = time.monotonic()
        self._total = 0
        self._bar: RichProgress | None = None
        self._mutex = threading.Lock()

    @property
    def _is_due(self) -> bool:
        return self._is_shown and time.monotonic() - self._started >= _BEFORE_PROGRESS

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class TerminalProgress(_Shown):
    """Progress of many small items, shown by rich once the work has taken a second."""

    def __init__(self, title: str, *, is_shown: bool) -> None:
        super().__init__(title, is_shown=is_shown)
        self._finished = self._bytes = 0

    def expect(self, count: int) -> None:
        """Learn that so many more items are to be done."""
        with self._mutex:
            self._total += count
            self._update("")

    def done(self, item: str, size: int) -> None:
        """Learn that an item is done, and how many bytes it brought."""
        with self._mutex:
            self._finished += 1
            self._bytes += size
            self._update(item)

    def _update(self, item: str) -> None:
        if not self._is_due:
            return
        if self._bar is None:
            self._bar = _bar(self._title)
        self._bar.update(
            self._bar.task_ids[0],
            total=self._total,
            completed=self._finished,
            item=item,
            size=f"{self._bytes / 1e6:.1f} MB" if self._bytes else "",
        )


class TerminalByteProgress(_Shown):
    """Progress on large files: all bytes with rate and time left, and a line per file in hand."""

    def __init__(self, title: str, *, is_shown: bool) -> None:
        super().__init__(title, is_shown=is_shown)
        self._count = 0
        self._names: dict[int, tuple[str, int | None]] = {}
        self._tasks: dict[int, TaskID] = {}

    def expect(self, count: int) -> None:
        """Learn that so many more bytes are to be read."""
        self._total += count

    def begin(self, name: str, size: int | None) -> int:
        """Learn that a file is begun; returns the number it has from now on."""
        with self._mutex:
            self._count += 1
            self._names[self._count] = (name, size)
            return self._count

    def advance(self, number: int, size: int) -> None:
        """Learn that bytes of a file came; a negative size takes some back."""
        if not self._is_due:
            return
        with self._mutex:
            if self._bar is None:
                self._bar = _byte_bar()
                self._bar.add_task(self._title, total=self._total)
            if number not in self._tasks:
                name, total = self._names[number]
                self._tasks[number] = self._bar.add_task(f"  {name}", total=total)
            self._bar.advance(self._bar.task_ids[0], size)
            self._bar.advance(self._tasks[number], size)

    def end(self, number: int) -> None:
        """Learn that a file is done with, well or not."""
        with self._mutex:
            task = self._tasks.pop(number, None)
            if self._bar is not None and task is not None:
                self._bar.remove_task(task)


def _byte_bar() -> "RichProgress":
    from rich import progress  # noqa: PLC0415 - rich only where it is shown
    from rich.table import Column  # noqa: PLC0415

    return _started(
        progress.TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        progress.BarColumn(bar_width=16),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        is_wide=True,
    )


def _bar(title: str) -> "RichProgress":
    from rich import progress  # noqa: PLC0415 - rich only where it is shown

    bar = _started(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[size]}", markup=False),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[item]}", markup=False),
    )
    bar.add_task(title, total=None, item="", size="")
    return bar


def _started(*columns: "ProgressColumn", is_wide: bool = False) -> "RichProgress":
    """Start a bar on stderr that disappears at the end."""
    from rich.console import Console as RichConsole  # noqa: PLC0415 - rich only where it is shown
    from rich.progress import Progress  # noqa: PLC0415

    console = RichConsole(stderr=True, markup=False, emoji=False, highlight=False)
    bar = Progress(*columns, console=console, transient=True, expand=is_wide)
    bar.start()
    return bar


class _Formatter(logging.Formatter):
    """Log lines in the same form as errors and warnings."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {record.getMessage()}".translate(_CONTROL)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to what stderr is at the moment: while a bar is shown, that is rich's."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def configure_logging(level: str) -> None:
    """Send our own log records of this level and above to stderr; leave other loggers alone."""
    logger = logging.getLogger("cudaredist")
    handler = _Handler()
    handler.setFormatter(_Formatter())
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level)
