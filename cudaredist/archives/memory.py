"""The memory that all archives of this process share.

Each archive has a small dictionary of its own. Larger dictionaries, and xz blocks that are unpacked
ahead, use a shared amount that does not depend on the number of archives.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

OWN_DICTIONARY = 64 << 20
"""Bytes of a dictionary that every archive may use for itself. `xz -9` requires this size."""
SHARED_MEMORY = 512 << 20
"""Bytes that all archives of this process share, in addition to their own."""


class SharedMemory:
    """An amount of memory that threads reserve and release.

    A reservation for a block never waits. A reservation for a dictionary may wait, but the thread
    has released everything else by then, so two archives cannot wait for each other.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.in_use = 0
        """Reserved bytes."""
        self._waiting = 0
        self._changed = threading.Condition()

    def reserve(self, count: int) -> bool:
        """Reserve bytes if they are free and no thread waits.

        Returns whether they were reserved.
        """
        with self._changed:
            if self._waiting or self.in_use + count > self.size:
                return False
            self.in_use += count
            return True

    def release(self, count: int) -> None:
        """Release reserved bytes."""
        with self._changed:
            self.in_use -= count
            self._changed.notify_all()

    @contextmanager
    def dictionary(self, size: int) -> Iterator[None]:
        """Wait for a dictionary's memory and reserve it."""
        count = max(0, min(size - OWN_DICTIONARY, self.size))
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self.in_use + count <= self.size)
            finally:
                self._waiting -= 1
            self.in_use += count
        try:
            yield
        finally:
            self.release(count)


SHARED = SharedMemory(SHARED_MEMORY)
