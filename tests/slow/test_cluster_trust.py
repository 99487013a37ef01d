"""Tests of trust between the client and a Dask cluster."""

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from conftest import Run
from support.clusters import Cluster
from support.releases import Packages, publish, release
from support.server import FaultServer, Handler

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.slow

FEATURES = Path("data/features/cuda/feature_12.9.1.json")
HOSTILE = Path(__file__).with_name("hostile_dask.py")
ATTACKS = ("result", "type", "error", "text", "other")


def packages(*names: str) -> Packages:
    return {name: {"linux-x86_64": {"include/x.h": name.encode()}} for name in names}


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Create a folder that gets a file for each process that executed hostile code."""
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


def wait_for_preload(traces: Path) -> None:
    while not (traces / "preloaded").exists():
        time.sleep(0.1)


def process(run: Run, server: FaultServer, cluster: Cluster, *options: object) -> tuple[int, str]:
    result = run(
        *("process-manifests", "--retries", 0, "--engine", "dask"),
        *("--scheduler", cluster.address, "--base-url", server.url, *options),
    )
    return result.exit_code, result.output


def test_hostile_worker_executes_nothing_in_client(
    run: Run, server: FaultServer, tmp_path: Path, traces: Path
) -> None:
    publish(server, release("12.9.1", packages(*ATTACKS, "events", "honest")))
    with Cluster(tmp_path) as cluster:
        cluster.add_worker("--preload", HOSTILE, HOSTILE_FOLDER=str(traces))
        wait_for_preload(traces)
        code, output = process(run, server, cluster)
    assert code == 3
    assert "2 of 7 archives examined  5 failed" in output
    assert all(f"{attack}-linux-x86_64" in output for attack in ATTACKS)
    assert "printed by a worker" not in output
    assert len(list(traces.iterdir())) > 1, "the attacks executed nothing anywhere"
    assert not (traces / str(os.getpid())).exists()


def test_hostile_scheduler_executes_nothing_in_client(
    run: Run, server: FaultServer, tmp_path: Path, traces: Path
) -> None:
    publish(server, release("12.9.1", packages("honest")))
    server.delay = 1.0
    with Cluster(tmp_path, "--preload", HOSTILE, HOSTILE_FOLDER=str(traces)) as cluster:
        wait_for_preload(traces)
        cluster.add_worker()
        code, output = process(run, server, cluster)
    assert code == 3, output
    assert not (traces / str(os.getpid())).exists()


def test_archive_that_kills_worker_is_reported_as_failed(
    run: Run, server: FaultServer, tmp_path: Path, traces: Path
) -> None:
    publish(server, release("12.9.1", packages("death")))
    none = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with Cluster(tmp_path, **none) as cluster:
        cluster.add_worker("--preload", HOSTILE, HOSTILE_FOLDER=str(traces))
        wait_for_preload(traces)
        code, output = process(run, server, cluster)
    assert code == 3
    assert "death-linux-x86_64" in output
    assert "read the logs of the workers" in output


def test_workers_use_only_their_own_credentials(
    run: Run, server: FaultServer, tmp_path: Path
) -> None:
    publish(server, release("12.9.1", packages("one", "two")))
    expected = "Basic " + base64.b64encode(b"worker:secret").decode()

    def protected(handler: Handler, data: bytes) -> None:
        if handler.headers.get("Authorization") == expected:
            handler.serve(data)
        else:
            handler.answer(401, b"", WWW_Authenticate="Basic")

    server.misbehave(server.files, protected)
    client_url = server.url.replace("://", "://client:hidden@")
    own = server.url.replace("://", "://worker:secret@")

    with Cluster(tmp_path / "without") as cluster:
        cluster.add_worker()
        code, output = process(run, server, cluster, "--base-url", client_url)
    assert code == 3
    assert "401" in output
    assert "not sent to workers" in output
    assert "hidden" not in output
    assert not any("Authorization" in headers for _, headers in server.headers)

    with Cluster(tmp_path / "with") as cluster:
        cluster.add_worker(CUDAREDIST_BASE_URL=f"https://other.example {own}/")
        code, output = process(run, server, cluster, "--base-url", client_url)
    assert code == 0, output
    sent = {headers.get("Authorization") for _, headers in server.headers}
    assert sent == {None, expected}


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, str]:
    """Return the TLS settings of Dask as environment variables."""
    authority, certificate = trustme.CA(), tmp_path / "certificate.pem"
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    settings = {
        f"DASK_DISTRIBUTED__COMM__TLS__{role}__{part}": str(certificate)
        for role in ("CLIENT", "SCHEDULER", "WORKER")
        for part in ("CERT", "KEY")
    }
    settings["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = str(tmp_path / "ca.pem")
    settings["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] = "true"
    return settings


def test_tls_settings_of_dask_are_used(
    start: Callable[..., "subprocess.Popen[str]"],
    server: FaultServer,
    tmp_path: Path,
    tls: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish(server, release("12.9.1", packages("one")), folder=tmp_path)
    with Cluster(tmp_path, "--protocol", "tls", **tls) as cluster:
        cluster.add_worker()
        assert cluster.address.startswith("tls://")
        options = ("--engine", "dask", "--scheduler", cluster.address, "--base-url", server.url)

        without = start("process-manifests", *options)
        _, words = without.communicate()
        assert without.returncode == 3
        assert "distributed.comm.tls" in words

        for name, value in tls.items():
            monkeypatch.setenv(name, value)
        client = start("process-manifests", *options)
        _, words = client.communicate()
        assert client.returncode == 0, words
    assert (tmp_path / FEATURES).exists()
