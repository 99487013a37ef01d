"""A bound on what code costs that does not depend on how busy the machine is."""

import contextlib
import time
from collections.abc import Iterator

SECONDS = 120
"""Processor time that only code of the wrong complexity takes, on any machine."""


@contextlib.contextmanager
def bounded_cost() -> Iterator[None]:
    """Fail if the block takes more processor time than the bound."""
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS
