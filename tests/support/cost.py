"""Measure the cost of code, whatever else the machine does."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType

SECONDS = 120
"""Processor time that only code of the wrong complexity takes, on any machine."""


@contextlib.contextmanager
def bounded_cost() -> Iterator[None]:
    """Fail if the block takes more processor time than the bound."""
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


def calls(work: Callable[[], object]) -> int:
    """Return how many calls of functions and methods something takes."""
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
