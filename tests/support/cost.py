"""Measure the cost of code, independent of the load of the machine."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType

SECONDS = 120
"""Limit of processor time that only code of the wrong complexity exceeds."""


@contextlib.contextmanager
def bounded_cost() -> Iterator[None]:
    """Fail if the block takes more processor time than the limit."""
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


def calls(work: Callable[[], object]) -> int:
    """Return the number of function and method calls of some work."""
    count = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    earlier = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(earlier)
    return count
