"""Fixtures and rules of all tests: a clean environment and no network."""

import copy
import functools
import gc
import itertools
import os
import re
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
from support.headers import read_once
from support.patching import Patch, patching
from support.releases import publish, release
from support.running import assert_report_fits, invoke
from support.server import FaultServer
from support.shared_api import sharing_api
from support.shared_index import share_index
from support.templates import CompiledEnvironment
from support.toolkits import MadeSet, Materialize, put_packages
from typer.main import get_command
from typer.testing import Result

from cudaredist.environments.loader import Loader

__all__ = ["golden"]

REPOSITORY = Path(__file__).parent.parent
SHARED = REPOSITORY.parent / "shared"
REAL_MANIFESTS = SHARED / "redist"
SAMPLE = REPOSITORY / "examples" / "source"

Run = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]

_COMPILER_LIBRARIES = re.compile(r"(ld-.*|lib(c|dl|gcc_s|m|pthread|rt|stdc\+\+))\.so\b")
_CACHE_NUMBERS = itertools.count()

# A shell ignores Ctrl-C in background jobs, and child processes would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The garbage collector takes a tenth of the time, and few objects of tests require it.
gc.set_threshold(100_000, 10, 10)

# No deadlines, because the speed of a shared machine varies. The profile "ci" has more examples.
settings.register_profile(
    "fast", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fast")

# Creating the command tree again takes most of the time of a small call.
typer.testing._get_command = functools.cache(get_command)  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-golden", action="store_true", help="rewrite tests/golden")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give long tests more time before they count as hanging."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            for name, seconds in (("nightly", 3600), ("network", 1800), ("slow", 1200)):
                if item.get_closest_marker(name):
                    item.add_marker(pytest.mark.timeout(seconds))
                    break


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection, which takes long for them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test on real input that is skipped although the input exists."""
    report = yield
    if report.skipped and item.get_closest_marker("real") and REAL_MANIFESTS.is_dir():
        report.outcome = "failed"
        report.longrepr = f"skipped although {REAL_MANIFESTS} is there: {report.longrepr}"
    return report


def examples(share: float) -> settings:
    """Return settings with a share of the profile's number of examples."""
    assert settings.default is not None
    return settings(max_examples=round(share * settings.default.max_examples))


@pytest.fixture(autouse=True, scope="session")
def _shared_index(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "shared"
    folder.mkdir(mode=0o700, exist_ok=True)
    share_index(folder)


@pytest.fixture(autouse=True, scope="session")
def _headers_and_templates_read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cudaredist.commands.update.table_run.read_header", read_once)
        patch.setattr("cudaredist.commands.site.render_site.Environment", CompiledEnvironment)
        yield


@pytest.fixture(scope="module")
def shared_api() -> Iterator[None]:
    """Read the API of the shipped data once for a module.

    This takes most of the time of a call, as does finding the names that differ in a release.
    """
    with sharing_api():
        yield


@pytest.fixture(autouse=True, scope="session")
def _files_settle_soon() -> Iterator[None]:
    """Let an index keep the states of files that changed 10 ms ago, the precision of their times.

    With 2 seconds, each command of a test would create the index of the test's files again.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cudaredist.store.documents._SETTLED_NS", 10**7)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_audit_hooks_with_coverage() -> Iterator[None]:
    """Install no audit hooks while coverage is measured.

    With a hook, Python 3.11 may fail to start a thread that is traced.
    """
    with pytest.MonkeyPatch.context() as patch:
        if sys.gettrace() is not None:
            patch.setattr(sys, "addaudithook", lambda _: None)
        yield


def _cache_folder(request: pytest.FixtureRequest) -> Path:
    """Return the path of a cache folder that no other test uses."""
    if "tmp_path" in request.fixturenames:
        folder: Path = request.getfixturevalue("tmp_path")
        return folder / "cache"
    # Most tests need no folder, and creating one takes as long as a small test.
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    return factory.getbasetemp() / "caches" / str(next(_CACHE_NUMBERS))


@pytest.fixture(autouse=True)
def _clean_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("CUDAREDIST_", "GITHUB_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    # typer forces color if these are set, so help would differ between machines.
    for name in ("FORCE_COLOR", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("CUDAREDIST_CACHE_DIR", str(_cache_folder(request)))
    # No test survives a power failure, and a slow disk would take most of the time.
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(autouse=True)
def _no_libraries_of_nvidia(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hide all libraries of the machine but those of the compiler, such as an installed cuDNN."""
    if request.node.get_closest_marker("network"):
        return
    listed, read_cache = Loader._listed, Loader._read_cache

    def listed_here(self: Loader, folder: str) -> tuple[str, frozenset[str]]:
        real, names = listed(self, folder)
        is_system = real.startswith(("/lib", "/usr/lib", "/usr/local/"))
        return real, frozenset(filter(_COMPILER_LIBRARIES.match, names)) if is_system else names

    def cache_here(self: Loader) -> dict[str, list[str]] | None:
        cached = read_cache(self)
        if cached is None or self._root:
            return cached
        return {name: paths for name, paths in cached.items() if _COMPILER_LIBRARIES.match(name)}

    monkeypatch.setattr(Loader, "_listed", listed_here)
    monkeypatch.setattr(Loader, "_read_cache", cache_here)


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
def patch() -> Iterator[Patch]:
    """Return a function that replaces functions and numbers, which the test must use."""
    with patching() as replacing:
        yield replacing


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run as a user without HOME and without an entry in passwd."""
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "CUDAREDIST_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry failed requests at once, unless the server names a time."""
    monkeypatch.setattr("cudaredist.sources.http_retry.backoff", lambda _: 0.0)


@pytest.fixture
def server(short_pauses: None) -> Iterator[FaultServer]:
    """Start a server on loopback that can misbehave."""
    with FaultServer() as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """Create a certificate authority that the tool trusts."""
    trusted = trustme.CA()
    trusted.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return trusted


@pytest.fixture
def secure(authority: trustme.CA, short_pauses: None) -> Iterator[FaultServer]:
    """Start a server with a certificate of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with FaultServer(context) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line in this process in an empty folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def invoke_checked(*arguments: object) -> Result:
        result = invoke(*arguments)
        if "--json" in arguments:
            assert_report_fits(result)
        return result

    return invoke_checked


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts the command line in a separate process."""
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
def pip_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the only folder in pip's configuration."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cuda(server: FaultServer) -> FaultServer:
    """Serve the manifests of two CUDA releases."""
    server.add_manifests("cuda", {label: manifest(label) for label in ("12.9.0", "12.9.1")})
    return server


@pytest.fixture
def fetch(run: Run, server: FaultServer) -> Run:
    """Return a function that runs download-manifests with the server."""
    return lambda *options: run("download-manifests", "--base-url", server.url, *options)


@pytest.fixture
def cuda_archives(server: FaultServer, run: Run) -> FaultServer:
    """Serve the archives of a CUDA release with a manifest in the data folder."""
    publish(server, release("12.9.1", processing.PACKAGES))
    return server


@pytest.fixture
def process(run: Run, server: FaultServer) -> Run:
    """Return a function that runs process-manifests with the server."""
    return lambda *options: run(
        "process-manifests", "--base-url", server.url, "--retries", 1, *options
    )


@pytest.fixture
def made_set(run: Run) -> MadeSet:
    """Write a package set to `set.json` and its archives to `source`."""
    package_set = copy.deepcopy(_small_set())
    package_set.put()
    return package_set


@functools.cache
def _small_set() -> MadeSet:
    return put_packages(MadeSet())


@pytest.fixture
def materialize(run: Run) -> Materialize:
    """Return a function that materializes `set.json` to `root` from `source`."""

    def invoke(*options: object, base: object = "source", root: object = "root") -> Result:
        source = () if base is None else ("--base-url", base)
        return run("materialize", "set.json", "--output", root, *source, *options)

    return invoke


@pytest.fixture
def real_manifests() -> Path:
    """Return the folder of NVIDIA's real manifests, with the layout of its server."""
    if not REAL_MANIFESTS.is_dir():
        pytest.skip(f"NVIDIA's manifests are not at {REAL_MANIFESTS}")
    return REAL_MANIFESTS
