"""Deadlines for complete HTTP answers.

httpx only limits the wait for the next bytes, so a server that sends one byte at a time could block
a thread forever. Here one thread watches the connections of all others and ends a connection when
its answer is past the deadline.
"""

import contextlib
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping

import httpcore

_PAUSE = 0.1
"""Seconds between two checks."""


class Watch:
    """A watch over the connections of several threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # By thread. A new thread may get the number, and the connections, of one that ended.
        self._streams: defaultdict[int, list[httpcore.NetworkStream]] = defaultdict(list)
        self._deadlines: dict[int, float] = {}
        self._closed = threading.Event()
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None

    def note(self, event: str, info: Mapping[str, object]) -> None:
        """Record a new connection of this thread from httpcore's trace."""
        stream = info.get("return_value")
        if event.endswith(".complete") and isinstance(stream, httpcore.NetworkStream):
            self._streams[threading.get_ident()].append(stream)

    @contextlib.contextmanager
    def answer(self) -> Iterator[float]:
        """Set a deadline for this thread's requests and yield it."""
        try:
            yield self.begin()
        finally:
            self.end()

    def begin(self) -> float:
        """Set a deadline for this thread's requests and return it.

        For the chunks of large files, `answer` takes several times as long.
        """
        if self._thread is None:
            self._start()
        deadline = self._deadlines[threading.get_ident()] = time.monotonic() + self._seconds
        return deadline

    def end(self) -> None:
        """Remove the deadline."""
        del self._deadlines[threading.get_ident()]

    def _start(self) -> None:
        with self._mutex:
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, daemon=True, name="watch")
                self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _look(self) -> None:
        while not self._closed.wait(_PAUSE):
            now = time.monotonic()
            for owner, deadline in list(self._deadlines.items()):
                if now >= deadline:
                    _end(list(self._streams[owner]))


def _end(streams: list[httpcore.NetworkStream]) -> None:
    for stream in streams:
        connection = stream.get_extra_info("socket")
        if isinstance(connection, socket.socket):
            with contextlib.suppress(OSError):
                # Call the base class: a TLS socket's own method would drop its TLS state, and the
                # reading thread still uses that.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
