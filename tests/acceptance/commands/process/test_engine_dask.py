"""Tests of process-manifests on a Dask cluster.

The tests in tests/slow kill clusters and simulate hostile ones."""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from conftest import Run
from support.clusters import Cluster
from support.patching import Patch
from support.releases import Packages, publish, release
from support.running import expect_output
from support.server import FaultServer

from cudaredist.commands.process.dask import read_answer, run_task
from cudaredist.errors import SourceError
from cudaredist.features.facts import FACTS_SCHEMA, Facts, facts_to_bytes
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.plain_report import as_json
from cudaredist.primitives import sha256_of
from cudaredist.store.fetch_archive import ArchiveRequest

pytestmark = pytest.mark.slow

PACKAGES: Packages = {
    f"package_{n}": {"linux-x86_64": {f"include/{n}.h": b"//", "LICENSE": b"x"}} for n in range(3)
}
FEATURES = Path("data/features/cuda/feature_12.9.1.json")
FACTS = Facts(schema=FACTS_SCHEMA, members=())
REPORT = ErrorReport.of(SourceError("x", "does not answer"))


def as_bytes(report: ErrorReport) -> bytes:
    """Return a report as a worker sends it."""
    return json.dumps(as_json(report)).encode()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a scheduler with two workers."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster.address


@pytest.fixture
def process(run: Run, server: FaultServer) -> Run:
    """Run process-manifests on one release with archives from a server."""
    publish(server, release("12.9.1", PACKAGES))
    return lambda *options: run(
        *("process-manifests", "--base-url", server.url, "--retries", 0, *options)
    )


def test_dask_engine_writes_same_file_as_local_engine(process: Run, address: str) -> None:
    assert process("--cache-dir", "local").exit_code == 0
    expected = FEATURES.read_bytes()
    FEATURES.unlink()
    result = expect_output(process("--engine", "dask", "--scheduler", address, "--json"), 0)
    assert FEATURES.read_bytes() == expected
    assert '"fetched_bytes": 0' not in result.stdout


def test_dask_engine_with_missing_archive_examines_others(
    process: Run, server: FaultServer, address: str
) -> None:
    del server.files[next(path for path in server.files if "package_1/" in path)]
    result = process("--engine", "dask", "--scheduler", address)
    assert result.exit_code == 3
    assert "2 of 3 archives examined  1 failed" in result.stdout
    assert "package_1" in result.stderr


def test_worker_answer_with_facts_or_error_is_read() -> None:
    assert read_answer(facts_to_bytes(FACTS)) == FACTS
    assert read_answer(as_bytes(REPORT)) == REPORT


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"other",
        b'{"kind": %b1%b}' % (b"[" * 70, b"]" * 70),
        b"\x80\x05N.",
        "text",
        None,
        {"schema": FACTS_SCHEMA, "members": []},
        facts_to_bytes(Facts(schema=FACTS_SCHEMA + 1, members=())),
        as_bytes(REPORT.changed(kind="all is well")),
        as_bytes(REPORT.changed(exit_code=0)),
    ],
)
def test_worker_answer_in_unknown_form_is_rejected(answer: object) -> None:
    assert read_answer(answer) is None


def task(server: FaultServer, *, max_archive: int | None = None) -> Callable[[], bytes]:
    """Return the task for the first archive of a served release, with or without a size."""
    files = release("12.9.1", PACKAGES)
    for path, data in files.items():
        server.files[f"/{path}"] = data
    path = next(path for path in files if path.endswith(".tar.xz"))
    data = files[path]
    size = len(data) if max_archive is None else None
    request = ArchiveRequest(Path(path).name, (path,), sha256_of(data), size, (server.url,))
    return partial(run_task, request, 10, 0, allow_http=False, max_archive=max_archive or 0)


def test_worker_task_returns_facts_of_archive(server: FaultServer) -> None:
    answer = read_answer(task(server)())
    assert isinstance(answer, Facts)
    assert len(answer.members) == 2


def test_worker_task_limits_archive_of_unknown_size(server: FaultServer) -> None:
    assert isinstance(read_answer(task(server, max_archive=1 << 20)()), Facts)
    answer = read_answer(task(server, max_archive=10)())
    assert isinstance(answer, ErrorReport)
    assert (answer.kind, answer.exit_code) == ("too-large", 5)


def test_worker_task_sends_credentials_to_their_address_only(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, own = "http://a:b@127.0.0.1:1", server.url.replace("://", "://me:secret@")
    monkeypatch.setenv("CUDAREDIST_BASE_URL", other)
    task(server)()
    assert "Authorization" not in server.headers[-1][1]
    monkeypatch.setenv("CUDAREDIST_BASE_URL", f"{other} {own}/")
    task(server)()
    assert server.headers[-1][1]["Authorization"] == "Basic bWU6c2VjcmV0"


def test_failed_worker_task_returns_report(server: FaultServer) -> None:
    archive = task(server)
    server.files.clear()
    answer = read_answer(archive())
    assert isinstance(answer, ErrorReport)
    assert answer.kind == "not-found"


def test_worker_task_with_internal_error_returns_report(server: FaultServer, patch: Patch) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    patch("cudaredist.commands.process.dask.facts_to_bytes", fail)
    answer = read_answer(task(server)())
    assert isinstance(answer, ErrorReport)
    assert "package_0-linux-x86_64-12.9.1.5-archive.tar.xz: ZeroDivisionError" in answer.message


@pytest.mark.parametrize("address", ["inproc://h/1/2", "http://127.0.0.1:1", "tls://u:p@h", "h x"])
def test_invalid_scheduler_address_exits_2(process: Run, address: str) -> None:
    result = process("--engine", "dask", "--scheduler", address)
    assert result.exit_code == 2
    assert "is not the address of a Dask scheduler" in result.stderr


def test_dask_engine_without_dask_suggests_package(
    process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = process("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    assert result.exit_code == 2
    assert "cudaredist[dask]" in result.stderr
