"""Progress of a run, in numbers and text."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

_Item = TypeVar("_Item")

_WINDOW = 15.0
"""Seconds for the measurement of the rate."""
_SAMPLE = 0.5
_FIRST_SHARE = 0.1
"""The share of the items after which their time is known. The first ones are often the slowest."""
_UNITS = ("kB", "MB", "GB", "TB")


def total_size(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of sizes, or None if one is unknown."""
    stated = list(sizes)
    known = [size for size in stated if size is not None]
    return sum(known) if len(known) == len(stated) else None


def size_words(size: float) -> str:
    """Return a size such as `1.2 GB`. Units are powers of 1000."""
    value, unit = size, "B"
    for larger in _UNITS:
        if value < 1000:  # noqa: PLR2004 - the step between units
            break
        value, unit = value / 1000, larger
    digits = 0 if unit == "B" or round(value, 1) >= 100 else 1  # noqa: PLR2004 - three digits
    return f"{value:,.{digits}f} {unit}"


@dataclass(slots=True)
class Item:
    """An item in progress."""

    name: str
    size: int | None
    received: int = 0

    @property
    def fraction(self) -> float | None:
        """The completed share, None if the size is unknown."""
        return self.received / self.size if self.size else None

    def __str__(self) -> str:
        """Return the received bytes and the name."""
        return f"{_of(self.received, self.size)}  {self.name}"


@dataclass(eq=False)
class Progress:
    """The progress of a run, for use from any thread. This class displays nothing."""

    clock: Callable[[], float] = time.monotonic
    items: int = 0
    finished: int = 0
    received: int = 0
    expected: int = 0
    is_size_known: bool = True
    current: dict[int, Item] = field(default_factory=dict)
    """Items in progress, by number."""
    _begun: int = 0
    _samples: deque[tuple[float, int]] = field(default_factory=deque)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.started = self._step_started = self.clock()

    @property
    def total(self) -> int | None:
        """The bytes of all items, None if unknown."""
        return max(self.expected, self.received) if self.is_size_known else None

    @property
    def fraction(self) -> float | None:
        """The completed share, by bytes if their total is known, else by items."""
        if self.expected and self.total:
            return self.received / self.total
        return self.finished / self.items if self.items else None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._mutex:
            yield
        self.changed()

    def changed(self) -> None:
        """Show a change."""

    def expect(self, items: int, size: int | None = 0) -> None:
        """Add pending items and their bytes. A size of None makes the total unknown."""
        with self._changing():
            self.items += items
            self.expected += size or 0
            self.is_size_known &= size is not None

    def step(self, title: str, items: int) -> None:
        """Begin a step of the run. The remaining time is that of its items.

        `title` is for classes that display the progress.
        """
        del title
        with self._changing():
            self.items, self.finished = items, 0
            self._step_started = self.clock()

    def begin(self, name: str, size: int | None) -> int:
        """Add an item in progress and return its number."""
        with self._changing():
            self._begun += 1
            self.current[self._begun] = Item(name, size)
            return self._begun

    def advance(self, number: int, size: int) -> None:
        """Add received bytes of an item. A negative size subtracts them."""
        # Called for each chunk of a download, so `_changing` would take too long.
        with self._mutex:
            self.current[number].received += size
            self._count(size)
        self.changed()

    def end(self, number: int, *, is_done: bool = True) -> None:
        """Remove an item in progress, and count it if it is done."""
        with self._changing():
            del self.current[number]
            self.finished += is_done

    def done(self, size: int = 0) -> None:
        """Count an item and its bytes as finished."""
        with self._changing():
            self.finished += 1
            self._count(size)

    def each(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield expected items, and count each as finished when the next one is requested."""
        for item in items:
            yield item
            self.done()

    def _count(self, size: int) -> None:
        now = self.clock()
        self.received += size
        if not self._samples:
            self._samples.append((self.started, 0))
        if now - self._samples[-1][0] >= _SAMPLE:
            self._samples.append((now, self.received))
        while len(self._samples) > 1 and now - self._samples[1][0] >= _WINDOW:
            self._samples.popleft()

    def __str__(self) -> str:
        """Return items, bytes, rate and remaining time.

        The text has at most 64 characters.
        """
        now = self.clock()
        with self._mutex:
            rate = self._rate(now)
            parts = [f"{self.finished:,} of {self.items:,}"]
            if self.received or self.expected:
                parts += [_of(self.received, self.total), f"{size_words(rate)}/s"]
            return ", ".join([*parts, self._left(now, rate)])

    def _rate(self, now: float) -> float:
        """Return the recent rate in bytes per second."""
        since, before = self._samples[0] if self._samples else (self.started, 0)
        return max(0.0, self.received - before) / (now - since) if now > since else 0.0

    def _left(self, now: float, rate: float) -> str:
        seconds: float | None = None
        if self.expected and self.total is not None:
            seconds = (self.total - self.received) / rate if rate else None
        elif self.finished and self.finished >= _FIRST_SHARE * self.items:
            pending = self.items - self.finished
            seconds = pending * (now - self._step_started) / self.finished
        return "time unknown" if seconds is None else f"{_time(seconds)} left"


def _of(received: int, total: int | None) -> str:
    rest = " (total unknown)" if total is None else f" of {size_words(total)}"
    return size_words(received) + rest


def _time(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


NO_PROGRESS = Progress()
