"""Measure the CPU time of `cudaredist --version` and `--help`.

The interpreter's own start is measured too.
"""

import resource
import subprocess
import sys
from statistics import median

from verdict import check_limit

LIMIT = 0.15
"""Largest CPU time of --version, in seconds."""


def cpu(*command: str) -> float:
    """Return the CPU time of a command, in seconds.

    The result is the median of nine runs.
    """
    costs = []
    for _ in range(9):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(costs)


def main() -> None:
    """Measure and print."""
    bare = cpu("-c", "pass")

    def measured(*arguments: str) -> float:
        cost = cpu("-m", "cudaredist", *arguments)
        name = f"cudaredist {arguments[0]}"
        print(f"{name:24} {cost:.3f} s CPU, {cost / bare:.1f} x the interpreter alone ({bare:.3f})")
        return cost

    measured("--help")
    check_limit("CPU seconds of --version", LIMIT, lambda: measured("--version"))


if __name__ == "__main__":
    main()
