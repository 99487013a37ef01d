"""A bound on the time of whole answers, which httpx does not offer.

httpx bounds the wait for the next bytes only, so a server that sends a header a byte at a time
could hold a thread for ever. Here one thread looks after all others' connections and ends those
whose answer has taken all the time it had.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping

import httpcore

_PAUSE = 0.1
"""Seconds between two looks."""


class Watch:
    """Looks after the connections of several threads; each thread has its own."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._local = threading.local()
        self._deadlines: dict[int, tuple[float, list[httpcore.NetworkStream]]] = {}
        self._closed = threading.Event()
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None

    def note(self, event: str, info: Mapping[str, object]) -> None:
        """Remember a connection of this thread when httpcore traces that it was made."""
        if event.endswith(".complete"):
            stream = info.get("return_value")
            if isinstance(stream, httpcore.NetworkStream):
                self._streams().append(stream)

    @contextlib.contextmanager
    def answer(self) -> Iterator[float]:
        """Bound what this thread does meanwhile; gives the time it must be done by."""
        with self._mutex:
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, daemon=True, name="watch")
                self._thread.start()
        deadline = time.monotonic() + self._seconds
        owner = threading.get_ident()
        self._deadlines[owner] = (deadline, self._streams())
        try:
            yield deadline
        finally:
            del self._deadlines[owner]

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()

    def _streams(self) -> list[httpcore.NetworkStream]:
        streams: list[httpcore.NetworkStream] | None = getattr(self._local, "streams", None)
        if streams is None:
            streams = self._local.streams = []
        return streams

    def _look(self) -> None:
        while not self._closed.wait(_PAUSE):
            now = time.monotonic()
            for deadline, streams in list(self._deadlines.values()):
                if now >= deadline:
                    _end(list(streams))


def _end(streams: list[httpcore.NetworkStream]) -> None:
    for stream in streams:
        opened = stream.get_extra_info("socket")
        if isinstance(opened, socket.socket):
            with contextlib.suppress(OSError):
                # The method of the base class: a TLS socket's own would forget its TLS state, which
                # the thread that reads from it still uses.
                socket.socket.shutdown(opened, socket.SHUT_RDWR)
