"""Memory that all archives of this process share while they are unpacked.

Each archive has a small dictionary of its own. Everything beyond that, which is larger dictionaries
and xz blocks that are unpacked ahead, comes out of one sum, however many archives are read at once.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

OWN_DICTIONARY = 64 << 20
"""Bytes of a dictionary that every archive may use without sharing; `xz -9` needs as many."""
SHARED_MEMORY = 512 << 20
"""Bytes that all archives of this process use together, beyond their own."""


class SharedMemory:
    """A number of bytes that threads take and give back.

    To take for a block never waits. To take for a dictionary does, and whoever waits has given back
    everything else, so that no two archives can wait for each other.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        """Bytes that are in use."""
        self._waiting = 0
        self._changed = threading.Condition()

    def take(self, count: int) -> bool:
        """Take bytes if they are free and nobody waits for them; return whether they were taken."""
        with self._changed:
            if self._waiting or self.taken + count > self.size:
                return False
            self.taken += count
            return True

    def give_back(self, count: int) -> None:
        """Let others have bytes that were taken."""
        with self._changed:
            self.taken -= count
            self._changed.notify_all()

    @contextmanager
    def dictionary(self, size: int) -> Iterator[None]:
        """Wait until there is memory for a dictionary, and give it back at the end."""
        count = min(size - OWN_DICTIONARY, self.size)
        if count <= 0:
            yield
            return
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self.taken + count <= self.size)
            finally:
                self._waiting -= 1
            self.taken += count
        try:
            yield
        finally:
            self.give_back(count)


SHARED = SharedMemory(SHARED_MEMORY)
