"""Reading manifests against the limit: json.loads on the same bytes, turn by turn in one run.

Usage: read_manifests.py [FOLDER]; without one, the manifests of examples/source. The ratio must
stay at 5 or below.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from verdict import hold

from cudaredist.manifests.read_manifest import read_manifest

LIMIT = 5.0
ROUNDS = 20


def cost(read: Callable[[bytes], object], contents: list[bytes]) -> float:
    """Return the CPU seconds that reading everything once takes."""
    started = time.process_time()
    for data in contents:
        read(data)
    return time.process_time() - started


def ratio(contents: list[bytes]) -> float:
    """Return the cost of reading in units of json.loads, over rounds of both in turn."""
    pairs = [(cost(json.loads, contents), cost(read_manifest, contents)) for _ in range(ROUNDS)]
    return sum(ours for _, ours in pairs) / sum(alone for alone, _ in pairs)


def main() -> None:
    """Measure, print, and exit 1 above the limit."""
    sample = Path(__file__).parents[1] / "examples" / "source"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else sample
    contents = [path.read_bytes() for path in sorted(folder.rglob("redistrib_*.json"))]
    size = sum(map(len, contents))

    def measured() -> float:
        found = ratio(contents)
        about = f"reading {len(contents)} manifests, {size:,} bytes"
        print(f"{about}: {found:.2f} x json.loads (<= {LIMIT})")
        return found

    hold(LIMIT, measured)


if __name__ == "__main__":
    main()
