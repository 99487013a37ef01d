"""A limit of the work for one file, so that hostile source code ends.

Work is counted in steps, not in time, so that two runs have equal results.
"""

_STEPS_PER_BYTE = 5
"""The limit for each byte of a file."""
_LEAST = 200_000
"""The limit of an empty file."""


class TooMuchWorkError(Exception):
    """A file needs more steps than its limit."""


class WorkLimit:
    """Counts the steps for a file."""

    def __init__(self, size: int) -> None:
        """`size` is the size of the file in bytes."""
        self._left = _LEAST + size * _STEPS_PER_BYTE

    def spend(self, steps: int) -> None:
        """Count steps. Raises `TooMuchWorkError` above the limit."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchWorkError
