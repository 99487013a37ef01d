"""process-manifests on a real Dask scheduler with two worker processes, one of which is killed."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run
from support import binaries
from support.releases import Packages, publish, put, release
from support.server import FaultServer

pytestmark = pytest.mark.slow

PACKAGES: Packages = {
    f"package_{n}": {
        "linux-x86_64": {"lib/libx.so.1": binaries.elf(soname=f"lib{n}.so.1"), "LICENSE": b"x"}
    }
    for n in range(12)
}
FEATURES = Path("data/features/cuda/feature_12.9.1.json")


def dask(*arguments: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + str(arguments[0]), *map(str, arguments[1:])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A scheduler that writes where it is to a file."""
    process = dask(
        *("dask_scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard"),
        *("--scheduler-file", tmp_path / "scheduler.json"),
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def cluster(
    tmp_path: Path, scheduler: "subprocess.Popen[bytes]"
) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """A scheduler's address, and two workers."""
    file = tmp_path / "scheduler.json"
    for _ in range(600):
        if file.exists() and file.stat().st_size:
            break
        time.sleep(0.1)
    workers = [
        dask(
            *("dask_worker", "--scheduler-file", file, "--nthreads", 1, "--no-nanny"),
            *("--no-dashboard", "--local-directory", tmp_path / f"worker{n}"),
        )
        for n in range(2)
    ]
    address = next(
        line.split('"')[3] for line in file.read_text().splitlines() if '"address"' in line
    )
    yield address, workers
    for process in workers:
        process.kill()
        process.wait()


def test_a_worker_that_is_killed_changes_nothing(
    run: Run,
    server: FaultServer,
    cluster: tuple[str, list["subprocess.Popen[bytes]"]],
    tmp_path: Path,
) -> None:
    address, workers = cluster
    publish(server, release("12.9.1", PACKAGES))
    local = run("process-manifests", "--base-url", server.url)
    assert local.exit_code == 0
    expected = FEATURES.read_bytes()
    FEATURES.unlink()

    asked = len(server.headers)
    server.delay = 0.5

    def kill_in_the_middle() -> None:
        while len(server.headers) < asked + 5:
            time.sleep(0.02)
        workers[0].kill()

    threading.Thread(target=kill_in_the_middle, daemon=True).start()
    options = ("--engine", "dask", "--scheduler", address, "--cache-dir", tmp_path / "other")
    result = run("process-manifests", "--base-url", server.url, *options)
    assert result.exit_code == 0, result.output
    assert workers[0].poll() is not None, "no worker was killed"
    assert FEATURES.read_bytes() == expected
    assert len(server.headers) > asked + len(PACKAGES), "nothing was done twice"

    FEATURES.unlink()
    name = next(path for path in server.files if "package_3/" in path)
    del server.files[name]
    options = (*options[:-1], tmp_path / "third")
    result = run("process-manifests", "--base-url", server.url, *options)
    assert result.exit_code == 3
    assert "11 of 12 archives examined  1 failed" in result.stdout


def test_a_scheduler_that_dies_is_said_and_what_was_done_is_kept(
    run: Run,
    server: FaultServer,
    cluster: tuple[str, list["subprocess.Popen[bytes]"]],
    scheduler: "subprocess.Popen[bytes]",
) -> None:
    address, _ = cluster
    publish(server, release("12.9.1", PACKAGES))
    server.delay = 0.3

    def kill_in_the_middle() -> None:
        while len(server.headers) < 6:
            time.sleep(0.02)
        scheduler.kill()

    threading.Thread(target=kill_in_the_middle, daemon=True).start()
    options = ("--engine", "dask", "--scheduler", address)
    result = run("process-manifests", "--base-url", server.url, *options)
    assert result.exit_code == 3, result.output
    assert "run the same command again" in result.stderr
    assert run("process-manifests", "--base-url", server.url).exit_code == 0


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        (["--engine", "dask"], 2, "--scheduler"),
        (["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"], 3, "dask worker"),
        (["--engine", "dask", "--scheduler", "nonsense://x", "--keep-archives"], 2, "local"),
    ],
)
def test_calls_that_make_no_sense(
    run: Run,
    server: FaultServer,
    options: list[str],
    code: int,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cudaredist.pipeline.features.dask._PATIENCE", 1.0)
    for path, data in release("12.9.1", PACKAGES).items():
        if path.startswith("redistrib_"):
            put(Path("data/manifests/cuda"), {path: data})
    result = run("process-manifests", "--base-url", server.url, *options)
    assert result.exit_code == code
    assert hint in result.stderr
