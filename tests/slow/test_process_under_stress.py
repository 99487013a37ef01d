"""Tests of process-manifests with kills."""

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Start
from support import binaries
from support import server as faults
from support.releases import Packages, publish, release
from support.server import FaultServer

pytestmark = pytest.mark.slow

KILLS = 50
FEATURES = "data/features/cuda/feature_12.9.1.json"


def cache_files(cache: Path) -> dict[str, bytes]:
    """Return the files with final names in a cache."""
    return {
        path.relative_to(cache).as_posix(): path.read_bytes()
        for path in cache.rglob("*")
        if path.is_file() and not path.name.endswith((".tmp", ".part"))
    }


def facts_in(tmp_path: Path) -> list[Path]:
    """Return the facts with final names in the cache."""
    return list((tmp_path / "cache/facts").glob("*/*/" + "[0-9a-f]" * 64))


def test_process_killed_at_random_moments_keeps_only_verified_entries(
    server: FaultServer, start: Start, tmp_path: Path
) -> None:
    moments = random.Random(20261121)
    packages: Packages = {
        f"package_{n:02}": {
            "linux-x86_64": {
                "lib/libx.so.1": binaries.elf(soname=f"lib{n}.so.1", needed=("libc.so.6",)),
                "lib/data": moments.randbytes(200_000),
            }
        }
        for n in range(30)
    }
    publish(server, release("12.9.1", packages), folder=tmp_path)
    options = ("process-manifests", "--base-url", server.url, "--keep-archives")
    # The tests set the cache folder in the environment. The option overrides it.
    quiet = start(*options, "--cache-dir", tmp_path / "quiet")
    assert quiet.wait() == 0
    expected = cache_files(tmp_path / "quiet")
    features = (tmp_path / FEATURES).read_bytes()
    (tmp_path / FEATURES).unlink()

    server.delay = 0.05
    cache = tmp_path / "stressed"
    reached = set()
    for number in range(KILLS):
        target = len(server.headers) + moments.randint(1, len(packages))
        process = start(*options, "-j", 2, "--cache-dir", cache)
        server.wait_for_requests(target, process)
        time.sleep(moments.uniform(0, 2 * server.delay))
        process.send_signal(signal.SIGKILL)
        process.wait()
        entries = cache_files(cache)
        reached.add(len(entries))
        assert entries.items() <= expected.items()
        if (tmp_path / FEATURES).exists():
            assert (tmp_path / FEATURES).read_bytes() == features
        if number % 4 == 3:
            subprocess.run(["rm", "-rf", cache, tmp_path / FEATURES], check=True)
    assert len(reached) > 5, "the kills hit only the beginning or the end"
    assert start(*options, "--cache-dir", cache).wait() == 0
    assert cache_files(cache) == expected
    assert (tmp_path / FEATURES).read_bytes() == features
    assert not list((tmp_path / "data").rglob("*.tmp"))


def test_interrupted_process_is_completed_by_next_run(
    server: FaultServer, start: Start, tmp_path: Path
) -> None:
    packages: Packages = {
        f"package_{n}": {"linux-x86_64": {"include/x.h": b"//%d" % n}} for n in range(8)
    }
    files = release("12.9.1", packages)
    publish(server, files, folder=tmp_path)
    slow = next(path for path in server.files if "package_3/" in path)
    server.misbehave(slow, faults.silent)
    process = start("process-manifests", "--base-url", server.url, "-j", 4, "--timeout", 3600)
    while len(facts_in(tmp_path)) < 7:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 130
    assert "hint: to resume, run `cudaredist " in stderr
    assert "Traceback" not in stderr
    document = json.loads((tmp_path / FEATURES).read_bytes())
    statuses = [p["archives"][0]["status"] for p in document["packages"].values()]
    assert sorted(statuses) == ["examined"] * 7 + ["not-examined"]
    requests = server.requests.copy()
    server.behave()
    assert start("process-manifests", "--base-url", server.url).wait() == 0
    assert server.requests - requests == {slow: 1}
