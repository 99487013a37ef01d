"""Access to the tables of a file in one pass.

A file's bytes pass in order. A reader requests the range of a table and is called when the table is
available: at once if it is in the first MiB or in the last MiB that passed, later if it is still
ahead. If a reader can predict the ranges of tables, it can have them kept until it releases them.
Other ranges that have passed are lost: a note reports them, and the facts that depend on them are
unread. Their positions are recorded, so that a second pass over the file can keep them from the
beginning. If the file can be read at any position, ranges that have passed are read again instead.

The result does not depend on the sizes of the blocks. The last MiB and the kept ranges are counted
from the last byte that the reader needed for its request, not from the end of the current block.
Blocks are stored without a copy. Only requested ranges are copied.
"""

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

HEAD = 1 << 20
"""Bytes to keep at the front."""
LOOK_BACK = 1 << 20
"""Bytes to keep before the current position."""
RANGE_LIMIT = 1 << 20
"""Maximum bytes of one table."""
NAME_LIMIT = 4096
"""Maximum bytes of one name, which is also Linux's longest path."""
BLOCK_LEAST = 64 << 10
BLOCK_MOST = 256 << 10

_FRONT = (0, HEAD)
_ALWAYS_LIMIT = 16 << 20
"""Maximum bytes of missed ranges that a second pass keeps."""

Range = tuple[int, int]
"""The first position of some bytes, and the position after their last."""
Then = Callable[[bytes], None]
Reread = Callable[[int, int], bytes]
"""Returns bytes that have passed, by position and size."""


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split or join chunks into blocks of 64 to 256 KiB.

    Readers are slow if chunks are tiny or huge. Chunks of a suitable size pass unchanged. Only the
    last block may be smaller.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        if not parts and BLOCK_LEAST <= len(chunk) <= BLOCK_MOST:
            yield chunk
        elif chunk:
            parts.append(chunk)
            size += len(chunk)
            if size >= BLOCK_LEAST:
                yield from _cut(parts)
                size = 0
    yield from _cut(parts)


def _cut(parts: list[bytes]) -> Iterator[bytes]:
    joined = b"".join(parts)
    parts.clear()
    count = -(-len(joined) // BLOCK_MOST)
    size = -(-len(joined) // max(count, 1))
    for number in range(count):
        yield joined[number * size : (number + 1) * size]


def text_of_name(raw: bytes) -> str | None:
    """Return a name as text, None if not printable UTF-8."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


class _Request(NamedTuple):
    """A request for a range.

    `known` is the position up to which the file must have been read to make this request.
    """

    start: int
    order: int
    end: int
    known: int
    data: bytearray
    then: Then
    subject: str
    facts: tuple[str, ...]


class Window:
    """A window on a file's bytes that delivers requested ranges."""

    def __init__(self) -> None:
        self.position = 0
        """The number of bytes that have passed."""
        self.notes: dict[str, None] = {}
        self.unread: set[str] = set()
        """The facts that depend on a table that could not be read completely."""
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.missed: list[Range] = []
        """The ranges that were requested too late."""
        self.reread: Reread | None = None
        self._always: list[Range] = [_FRONT]
        self._to_keep = self._always
        self._blocks: list[bytes] = []
        """The blocks before the tail that contain bytes to keep."""
        self._places: list[int] = []
        """The positions of these blocks."""
        self._ahead: list[_Request] = []
        self._begun: list[_Request] = []
        self._complete: deque[_Request] = deque()
        self._known = 0
        self._requests = 0

    def note(self, text: str) -> None:
        """Add a note, unless it exists already."""
        self.notes[text] = None

    def lose(self, text: str, *facts: str) -> None:
        """Mark facts as unread, with a note."""
        self.note(text)
        self.unread.update(facts)

    def hold(self, ranges: Iterable[Range]) -> None:
        """Keep the missed ranges of an earlier pass."""
        room = _ALWAYS_LIMIT
        for start, end in ranges:
            room -= end - start
            if room >= 0:
                self._always = sorted([*self._always, (start, end)])
        self._to_keep = self._always

    def keep(self, ranges: Iterable[Range]) -> None:
        """Keep the bytes of these ranges until `release`.

        Only `want` calls with `facts` read kept bytes. Make them in the callback that called this
        method. Otherwise the order of requests would depend on the sizes of the blocks.
        """
        reach = self._known - LOOK_BACK
        clipped = [(max(start, reach), end) for start, end in ranges]
        self._to_keep = sorted([*self._to_keep, *(kept for kept in clipped if kept[0] < kept[1])])

    def release(self) -> None:
        """Stop keeping the ranges of `keep`."""
        self._to_keep = self._always
        blocks_kept = [
            (place, block)
            for place, block in zip(self._places, self._blocks, strict=True)
            if self._is_kept(place, place + len(block))
        ]
        self._places = [place for place, _ in blocks_kept]
        self._blocks = [block for _, block in blocks_kept]

    def want(self, start: int, size: int, subject: str, then: Then, *facts: str) -> None:
        """Call `then` with the `size` bytes from `start`, or lose `facts`.

        `subject` is the range's name in notes. If it is empty, bytes outside the file are not
        noted.
        """
        end = start + size
        if size > RANGE_LIMIT:
            self.lose(f"{subject} not read: larger than {RANGE_LIMIT:,} bytes", *facts)
            return
        self._requests += 1
        known = max(self._known, end)
        request = _Request(start, self._requests, end, known, bytearray(), then, subject, facts)
        if not self._has_passed(start, end, self._to_keep if facts else self._always):
            self._place(request)
        elif self.reread is not None:
            request.data.extend(self.reread(start, min(end, self.position) - start))
            self._queue(request)
        else:
            self._miss(start, end, subject, *facts)

    def _miss(self, start: int, end: int, subject: str, *facts: str) -> None:
        self.missed.append((start, end))
        self.lose(f"{subject} not read: it passed before its position was known", *facts)

    def want_table(
        self, start: int, size: int, what: str, then: Then, *facts: str, limit: int
    ) -> None:
        """Call `then` with a table that may be larger than one range, up to a limit.

        It is requested piece by piece, each after the previous one arrived.
        """
        if size > limit:
            self.lose(f"{what} not read: larger than {limit:,} bytes", *facts)
            return
        ranges = self._to_keep if facts else self._always
        if self.reread is None and self._has_passed(start, start + size, ranges):
            # The next pass must keep all of it, not only the first piece.
            self._miss(start, start + size, what, *facts)
            return
        parts: list[bytes] = []
        read = 0

        def take(data: bytes) -> None:
            nonlocal read
            parts.append(data)
            read += len(data)
            if read < size:
                self.want(start + read, min(size - read, RANGE_LIMIT), what, take, *facts)
                return
            table = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            then(table)

        self.want(start, min(size, RANGE_LIMIT), what, take, *facts)

    def want_name(
        self, start: int, room: int, subject: str, then: Callable[[str], None], *facts: str
    ) -> None:
        """Call `then` with the name at `start`, or lose `facts`.

        The name must end with a NUL within `room` bytes.
        """

        def cut(data: bytes) -> None:
            raw, nul, _ = data.partition(b"\0")
            name = text_of_name(raw)
            if not nul:
                self.lose(f"{subject} not read: it has no end", *facts)
            elif name is None:
                self.lose(f"{subject} not read: it is not text", *facts)
            else:
                then(name)

        if room <= 0:
            self.lose(f"{subject} not read: it is outside its table", *facts)
        else:
            self.want(start, min(room, NAME_LIMIT + 1), subject, cut, *facts)

    def feed(self, block: bytes) -> None:
        """Read the next bytes, at most `BLOCK_MOST`."""
        before = self.position
        self.position += len(block)
        self._tail.append(block)
        self._tail_size += len(block)
        while self._tail_size - len(self._tail[0]) >= LOOK_BACK + BLOCK_MOST:
            self._pass(self._tail.popleft())
        if self._begun:
            begun, self._begun = self._begun, []
            for request in begun:
                request.data.extend(block[: request.end - before])
                self._queue(request)
        while self._ahead and self._ahead[0].start < self.position:
            self._place(heapq.heappop(self._ahead))
        self._call()

    def finish(self) -> None:
        """Add notes for requests outside the file."""
        self._call()
        for request in (*self._begun, *self._ahead):
            self.unread.update(request.facts)
            if request.subject:
                self.note(f"{request.subject} not read: it is outside the file")

    def _has_passed(self, start: int, end: int, kept: list[Range]) -> bool:
        """Return whether a part of a range passed and was not kept."""
        near = self._known - LOOK_BACK
        for kept_start, kept_end in kept:
            if start < near and kept_start <= start < kept_end:
                start = kept_end
        return start < min(near, end)

    def _pass(self, block: bytes) -> None:
        """Move a block out of the tail.

        It is stored if it contains bytes to keep.
        """
        start = self.position - self._tail_size
        self._tail_size -= len(block)
        end = start + len(block)
        if self._is_kept(start, end):
            self._places.append(start)
            self._blocks.append(block)

    def _is_kept(self, start: int, end: int) -> bool:
        return any(start < kept_end and kept_start < end for kept_start, kept_end in self._to_keep)

    def _place(self, request: _Request) -> None:
        if request.start >= self.position and request.end > request.start:
            heapq.heappush(self._ahead, request)
        else:
            request.data.extend(self._slice(request.start, min(request.end, self.position)))
            self._queue(request)

    def _queue(self, request: _Request) -> None:
        is_complete = len(request.data) == request.end - request.start
        (self._complete if is_complete else self._begun).append(request)

    def _call(self) -> None:
        while self._complete:
            request = self._complete.popleft()
            self._known = request.known
            request.then(bytes(request.data))

    def _slice(self, start: int, end: int) -> bytes:
        """Return bytes from the stored blocks and the tail."""
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
            parts.append(self._blocks[index][max(start - place, 0) : end - place])
        return b"".join(reversed(parts))
