"""The tables of a file that passes once: what was near the front, what just passed, what is ahead.

A file's bytes are given in order and never again. Whoever looks for a table asks for its range and
is called when it is there: at once where it lies in the first MiB or in the MiB that has just
passed, later where it is still ahead. What is in none of the three is lost, and a note says so.

Nothing depends on how the bytes were cut: what counts as just passed is reckoned from the last byte
that one must know to ask, not from the end of the block in which it came.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

HEAD = 1 << 20
"""Bytes at the front that are kept."""
LOOK_BACK = 1 << 20
"""Bytes that are kept of those that have passed."""
RANGE_LIMIT = 1 << 20
"""The most bytes of one table."""
NAME_LIMIT = 4096
"""The most bytes of one name: the longest path that Linux takes."""
BLOCK_LEAST = 64 << 10
BLOCK_MOST = 256 << 10

Then = Callable[[bytes], None]


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut bytes anew into blocks of 64 to 256 KiB, so that no reader pays for tiny or huge chunks.

    Chunks of such a size pass as they are; only the last block may be smaller.
    """
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        if not held and BLOCK_LEAST <= len(chunk) <= BLOCK_MOST:
            yield chunk
        elif chunk:
            held.append(chunk)
            size += len(chunk)
            if size >= BLOCK_LEAST:
                yield from _cut(held)
                size = 0
    yield from _cut(held)


def _cut(held: list[bytes]) -> Iterator[bytes]:
    joined = b"".join(held)
    held.clear()
    count = -(-len(joined) // BLOCK_MOST)
    size = -(-len(joined) // max(count, 1))
    for number in range(count):
        yield joined[number * size : (number + 1) * size]


def readable(raw: bytes) -> str | None:
    """Return a name as text; None where it is not UTF-8 or has what cannot be printed."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


class _Range(NamedTuple):
    """A range that was asked for; `known` is the byte up to which one must have read to ask."""

    start: int
    order: int
    end: int
    known: int
    data: bytearray
    then: Then
    what: str


class Window:
    """Gives out ranges of the bytes that are fed to it, each as soon as it is complete."""

    def __init__(self) -> None:
        self.position = 0
        """How many bytes have passed."""
        self.notes: dict[str, None] = {}
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._ahead: list[_Range] = []
        self._begun: list[_Range] = []
        self._complete: deque[_Range] = deque()
        self._known = 0
        self._asked = 0

    def note(self, text: str) -> None:
        """Remember what was odd, once."""
        self.notes[text] = None

    def want(self, start: int, size: int, what: str, then: Then) -> None:
        """Call `then` with the `size` bytes from `start`, or note that `what` is lost.

        Without `what`, bytes outside the file are not noted.
        """
        end = start + size
        if size > RANGE_LIMIT:
            self.note(f"{what} not read: larger than {RANGE_LIMIT:,} bytes")
        elif end > HEAD and start < self._known - LOOK_BACK:
            self.note(f"{what} not read: it had passed too long before")
        else:
            self._asked += 1
            known = max(self._known, end)
            self._place(_Range(start, self._asked, end, known, bytearray(), then, what))

    def want_name(self, start: int, room: int, what: str, then: Callable[[str], None]) -> None:
        """Call `then` with the name at `start` that ends in a NUL within `room` bytes."""

        def cut(data: bytes) -> None:
            raw, nul, _ = data.partition(b"\0")
            name = readable(raw)
            if not nul:
                self.note(f"{what} not read: it has no end")
            elif name is None:
                self.note(f"{what} not read: it is no text")
            else:
                then(name)

        if room <= 0:
            self.note(f"{what} not read: it lies outside its table")
        else:
            self.want(start, min(room, NAME_LIMIT + 1), what, cut)

    def feed(self, block: bytes) -> None:
        """Take the next bytes, at most `BLOCK_MOST`."""
        before = self.position
        self.position += len(block)
        if before < HEAD:
            self._head += block[: HEAD - before]
        self._tail.append(block)
        self._tail_size += len(block)
        while self._tail_size - len(self._tail[0]) >= LOOK_BACK + BLOCK_MOST:
            self._tail_size -= len(self._tail.popleft())
        if self._begun:
            begun, self._begun = self._begun, []
            for wanted in begun:
                wanted.data.extend(block[: wanted.end - before])
                self._queue(wanted)
        while self._ahead and self._ahead[0].start < self.position:
            self._place(heapq.heappop(self._ahead))
        self._call()

    def finish(self) -> None:
        """Note what was asked for and never came."""
        self._call()
        for wanted in (*self._begun, *self._ahead):
            if wanted.what:
                self.note(f"{wanted.what} not read: it lies outside the file")

    def _place(self, wanted: _Range) -> None:
        if wanted.start >= self.position and wanted.end > wanted.start:
            heapq.heappush(self._ahead, wanted)
        else:
            wanted.data.extend(self._slice(wanted.start, min(wanted.end, self.position)))
            self._queue(wanted)

    def _queue(self, wanted: _Range) -> None:
        is_complete = len(wanted.data) == wanted.end - wanted.start
        (self._complete if is_complete else self._begun).append(wanted)

    def _call(self) -> None:
        while self._complete:
            wanted = self._complete.popleft()
            self._known = wanted.known
            wanted.then(bytes(wanted.data))

    def _slice(self, start: int, end: int) -> bytes:
        if end <= len(self._head):
            return bytes(self._head[start:end])
        parts: list[bytes] = []
        block_end = self.position
        for block in reversed(self._tail):
            block_start = block_end - len(block)
            parts.append(block[max(start - block_start, 0) : max(end - block_start, 0)])
            if block_start <= start:
                break
            block_end = block_start
        return b"".join(reversed(parts))
