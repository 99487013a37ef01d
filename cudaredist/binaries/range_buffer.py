"""The tables of a file that passes once: what was near the front, what just passed, what is ahead.

A file's bytes are given in order and never again. Whoever looks for a table asks for its range and
is called when it is there: at once where it lies in the first MiB or in the MiB that has just
passed, later where it is still ahead. Whoever knows beforehand where a table may lie, but not yet
the table, has those ranges kept until he needs them no more. What is in none of these is lost: a
note says so, and the facts that depend on it are named as unread. Where it lay is known then, so
that a second pass over the file can hold it from the beginning.

Nothing depends on how the bytes were cut: what counts as just passed, and as kept, is reckoned from
the last byte that one must know to ask, not from the end of the block in which it came. Blocks are
held as they came and never copied, but for the ranges that are given out.
"""

import heapq
from bisect import bisect_right
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

_FRONT = (0, HEAD)
_HELD_LIMIT = 16 << 20
"""The most bytes that a further pass holds of what the one before had missed."""

Range = tuple[int, int]
"""Where some bytes begin and end."""
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


def text_of_name(raw: bytes) -> str | None:
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
    facts: tuple[str, ...]


class Window:
    """Gives out ranges of the bytes that are fed to it, each as soon as it is complete."""

    def __init__(self) -> None:
        self.position = 0
        """How many bytes have passed."""
        self.notes: dict[str, None] = {}
        self.unread: set[str] = set()
        """The facts that depend on a table, or a part of one, that could not be read."""
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.missed: list[Range] = []
        """What was asked for after it had passed."""
        self._always: list[Range] = [_FRONT]
        self._kept = self._always
        self._held: list[bytes] = []
        """The blocks in front of the tail that have a part in what is kept, and their places."""
        self._places: list[int] = []
        self._ahead: list[_Range] = []
        self._begun: list[_Range] = []
        self._complete: deque[_Range] = deque()
        self._known = 0
        self._asked = 0

    def note(self, text: str) -> None:
        """Remember what was odd, once."""
        self.notes[text] = None

    def lose(self, text: str, *facts: str) -> None:
        """Remember, with a note, that facts could not be read."""
        self.note(text)
        self.unread.update(facts)

    def hold(self, ranges: Iterable[Range]) -> None:
        """Keep these ranges to the end: an earlier pass has missed them."""
        room = _HELD_LIMIT
        for start, end in ranges:
            room -= end - start
            if room >= 0:
                self._always = sorted([*self._always, (start, end)])
        self._kept = self._always

    def keep(self, ranges: Iterable[Range]) -> None:
        """Keep the bytes of these ranges, besides the front, until `release`.

        Only ranges that facts depend on are looked for there. They must follow from the one that
        called this, or else it would depend on how the bytes were cut which of them came first.
        """
        reach = self._known - LOOK_BACK
        clipped = [(max(start, reach), end) for start, end in ranges]
        self._kept = sorted([*self._kept, *(kept for kept in clipped if kept[0] < kept[1])])

    def release(self) -> None:
        """Keep only the front, and what is held to the end, from now on."""
        self._kept = self._always
        held = [
            (place, block)
            for place, block in zip(self._places, self._held, strict=True)
            if self._is_kept(place, place + len(block))
        ]
        self._places = [place for place, _ in held]
        self._held = [block for _, block in held]

    def want(self, start: int, size: int, what: str, then: Then, *facts: str) -> None:
        """Call `then` with the `size` bytes from `start`, or note that `what` is lost, and `facts`.

        Without `what`, bytes outside the file are not noted.
        """
        end = start + size
        if size > RANGE_LIMIT:
            self.lose(f"{what} not read: larger than {RANGE_LIMIT:,} bytes", *facts)
        elif self._has_passed(start, end, self._kept if facts else self._always):
            self.missed.append((start, end))
            self.lose(f"{what} not read: it had passed too long before", *facts)
        else:
            self._asked += 1
            known = max(self._known, end)
            self._place(_Range(start, self._asked, end, known, bytearray(), then, what, facts))

    def want_name(
        self, start: int, room: int, what: str, then: Callable[[str], None], *facts: str
    ) -> None:
        """Call `then` with the name at `start` that ends in a NUL within `room` bytes."""

        def cut(data: bytes) -> None:
            raw, nul, _ = data.partition(b"\0")
            name = text_of_name(raw)
            if not nul:
                self.lose(f"{what} not read: it has no end", *facts)
            elif name is None:
                self.lose(f"{what} not read: it is no text", *facts)
            else:
                then(name)

        if room <= 0:
            self.lose(f"{what} not read: it lies outside its table", *facts)
        else:
            self.want(start, min(room, NAME_LIMIT + 1), what, cut, *facts)

    def feed(self, block: bytes) -> None:
        """Take the next bytes, at most `BLOCK_MOST`."""
        before = self.position
        self.position += len(block)
        self._tail.append(block)
        self._tail_size += len(block)
        while self._tail_size - len(self._tail[0]) >= LOOK_BACK + BLOCK_MOST:
            self._pass(self._tail.popleft())
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
            self.unread.update(wanted.facts)
            if wanted.what:
                self.note(f"{wanted.what} not read: it lies outside the file")

    def _has_passed(self, start: int, end: int, kept: list[Range]) -> bool:
        """Whether a range has a part that is neither ahead, nor near enough, nor kept."""
        near = self._known - LOOK_BACK
        for kept_start, kept_end in kept:
            if start < near and kept_start <= start < kept_end:
                start = kept_end
        return start < min(near, end)

    def _pass(self, block: bytes) -> None:
        """Take a block out of the tail, and hold it where a part of it is kept."""
        start = self.position - self._tail_size
        self._tail_size -= len(block)
        end = start + len(block)
        if self._is_kept(start, end):
            self._places.append(start)
            self._held.append(block)

    def _is_kept(self, start: int, end: int) -> bool:
        return any(start < kept_end and kept_start < end for kept_start, kept_end in self._kept)

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
        """Return bytes that are held or in the tail."""
        parts: list[bytes] = []
        place = self.position
        for block in reversed(self._tail):
            if place <= start:
                break
            place -= len(block)
            parts.append(block[max(start - place, 0) : max(end - place, 0)])
        for index in range(bisect_right(self._places, end - 1) - 1, -1, -1):
            if place <= start:
                break
            place = self._places[index]
            parts.append(self._held[index][max(start - place, 0) : end - place])
        return b"".join(reversed(parts))
