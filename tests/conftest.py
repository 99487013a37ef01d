"""Fixtures and rules of all tests: a clean environment, no network but this machine."""

import functools
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import trustme
import typer.testing
from hypothesis import HealthCheck, settings
from support import processing
from support.factory import manifest
from support.golden import golden
from support.materializing import Materialize, put_packages
from support.releases import publish, release
from support.reports import assert_report_fits
from support.running import invoke
from support.server import FaultServer
from support.toolkits import MadeSet
from typer.main import get_command
from typer.testing import Result

__all__ = ["golden"]

REPOSITORY = Path(__file__).parent.parent
SHARED = REPOSITORY.parent / "shared"
REAL_MANIFESTS = SHARED / "redist"
SAMPLE = REPOSITORY / "examples" / "source"

Run = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]

# A shell that starts the tests in the background ignores Ctrl-C, and so would our own processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast a machine shared with others is says nothing of the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

# Making the tree of commands anew for every call is most of what a small call costs.
typer.testing._get_command = functools.cache(get_command)  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-golden", action="store_true", help="rewrite tests/golden")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test on real input that is skipped although the input is there."""
    report = yield
    if report.skipped and item.get_closest_marker("real") and REAL_MANIFESTS.is_dir():
        report.outcome = "failed"
        report.longrepr = f"skipped although {REAL_MANIFESTS} is there: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("CUDAREDIST_", "GITHUB_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    # typer forces colour where these are set, so that help differs between machines.
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("CUDAREDIST_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("network"):
        return
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        assert host in {"127.0.0.1", "::1", ""}, f"a test reached for {address}"
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect_here)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """A server on loopback that can misbehave."""
    with FaultServer() as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """A certificate authority that the tool is told to trust."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[FaultServer]:
    """A server with a certificate of that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with FaultServer(context) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process, from an empty folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def invoke_checked(*arguments: object) -> Result:
        result = invoke(*arguments)
        if "--json" in arguments:
            assert_report_fits(result.stdout)
        return result

    return invoke_checked


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the command line as a process of its own."""
    running: list[subprocess.Popen[str]] = []

    def popen(*arguments: object) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "cudaredist", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        running.append(process)
        return process

    yield popen
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def cuda_manifests(server: FaultServer) -> FaultServer:
    """A server with the manifests of two CUDA releases."""
    server.add_manifests("cuda", {label: manifest(label) for label in ("12.9.0", "12.9.1")})
    return server


@pytest.fixture
def cuda_archives(server: FaultServer, run: Run) -> FaultServer:
    """A server with the archives of one CUDA release, whose manifest is in the data folder."""
    publish(server, release("12.9.1", processing.PACKAGES))
    return server


@pytest.fixture
def process(run: Run, server: FaultServer) -> Run:
    """Run process-manifests against the server."""
    return lambda *options: run(
        "process-manifests", "--base-url", server.url, "--retries", 1, *options
    )


@pytest.fixture
def made_set(run: Run) -> MadeSet:
    """A package set in `set.json`, with its archives below `source`."""
    made = put_packages(MadeSet())
    made.write(Path("set.json"))
    made.put_archives(Path("source"))
    return made


@pytest.fixture
def materialize(run: Run) -> Materialize:
    """Materialize `set.json` to `root`, from `source`."""

    def invoke(*options: object, base: object = "source", root: object = "root") -> Result:
        source = () if base is None else ("--base-url", base)
        return run("materialize", "set.json", "--root", root, *source, *options)

    return invoke


@pytest.fixture
def real_manifests() -> Path:
    """NVIDIA's real manifests, laid out as on its server."""
    if not REAL_MANIFESTS.is_dir():
        pytest.skip(f"NVIDIA's manifests are not at {REAL_MANIFESTS}")
    return REAL_MANIFESTS
