"""Tests of process-manifests with kills and large archives over a failing network."""

import json
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Start
from support import binaries
from support import server as faults
from support.releases import Packages, publish, release
from support.server import FaultServer

pytestmark = pytest.mark.slow

KILLS = 50
FOLDER = "/compute/cuda/redist/"
FEATURES = "data/features/cuda/feature_12.9.1.json"
LARGE = f"{FOLDER}libx/windows-x86_64/libx-windows-x86_64-12.9.1.5-archive.zip"


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
    assert "run the same command again to resume" in stderr
    assert "Traceback" not in stderr
    document = json.loads((tmp_path / FEATURES).read_bytes())
    statuses = [p["archives"][0]["status"] for p in document["packages"].values()]
    assert sorted(statuses) == ["examined"] * 7 + ["not-examined"]
    requests = server.requests.copy()
    del server.behaviours[slow]
    assert start("process-manifests", "--base-url", server.url).wait() == 0
    assert server.requests - requests == {slow: 1}


@pytest.fixture(scope="module")
def large() -> dict[str, bytes]:
    """Return a release with one archive of a hundred megabytes."""
    content = random.Random(1).randbytes(100 << 20)
    packages: Packages = {"libx": {"windows-x86_64": {"bin/x.bin": content, "LICENSE": b"x"}}}
    return release("12.9.1", packages, is_stored=True)


def changed_while_resumed(handler: faults.Handler, data: bytes) -> None:
    """Break after 60 MB and then serve other bytes once."""
    server = handler.server.owner
    server.files[LARGE] = bytes(len(data)) if data[:2] == b"PK" else server.files["good"]
    faults.breaking_after(60 << 20)(handler, data)


@pytest.mark.parametrize(
    ("behaviour", "times", "code"),
    [
        pytest.param(faults.reset_in_the_middle, 1, 0, id="reset"),
        pytest.param(faults.breaking_after(30 << 20), None, 0, id="breaks every 30 MB"),
        pytest.param(faults.stalling_after(50 << 20), 1, 0, id="stalls"),
        pytest.param(faults.truncated, 1, 0, id="truncated"),
        pytest.param(faults.truncated, None, 3, id="always truncated"),
        pytest.param(changed_while_resumed, 2, 0, id="changes while resumed"),
        pytest.param(faults.body(bytes(100 << 20)), None, 4, id="wrong bytes"),
    ],
)
def test_large_archive_is_examined_over_failing_network(
    server: FaultServer,
    tmp_path: Path,
    start: Start,
    large: dict[str, bytes],
    behaviour: Any,
    times: int | None,
    code: int,
) -> None:
    publish(server, large, folder=tmp_path)
    server.files["good"] = server.files[LARGE]
    server.misbehave(LARGE, behaviour, times)
    options = ("--base-url", server.url, "--timeout", 1, "--retries", 2)
    process = start("process-manifests", *options)
    _, stderr = process.communicate()
    assert process.returncode == code, stderr
    assert len(facts_in(tmp_path)) == (code == 0)
    assert (tmp_path / FEATURES).exists() is (code == 0)
