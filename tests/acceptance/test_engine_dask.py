"""process-manifests on a Dask cluster that lives in this process; tests/slow kills real ones."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run
from distributed import LocalCluster
from support.releases import Packages, publish, release
from support.server import FaultServer

PACKAGES: Packages = {
    f"package_{n}": {"linux-x86_64": {f"include/{n}.h": b"//", "LICENSE": b"x"}} for n in range(3)
}
FEATURES = Path("data/features/cuda/feature_12.9.1.json")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a scheduler with two workers is."""
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def process(run: Run, server: FaultServer, address: str) -> Run:
    """Run process-manifests on one release, whose archives a server has."""
    publish(server, release("12.9.1", PACKAGES))
    return lambda *options: run(
        *("process-manifests", "--base-url", server.url, "--retries", 0, *options)
    )


def test_the_same_as_without_it(process: Run, address: str) -> None:
    assert process("--cache-dir", "local").exit_code == 0
    expected = FEATURES.read_bytes()
    FEATURES.unlink()
    result = process("--engine", "dask", "--scheduler", address, "--json")
    assert result.exit_code == 0, result.output
    assert FEATURES.read_bytes() == expected
    assert '"fetched_bytes": 0' not in result.stdout


def test_an_archive_that_is_missing_costs_no_other(
    process: Run, server: FaultServer, address: str
) -> None:
    del server.files[next(path for path in server.files if "package_1/" in path)]
    result = process("--engine", "dask", "--scheduler", address)
    assert result.exit_code == 3
    assert "2 of 3 archives examined  1 failed" in result.stdout
    assert "package_1" in result.stderr


def test_an_answer_in_another_form(
    process: Run, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cudaredist.pipeline.features.dask.facts_to_bytes", lambda _: b"other")
    result = process("--engine", "dask", "--scheduler", address)
    assert result.exit_code == 3
    assert "the same cudaredist on every worker" in result.stderr


def test_without_dask_it_says_what_to_install(
    process: Run, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = process("--engine", "dask", "--scheduler", address)
    assert result.exit_code == 2
    assert "cudaredist[dask]" in result.stderr
