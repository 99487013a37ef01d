"""Measure the user CPU of everyday commands against `cudaredist --help`, with a warm index.

The data is the shipped one, then a folder with ten times its history: copies of all releases under
other labels.
"""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from verdict import check_limit

from cudaredist.store.data_folder import shipped_data

ROUNDS = 5
TIMES = 10
GROWTH = 1.3
"""Largest growth of an answer's CPU on ten times the history."""
FIRST_SECONDS = 3.0
"""Largest CPU of the call that makes the index, beyond that of the next one."""

LIMITS = {
    "which libcudnn.so.9": 2.0,
    "which --symbol ncclCommSplit": 2.0,
    "explain package libcublas": 2.0,
    "explain gpu V100": 3.0,
    "diff cuda@12.9.2 cuda@13.0.3": 3.0,
    "check --offline": 5.0,
    "build --cuda 13.0 --platform linux-x86_64": 3.5,
    "build --output {folder}/sets": 22.0,
    "site --output {folder}/site": 35.0,
}
GROWING = tuple(LIMITS)[:4]


def user_cpu(call: str, folder: Path) -> float:
    """Return the user CPU of a command in seconds, with the cache in a folder."""
    shutil.rmtree(folder / "site", ignore_errors=True)  # a second run would render nothing
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-m", "cudaredist", *call.format(folder=folder).split()]
    variables = {"CUDAREDIST_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(
        command, env=os.environ | variables, capture_output=True, check=False, cwd=folder
    )
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def ratio(call: str, other: str, folder: Path) -> float:
    """Return the ratio of two commands' lowest user CPU. The calls alternate."""
    rounds = 2 if "--output" in call else ROUNDS
    pairs = [(user_cpu(call, folder), user_cpu(other, folder)) for _ in range(rounds)]
    own, theirs = (min(costs) for costs in zip(*pairs, strict=True))
    quotient: float = own / theirs
    print(f"{call:50} {own:.3f} s, {quotient:.2f} x ({theirs:.3f} s)", flush=True)
    return quotient


def make_history(root: Path) -> None:
    """Copy the shipped data, and add nine copies of each release under other labels."""
    shutil.copytree(shipped_data(), root)
    for path in sorted((root / "manifests/wheels").rglob("redistrib_*.json")):
        redist, label = path.parent.name, path.stem.removeprefix("redistrib_")
        features = root / "features/wheels" / redist / f"feature_{label}.json"
        manifest, facts = path.read_bytes(), json.loads(features.read_bytes())
        for number in range(1, TIMES):
            head, _, tail = label.rpartition(".")
            other = f"{head}.{int(tail) + 1000 * number}"
            data = manifest.replace(f'"{label}"'.encode(), f'"{other}"'.encode())
            path.with_name(f"redistrib_{other}.json").write_bytes(data)
            facts |= {"label": other, "manifest_sha256": hashlib.sha256(data).hexdigest()}
            features.with_name(f"feature_{other}.json").write_text(json.dumps(facts))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = user_cpu("which libcudnn.so.9", folder)
        next_one = user_cpu("which libcudnn.so.9", folder)
        check_limit("seconds to make the index", FIRST_SECONDS, lambda: first - next_one)
        for call, limit in LIMITS.items():
            check_limit(f"{call} / --help", limit, partial(ratio, call, "--help", folder))
        make_history(folder / "history")
        user_cpu("which libcudnn.so.9 --data-dir history", folder)
        for call in GROWING:
            measure = partial(ratio, f"{call} --data-dir history", call, folder)
            check_limit(f"{call}, {TIMES} x data", GROWTH, measure)


if __name__ == "__main__":
    main()
