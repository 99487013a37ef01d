"""The terminal: results on stdout, messages and progress on stderr.

Only this module and `cli` import rich.
"""

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, Self, TextIO

from cudaredist.errors import CudaRedistError
from cudaredist.progress import Progress
from cudaredist.words import without_secrets

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.progress import TaskID

_BEFORE_PROGRESS = 1.0
"""Seconds until a terminal shows progress."""
_BETWEEN_LINES = 10.0
"""Seconds between progress lines if stderr is not a terminal."""

_STYLES = {"error": "31", "warning": "33", "hint": "36"}
_colored_word = re.compile(
    r"^( *)(errors?|failed|[1-9][\d,]* findings?|warnings?|Only [\d,]+ warnings?)(?=[:., ]|\Z)"
)
"""Matches a severity at the beginning of a line."""
_CONTROL = {code: ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160))}
"""Control characters. A line break in a name would begin a line that others interpret."""
_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Line separators, and characters that change the direction of the text after them."""
_ESCAPED = _CONTROL | {code: ascii(chr(code))[1:-1] for code in _DIRECTIONS}

Color = Literal["auto", "always", "never"]


class Console:
    """Output of a command."""

    def __init__(
        self,
        color: Color = "auto",
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.is_quiet = quiet
        self.clock = clock
        self._is_colored = color == "always" or (
            color == "auto" and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        )
        self.is_interactive = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def result(self, text: str) -> None:
        """Write text to stdout unchanged. Raises `WriteError`."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines to stdout."""
        self.result("".join(f"{line.translate(_ESCAPED)}\n" for line in lines))

    def report(self, lines: Iterable[str], *, pages: bool = True) -> None:
        """Write the lines of a report to stdout.

        On a terminal, they are wrapped to its width. With `pages`, more lines than it has are shown
        in a pager.
        """
        if not sys.stdout.isatty():
            self.lines(lines)
            return
        import shutil

        from cudaredist.cli.terminal_text import pager_command, show_in_pager, wrapped

        size = shutil.get_terminal_size()
        fitting = list(wrapped((line.translate(_ESCAPED) for line in lines), size.columns))
        is_long = len(fitting) >= size.lines and sys.stdin.isatty()
        pager = pager_command() if pages and is_long else []
        text = "".join(f"{line}\n" for line in fitting)
        if not (pager and show_in_pager(text, pager)):
            self.result("".join(f"{self._with_color(line)}\n" for line in fitting))

    def error(self, message: str, hint: str | None = None, details: Iterable[str] = ()) -> None:
        """Print an error with its details and hint."""
        self._print("error", message)
        for detail in details:
            self._write("    ", detail)
        if hint:
            self._print("hint", hint)

    def failure(self, error: CudaRedistError) -> None:
        """Print a CudaRedistError."""
        self.error(error.message, error.hint)

    def warning(self, message: str) -> None:
        """Print a warning, unless --quiet is set."""
        if not self.is_quiet:
            self._print("warning", message)

    def note(self, message: str) -> None:
        """Print a note, unless --quiet is set."""
        if not self.is_quiet:
            self._write("", message)

    def progress(self, title: str) -> "TerminalProgress":
        """Return the progress of a run. --quiet hides it."""
        return TerminalProgress(title, self)

    def rich(self) -> "RichConsole":
        """Return rich's console for progress bars."""
        from rich.console import Console as RichConsole

        return RichConsole(stderr=True, markup=False, emoji=False, highlight=False)

    def _with_color(self, line: str) -> str:
        """Return a line with a red word for findings, or a yellow one for warnings."""
        if not self._is_colored:
            return line

        def colored(match: re.Match[str]) -> str:
            style = _STYLES["warning" if "warning" in match[2] else "error"]
            return f"{match[1]}\x1b[{style}m{match[2]}\x1b[0m"

        return _colored_word.sub(colored, line)

    def _print(self, kind: str, message: str) -> None:
        prefix = f"{kind}:"
        if self._is_colored:
            prefix = f"\x1b[{_STYLES[kind]}m{prefix}\x1b[0m"
        self._write(f"{prefix} ", message)

    def _write(self, prefix: str, message: str) -> None:
        sys.stderr.write(f"{prefix}{without_secrets(message).translate(_ESCAPED)}\n")


class TerminalProgress(Progress):
    """Progress of a run, as temporary bars on a terminal and as lines elsewhere."""

    def __init__(self, title: str, console: Console) -> None:
        super().__init__(console.clock)
        self._title = title
        self._console = console
        self._last_line = self.started
        self._bars: _Bars | None = None
        self._screen = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._screen:
            if self._bars is not None:
                self._bars.stop()

    def changed(self) -> None:
        """Show a change."""
        now = self.clock()
        with self._screen:
            if not self._console.is_interactive:
                if now - self._last_line >= _BETWEEN_LINES:
                    self._last_line = now
                    self._console.note(str(self))
            elif now - self.started >= _BEFORE_PROGRESS and not self._console.is_quiet:
                if self._bars is None:
                    self._bars = _Bars(self._console.rich(), self)
                self._bars.show(self)

    def step(self, title: str, items: int) -> None:
        """Begin a step of the run with a title of its own."""
        self._title = title
        super().step(title, items)

    def __str__(self) -> str:
        """Return the title, items, bytes, rate and remaining time."""
        return f"{self._title} {super().__str__()}"


class _Bars:
    """A bar for the run, followed by one for each item in progress."""

    def __init__(self, console: "RichConsole", run: Progress) -> None:
        from rich import progress
        from rich.table import Column

        whole_line = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        text = progress.TextColumn("{task.fields[text]}", markup=False, table_column=whole_line)
        columns = progress.BarColumn(bar_width=10), text
        self._progress = progress.Progress(*columns, console=console, transient=True, expand=True)
        self._tasks: dict[int, TaskID] = {}
        self._whole = self._progress.add_task("", total=1, text=run)
        self._progress.start()

    def show(self, run: Progress) -> None:
        """Update the bars."""
        self._progress.update(self._whole, completed=run.fraction or 0)
        items = dict(run.current)
        for number in self._tasks.keys() - items.keys():
            self._progress.remove_task(self._tasks.pop(number))
        for number, item in items.items():
            if number not in self._tasks:
                # A column formats the item at every refresh, so the text is current between events.
                self._tasks[number] = self._progress.add_task("", total=1, text=item)
            self._progress.update(self._tasks[number], completed=item.fraction or 0)

    def stop(self) -> None:
        """Remove the bars."""
        self._progress.stop()


class _Handler(logging.StreamHandler[TextIO]):
    """Handler for the current stderr, which rich replaces while it shows bars."""

    def format(self, record: logging.LogRecord) -> str:
        message = without_secrets(record.getMessage())
        return f"{record.levelname.lower()}: {message}".translate(_CONTROL)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def configure_logging(level: str) -> None:
    """Print cudaredist's log records to stderr, from a level up."""
    logger = logging.getLogger("cudaredist")
    logger.handlers[:] = [_Handler()]
    logger.propagate = False
    logger.setLevel(level)
