"""Tests of process-manifests on a real Dask cluster with killed processes."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run
from support import binaries
from support.clusters import Cluster
from support.releases import Packages, publish, put, release
from support.running import expect_error, expect_output
from support.server import FaultServer

pytestmark = pytest.mark.slow

PACKAGES: Packages = {
    f"package_{n}": {
        "linux-x86_64": {"lib/libx.so.1": binaries.elf(soname=f"lib{n}.so.1"), "LICENSE": b"x"}
    }
    for n in range(12)
}
FEATURES = Path("data/features/cuda/feature_12.9.1.json")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Start a scheduler and two workers."""
    with Cluster(tmp_path) as started:
        started.add_worker()
        started.add_worker()
        yield started


def test_dask_engine_with_killed_worker_writes_same_file(
    run: Run, server: FaultServer, cluster: Cluster, tmp_path: Path
) -> None:
    publish(server, release("12.9.1", PACKAGES))
    expect_output(run("process-manifests", "--base-url", server.url), 0)
    expected = FEATURES.read_bytes()
    FEATURES.unlink()

    request_count = len(server.headers)
    server.delay = 0.5

    def kill_in_the_middle() -> None:
        while len(server.headers) < request_count + 5:
            time.sleep(0.02)
        cluster.workers[0].kill()

    threading.Thread(target=kill_in_the_middle, daemon=True).start()
    engine = ("--engine", "dask", "--scheduler", cluster.address)
    options = (*engine, "--cache-dir", tmp_path / "other")
    expect_output(run("process-manifests", "--base-url", server.url, *options), 0)
    assert cluster.workers[0].poll() is not None, "no worker was killed"
    assert FEATURES.read_bytes() == expected
    assert len(server.headers) > request_count + len(PACKAGES), "nothing was done twice"

    FEATURES.unlink()
    name = next(path for path in server.files if "package_3/" in path)
    del server.files[name]
    options = (*engine, "--cache-dir", tmp_path / "third")
    result = run("process-manifests", "--base-url", server.url, *options)
    assert result.exit_code == 3
    assert "11 of 12 archives examined  1 failed" in result.stdout


def test_dask_engine_with_killed_scheduler_exits_3(
    run: Run, server: FaultServer, cluster: Cluster
) -> None:
    publish(server, release("12.9.1", PACKAGES))
    server.delay = 0.3

    def kill_in_the_middle() -> None:
        while len(server.headers) < 6:
            time.sleep(0.02)
        cluster.scheduler.kill()

    threading.Thread(target=kill_in_the_middle, daemon=True).start()
    options = ("--engine", "dask", "--scheduler", cluster.address)
    result = run("process-manifests", "--base-url", server.url, *options)
    assert result.exit_code == 3, result.output
    assert "run `cudaredist process-manifests " in result.stderr
    assert run("process-manifests", "--base-url", server.url).exit_code == 0


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        (["--engine", "dask"], 2, "--scheduler"),
        (["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"], 3, "dask worker"),
        (["--engine", "dask", "--scheduler", "tls://127.0.0.1:1"], 3, "distributed.comm.tls"),
        (["--engine", "dask", "--scheduler", "nonsense://x"], 2, "tls://host:8786"),
        (["--engine", "dask", "--scheduler", "nonsense://x", "--keep-archives"], 2, "local"),
    ],
)
def test_dask_engine_with_unusable_options_reports_hint(
    run: Run,
    server: FaultServer,
    options: list[str],
    code: int,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cudaredist.commands.process.dask._PATIENCE", 1.0)
    for path, data in release("12.9.1", PACKAGES).items():
        if path.startswith("redistrib_"):
            put(Path("data/manifests/cuda"), {path: data})
    expect_error(run("process-manifests", "--base-url", server.url, *options), code, hint)
