"""The CPU that `cudaredist --version` and `--help` cost, against the interpreter's own start."""

import resource
import subprocess
import sys
from statistics import median

from verdict import hold

LIMIT = 0.15
"""CPU seconds that --version may cost."""


def cpu(*command: str) -> float:
    """Return the median CPU seconds of a command, user and system, over nine runs."""
    costs = []
    for _ in range(9):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(costs)


def main() -> None:
    """Measure, print, and exit 1 above the limit."""
    bare = cpu("-c", "pass")

    def measured(*arguments: str) -> float:
        cost = cpu("-m", "cudaredist", *arguments)
        name = f"cudaredist {arguments[0]}"
        print(f"{name:24} {cost:.3f} s CPU, {cost / bare:.1f} x the interpreter alone ({bare:.3f})")
        return cost

    measured("--help")
    hold(LIMIT, lambda: measured("--version"))


if __name__ == "__main__":
    main()
