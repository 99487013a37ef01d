"""Text for a terminal: lines in its width, and a pager for more lines than it has."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

_DEEPER = 4
"""Additional indentation of the rest of a line."""
_CELL_GAP = 2
"""Spaces between the cells in the rest of a row."""
_LEAST_WIDTH = 40
"""Columns of a terminal to write for, even if it has fewer."""

_CELL = re.compile(r"\S+(?: \S+)*")
_COMMAND_OR_WORD = re.compile(r"(?:`[^`]*`|[^\s`])+")


def wrapped(lines: Iterable[str], width: int) -> Iterator[str]:
    """Break lines at spaces, so that they fit into a terminal.

    The rest of a line is indented by four more columns than the line, or to the last cell of a
    table's row if that is in the left half. Rows of tables break between cells if possible.
    Commands in backticks and longer words stay whole.
    """
    width = max(width, _LEAST_WIDTH)
    for line in lines:
        if len(line) <= width:
            yield line
        else:
            yield from _wrapped_line(line, width)


def _wrapped_line(line: str, width: int) -> Iterator[str]:
    cells = list(_CELL.finditer(line))
    indent = len(line) - len(line.lstrip()) + _DEEPER
    if len(cells) > 1 and cells[-1].start() <= width // 2:
        indent = cells[-1].start()
    row, end, gap_limit = "", 0, len(line)
    for part in _parts(cells, width - indent):
        gap = line[end : part.start()][:gap_limit]
        if row.strip() and len(row + gap + part[0]) > width:
            yield row
            row, gap, gap_limit = "", " " * indent, _CELL_GAP
        row, end = f"{row}{gap}{part[0]}", part.end()
    yield row


def _parts(cells: Sequence[re.Match[str]], width: int) -> Iterator[re.Match[str]]:
    """Yield the cells of a row that fit into a width, and the words of others."""
    for cell in cells:
        if len(cells) > 1 and len(cell[0]) <= width:
            yield cell
        else:
            yield from _COMMAND_OR_WORD.finditer(cell.string, *cell.span())


def pager_command() -> list[str]:
    """Return the words of the pager's command, none without a pager.

    It is in the variable PAGER, and an empty value means none. The default is less.
    """
    named = os.environ.get("PAGER")
    if named is None:
        path = shutil.which("less")
        return [] if path is None else [path]
    with suppress(ValueError):
        return shlex.split(named)
    return []


def show_in_pager(text: str, command: list[str]) -> bool:
    """Show text in a pager until the user closes it, and return False if it cannot start."""
    # As in Git: short text stays on the screen, and colors are shown.
    environment = {"LESS": "FRX", **os.environ}
    try:
        pager = subprocess.Popen(  # noqa: S603 - the user's own pager
            command, stdin=subprocess.PIPE, env=environment, text=True, errors="backslashreplace"
        )
    except OSError:
        return False
    # Ctrl-C is for the pager, for example to end a search.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # The user may close the pager before it read all.
        with suppress(BrokenPipeError):
            pager.communicate(text)
        pager.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return True
