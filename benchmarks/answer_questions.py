"""Measure the CPU of everyday commands, user and system, with a warm index.

Two other processes are measured in turn with each command. S is a start of Python that imports
sqlite3 and json. The floor is a program of typer with one command and eight options that does
nothing: no command with options can cost less. A row fails if it exceeds its limit by 15 %.

The data is the shipped one, then a folder with ten times its history: copies of all releases under
other labels. The first call is that of a wheel, which contains the packed index.
"""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from verdict import TOLERANCE, check_limit

from cudaredist.store.data_folder import shipped_data

ROUNDS = 5
TIMES = 10
GROWTH = 1.2
"""Largest growth of an answer's CPU on ten times the history."""
START = "import sqlite3, json"
OPTIONS = ", ".join(f"option{number}: str = 'x'" for number in range(8))
FLOOR = f"""
import typer
app = typer.Typer()
@app.command()
def nothing({OPTIONS}) -> None: ...
app()
"""


class Limit(NamedTuple):
    """The largest CPU of a command, in multiples of a unit."""

    times: float
    today: float | None = None
    """The limit until `times` is reached: what the command takes now."""
    unit: Literal["floor", "S"] = "floor"
    rounds: int = ROUNDS

    @property
    def most(self) -> float:
        """The multiple above which the row fails."""
        return (self.today or self.times) * TOLERANCE


NEW_SITE = "new-site"
"""The folder of a site that is removed before each round."""
NEW = "new "
"""The beginning of a comparison whose report is removed from the cache before each round."""
FIRST_CALL = "which libcudnn.so.9"
FIRST_ROUNDS = 3
SETTLED = 3
"""Seconds after which a file counts as unchanged by its time."""
FIRST = Limit(25, unit="S", rounds=1)
"""The limit of the call that makes the index."""
LIMITS = {
    "--help": Limit(1.3),
    "which --help": Limit(1.3),
    "config": Limit(1.4),
    "query SELECT(1)": Limit(1.4),
    "which libcudnn.so.9": Limit(1.4),
    "which --symbol ncclCommSplit": Limit(1.4),
    "explain driver 580": Limit(1.4),
    "explain nvcc 13.0": Limit(1.4),
    "explain cuda 13.0": Limit(1.4),
    "versions --offline": Limit(1.4),
    "explain package libcublas": Limit(1.4),
    "explain gpu V100": Limit(1.4),
    "explain api cudaMalloc": Limit(1.4),
    "diff cuda@12.9.2 cuda@13.0.3": Limit(1.8),
    "diff --api cuda@12.9.2 cuda@13.0.3": Limit(1.8),
    f"{NEW}diff cuda@12.9.2 cuda@13.0.3": Limit(1.8, today=3.5),
    f"{NEW}diff --api cuda@12.9.2 cuda@13.0.3": Limit(1.8, today=2.4),
    "check --offline": Limit(25, unit="S"),
    "build --cuda 13.0 --platform linux-x86_64": Limit(25, unit="S"),
    # The goal of all sets is forty times one set. They take ten times one set.
    "build --output {folder}/sets": Limit(250, unit="S", rounds=2),
    f"site --output {{folder}}/{NEW_SITE}": Limit(250, today=345, unit="S", rounds=1),
    # The first round writes the site, so that only the others count.
    "site --output {folder}/current-site": Limit(12, unit="S"),
}
"""The limits of all rows. A feature that exceeds one must become faster: do not raise a limit."""
GROWING = ("which libcudnn.so.9", "which --symbol ncclCommSplit", "explain package libcublas")


def cpu(command: list[str], folder: Path) -> float:
    """Return the CPU of a process in seconds, with the cache in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    variables = {"CUDAREDIST_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(
        [sys.executable, *command],
        env=os.environ | variables,
        capture_output=True,
        check=False,
        cwd=folder,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of_call(call: str, folder: Path) -> float:
    """Return the CPU of a call of cudaredist in seconds."""
    shutil.rmtree(folder / NEW_SITE, ignore_errors=True)
    if call.startswith(NEW):
        shutil.rmtree(folder / "cache/folders/compared", ignore_errors=True)
    words = call.removeprefix(NEW).format(folder=folder).split()
    return cpu(["-m", "cudaredist", *words], folder)


def multiple(call: str, limit: Limit, folder: Path) -> float:
    """Print the lowest CPU of a call in seconds and in both units, and return the limit's."""
    rounds = [
        (cpu(["-c", START], folder), cpu(["-c", FLOOR], folder), cpu_of_call(call, folder))
        for _ in range(limit.rounds)
    ]
    start, floor, own = (min(costs) for costs in zip(*rounds, strict=True))
    open_goal = "" if limit.today is None else f", goal {limit.times:g} {limit.unit}"
    print(f"{call:45} {own:.3f} s: {own / start:.1f} S, {own / floor:.2f} x floor{open_goal}")
    result: float = own / (floor if limit.unit == "floor" else start)
    return result


def growth(call: str, folder: Path) -> float:
    """Return the ratio of a call's lowest CPU on ten times the history to that on the data."""
    pairs = [
        (cpu_of_call(f"{call} --data-dir history", folder), cpu_of_call(call, folder))
        for _ in range(ROUNDS)
    ]
    large, usual = (min(costs) for costs in zip(*pairs, strict=True))
    result: float = large / usual
    return result


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
        # The process compiles the modules first, which is not part of a command's work.
        cpu_of_call("--help", folder)
        check_limit("first call / S", FIRST.most, partial(first_call, folder))
        for call, limit in LIMITS.items():
            if limit.unit == "floor":
                cpu_of_call(call, folder)  # adds what the index does not have yet
        time.sleep(SETTLED)
        for call, limit in LIMITS.items():
            measure = partial(multiple, call, limit, folder)
            check_limit(f"{call} / {limit.unit}", limit.most, measure)
        make_history(folder / "history")
        cpu_of_call(f"{FIRST_CALL} --data-dir history", folder)
        for call in GROWING:
            measure = partial(growth, call, folder)
            check_limit(f"{call}, {TIMES} x data", GROWTH * TOLERANCE, measure)


def first_call(folder: Path) -> float:
    """Return the CPU of the first call of a wheel, in S."""
    root = Path(__file__).parent.parent
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(root)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "package")
    os.environ["PYTHONPATH"] = str(folder / "package")
    cpu_of_call(FIRST_CALL, folder)  # compiles the modules
    results = []
    for _ in range(FIRST_ROUNDS):
        shutil.rmtree(folder / "cache")
        results.append(multiple(FIRST_CALL, FIRST, folder))
    del os.environ["PYTHONPATH"]
    return min(results)


if __name__ == "__main__":
    main()
