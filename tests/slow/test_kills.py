"""Tests of downloads killed at random steps: files stay whole."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Start
from support import server as faults
from support.binaries import Symbol, elf
from support.factory import manifest
from support.killing import Killer
from support.releases import put, release
from support.running import snapshot
from support.server import FaultServer
from support.small_sets import make_data

from cudaredist.primitives import sha256_of

pytestmark = pytest.mark.slow

KILLS = 50
LABELS = [f"12.{minor}.{patch}" for minor in range(10) for patch in range(6)]
PACKAGES = tuple(f"package_{n}" for n in range(20))


def assert_whole(data: Path, published: dict[str, bytes]) -> int:
    """Assert that every file is complete and return the number of manifests."""
    count = 0
    for path in data.rglob("*.json"):
        if path.name == "lock.json":
            entries = json.loads(path.read_bytes())["redists"].get("cuda", {})
            for label, entry in entries.items():
                assert entry["sha256"] == sha256_of(published[label])
        else:
            count += 1
            label = path.stem.removeprefix("redistrib_")
            assert path.read_bytes() == published[label], path
    return count


def test_download_killed_at_random_steps_leaves_no_broken_file(
    server: FaultServer, tmp_path: Path
) -> None:
    """The steps of one thread are moments of the others, which read or write other files."""
    published = {label: manifest(label, packages=PACKAGES) for label in LABELS}
    server.add_manifests("cuda", published)
    steps = random.Random(20261120)
    reached = set()
    data = tmp_path / "data"
    call = ("download-manifests", "--base-url", server.url, "--version", "all", "--data-dir", data)
    with closing(Killer("data")) as killer:
        for number in range(KILLS):
            # The first of five starts from scratch.
            killer.run(*call, "-j", 4, step=steps.randrange(2 * len(LABELS)))
            reached.add(assert_whole(data, published))
            if number % 5 == 4:
                shutil.rmtree(data, ignore_errors=True)
        assert len(reached) > 5, "the kills hit only the beginning or the end"
        assert killer.run(*call) == 0
    assert assert_whole(data, published) == len(LABELS)
    assert not list(data.rglob("*.tmp"))
    assert sorted(json.loads((data / "lock.json").read_bytes())["redists"]["cuda"]) == (
        sorted(LABELS)
    )


def test_site_killed_at_any_step_is_finished_by_the_next_run(tmp_path: Path) -> None:
    make_data(tmp_path)
    call = ("site", "--data-dir", tmp_path / "data", "--output")
    kills = 0
    with closing(Killer("new")) as killer:
        assert killer.run(*call, tmp_path / "whole") == 0
        # Each page has the same steps, so the later ones are sampled.
        for step in itertools.chain(range(9), itertools.count(9, 97)):
            code = killer.run(*call, tmp_path / "new", step=step)
            if code == 0:
                break
            kills += 1
            assert killer.run(*call, tmp_path / "new") == 0
            assert snapshot(tmp_path / "new") == snapshot(tmp_path / "whole")
            shutil.rmtree(tmp_path / "new")
    assert kills > 9


def test_symbols_killed_at_any_step_are_finished_by_the_next_run(tmp_path: Path) -> None:
    """The archives are read with and without the facts of an earlier run in the cache."""
    source, before = tmp_path / "source", tmp_path / "before"
    for label in ("12.4.1", "12.9.1"):
        symbols = [Symbol(f"made{n}_{label}", version="V") for n in range(30)]
        library = {f"lib/libx{n}.so.1": elf(symbols=symbols, defines=["V"]) for n in range(3)}
        files = release(label, {"libx": {"linux-x86_64": library}})
        put(source / "compute/cuda/redist", files)
        put(before / "manifests/cuda", {n: d for n, d in files.items() if "/" not in n})
    network = ("--base-url", source)
    kills = 0
    with closing(Killer("new")) as killer:

        def call(command: str, data: str) -> tuple[object, ...]:
            folders = ("--data-dir", tmp_path / data, "--cache-dir", tmp_path / f"{data}-cache")
            return (command, *network, *folders, "-q")

        assert killer.run(*call("process-manifests", "before")) == 0
        shutil.copytree(before, tmp_path / "whole")
        assert killer.run(*call("update-symbols", "whole")) == 0
        assert (tmp_path / "whole" / "symbols").is_dir()
        for step in itertools.count():
            shutil.copytree(before, tmp_path / "new")
            code = killer.run(*call("update-symbols", "new"), step=step)
            for path in (tmp_path / "new").rglob("*.json"):
                json.loads(path.read_bytes())
            if code == 0:
                break
            kills += 1
            assert killer.run(*call("update-symbols", "new")) == 0
            assert snapshot(tmp_path / "new") == snapshot(tmp_path / "whole")
            shutil.rmtree(tmp_path / "new")
            if step % 2:
                shutil.rmtree(tmp_path / "new-cache")
    assert kills > 6


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
def test_index_killed_while_it_is_made_gives_the_right_answer(
    tmp_path: Path, seconds: float
) -> None:
    """Of the shipped data, for which making the index takes two seconds."""
    call = [sys.executable, "-m", "cudaredist", "which", "libcudnn.so.9", "--json"]
    expected = subprocess.run(call, capture_output=True, check=True).stdout
    # An option would be in the hint of the report, too.
    env = os.environ | {"CUDAREDIST_CACHE_DIR": str(tmp_path / "cache")}
    with subprocess.Popen(call, env=env, stdout=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.kill()
    for _ in range(2):
        again = subprocess.run(call, env=env, capture_output=True, check=True)
        assert again.stdout == expected


def test_interrupted_download_keeps_complete_manifests_and_exits_130(
    server: FaultServer, start: Start, tmp_path: Path
) -> None:
    published = {label: manifest(label) for label in LABELS}
    server.add_manifests("cuda", published)
    slow = f"/compute/cuda/redist/redistrib_{LABELS[-1]}.json"
    server.misbehave(slow, faults.silent)
    process = start(
        "download-manifests", "--base-url", server.url, "--version", "all", "--timeout", 3600
    )
    while len(list(tmp_path.glob("data/manifests/cuda/*.json"))) < len(LABELS) - 1:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 130
    assert "completed results are kept" in stderr
    assert "Traceback" not in stderr
    entries = json.loads((tmp_path / "data/lock.json").read_bytes())["redists"]["cuda"]
    assert len(entries) == len(LABELS) - 1


@pytest.mark.parametrize(
    "behaviour",
    [
        faults.two_gigabytes(with_length=True),
        faults.two_gigabytes(with_length=False),
        faults.gzip_bomb(4 << 30),
    ],
    ids=["2 GB", "2 GB without length", "gzip bomb"],
)
def test_download_of_large_response_uses_little_memory(
    server: FaultServer, tmp_path: Path, behaviour: faults.Behaviour
) -> None:
    server.add_manifests("cuda", {"12.9.1": manifest()})
    server.misbehave("/compute/cuda/redist/redistrib_12.9.1.json", behaviour)
    program = tmp_path / "measure.py"
    program.write_text(
        "import resource, subprocess, sys\n"
        "code = subprocess.run([sys.executable, '-m', 'cudaredist', *sys.argv[1:]]).returncode\n"
        "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)\n"
    )
    output = subprocess.run(
        [sys.executable, program, "download-manifests", "--base-url", server.url, "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    code, megabytes = output.split()[-2:]
    assert code == "5", output
    assert float(megabytes) < 200
