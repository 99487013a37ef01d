"""Compare a measurement with its limit.

The exit code is 1 if the limit is exceeded. On a shared machine, a single measurement is
unreliable. If it exceeds the limit, it is repeated up to two times, and the best one counts. The
factor `BENCHMARK_TOLERANCE` (default 1) raises every limit. CI sets it, so that only a significant
loss of speed fails there.
"""

import os
import sys
from collections.abc import Callable

_ATTEMPTS = 3


def check_limit(limit: float, measure: Callable[[], float]) -> None:
    """Measure up to three times. Exit 1 if the limit is exceeded."""
    tolerance = float(os.environ.get("BENCHMARK_TOLERANCE", "1"))
    best = latest = measure()
    for _ in range(_ATTEMPTS - 1):
        if best <= limit:
            break
        print(f"  {latest:.2f} exceeds {limit:g}; measuring again")
        latest = measure()
        best = min(best, latest)
    if best > limit * tolerance:
        print(f"  limit exceeded: {best:.2f} > {limit:g} x {tolerance:g}")
        sys.exit(1)
