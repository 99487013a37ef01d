"""The standard streams of the process, even if one is closed or on a full disk.

Everything that the program prints goes through these streams: reports, help texts, messages,
progress and tracebacks.
"""

import errno
import io
import os
import sys
from typing import NoReturn, TextIO

from cudaredist.errors import STANDARD_OUTPUT, WriteError

_CLOSED = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}
"""How to open the null device in place of a closed stream.

Reading from standard input and writing to standard output fail, and messages are lost.
"""


class ResultStream(io.TextIOWrapper):
    """Standard output. Raises `WriteError` if it cannot be written, except into a closed pipe."""

    def write(self, text: str, /) -> int:
        """Write text."""
        try:
            return super().write(text)
        except OSError as error:
            return self._lose(text, error)

    def flush(self) -> None:
        """Write the text in the buffer."""
        try:
            super().flush()
        except OSError as error:
            self._lose("", error)

    def _lose(self, text: str, error: OSError) -> int:
        discard_buffer(self)
        if not isinstance(error, BrokenPipeError):
            refuse_output(error)
        return len(text)


class MessageStream(io.TextIOWrapper):
    """Standard error. A message that cannot be written is lost, which changes nothing else."""

    def write(self, text: str, /) -> int:
        """Write text if possible."""
        try:
            return super().write(text)
        except OSError:
            discard_buffer(self)
            return len(text)

    def flush(self) -> None:
        """Write the text in the buffer if possible."""
        try:
            super().flush()
        except OSError:
            discard_buffer(self)


def discard_buffer(stream: io.TextIOWrapper) -> None:
    """Discard the buffer of a stream and everything that is written to it later.

    Otherwise, the interpreter writes the buffer again at the end of the process.
    """
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, stream.fileno())
    os.close(handle)


def refuse_output(error: OSError) -> NoReturn:
    """Raise `WriteError` for standard output."""
    if error.errno == errno.EBADF:
        error = OSError(error.errno, "it is closed")
    raise WriteError(STANDARD_OUTPUT, error) from error


def use_safe_streams() -> None:
    """Replace the standard streams of this process.

    If a terminal or pipe cannot encode a character, its escape is printed.
    """
    for number, mode in _CLOSED.items():
        try:
            os.fstat(number)
        except OSError:
            # The new descriptor has this number, because all lower ones are in use. Otherwise, the
            # next file that the program opens would get it, and with it the messages.
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = _replaced(sys.stdout, 1, ResultStream)
    sys.stderr = _replaced(sys.stderr, 2, MessageStream)
    # Python and rich read the size of the terminal from the original streams, which are detached.
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc, assignment]


def _replaced(
    stream: TextIO | None, number: int, kind: type[ResultStream] | type[MessageStream]
) -> TextIO:
    """Return a stream of another kind in place of a standard one, which may be closed."""
    if stream is None:
        closed = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
        return kind(closed, encoding="utf-8", errors="backslashreplace")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    encoding, lines, through = stream.encoding, stream.line_buffering, stream.write_through
    return kind(
        stream.detach(),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=lines,
        write_through=through,
    )
