"""Tests of selecting releases and sources, and of runs without writes."""

from pathlib import Path

import pytest
from conftest import SAMPLE, Run
from support import server as faults
from support.factory import manifest
from support.running import FOLDER, LATEST, expect_output, files, held, lock, report
from support.server import FaultServer

# -- selection


def test_download_without_options_stores_newest_of_each_redist(run: Run) -> None:
    expect_output(run("download-manifests", "--base-url", SAMPLE), 0)
    assert files() == {
        "data/lock.json",
        "data/manifests/cuda/redistrib_13.0.2.json",
        "data/manifests/cudnn/redistrib_8.9.6.json",
        "data/manifests/nvpl/redistrib_24.7.json",
    }


def test_download_stores_unchanged_bytes_and_lock_entry(run: Run) -> None:
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda", "--version", "12.9.1")
    published = SAMPLE / "compute/cuda/redist/redistrib_12.9.1.json"
    assert held().read_bytes() == published.read_bytes()
    entry = lock()["cuda"]["12.9.1"]
    assert entry == {"sha256": entry["sha256"], "size": published.stat().st_size}


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        pytest.param([], ["13.0.2"], id="latest by default"),
        pytest.param(["--version", "all"], ["12.9.0", "12.9.1", "13.0.2"], id="all"),
        pytest.param(
            ["--version", "12.9.0", "--version", "latest"], ["12.9.0", "13.0.2"], id="two"
        ),
        pytest.param(["--min-version", "12.9.1"], ["12.9.1", "13.0.2"], id="from"),
        pytest.param(["--max-version", "12.9"], ["12.9.0", "12.9.1"], id="to a minor"),
        pytest.param(["--version", "latest", "--max-version", "12"], ["12.9.1"], id="latest below"),
        pytest.param(["--min-version", "12.9.1", "--max-version", "12.9.1"], ["12.9.1"], id="one"),
    ],
)
def test_version_options_select_releases(run: Run, options: list[str], labels: list[str]) -> None:
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda", *options)
    assert sorted(lock()["cuda"]) == labels


def test_second_download_changes_no_file(fetch: Run, cuda: FaultServer) -> None:
    fetch("--redist", "cuda")
    before = {path: Path(path).stat().st_mtime_ns for path in files()}
    expect_output(fetch("--redist", "cuda"), 0, "unchanged")
    assert {path: Path(path).stat().st_mtime_ns for path in files()} == before


def test_second_download_sends_conditional_request(fetch: Run, cuda: FaultServer) -> None:
    for _ in range(2):
        fetch("--redist", "cuda")
    requests = [headers for path, headers in cuda.headers if path == LATEST]
    assert "If-None-Match" not in requests[0]
    assert "If-None-Match" in requests[1]


def test_lost_manifest_is_downloaded_again(fetch: Run, cuda: FaultServer) -> None:
    fetch("--redist", "cuda")
    held().unlink()
    assert fetch("--redist", "cuda").exit_code == 0
    assert held().read_bytes() == manifest("12.9.1")


def test_documented_positional_call_succeeds(run: Run, cuda: FaultServer) -> None:
    url = f"{cuda.url}/compute/cuda/redist"
    result = run(
        "download-manifests", "--log-level", "DEBUG", "--version", "12.9.1", url, "./manifests"
    )
    assert result.exit_code == 0
    assert files() == {"manifests/redistrib_12.9.1.json"}
    assert "debug: " in result.stderr


@pytest.mark.parametrize("end", ["", "/"])
def test_positional_form_accepts_folder(run: Run, end: str) -> None:
    url = f"{SAMPLE}/compute/nvpl/redist{end}"
    expect_output(run("download-manifests", "--no-parallel", "--no-cleanup", url, "out"), 0)
    assert files() == {"out/redistrib_24.7.json"}


def test_handwritten_manifests_are_stored(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mirror" / "handwritten" / "tensorrt"
    folder.mkdir(parents=True)
    (folder / "redistrib_10.9.0.json").write_bytes(
        manifest("10.9.0", "tensorrt", packages=("tensorrt",))
    )
    result = run("download-manifests", "--base-url", tmp_path / "mirror", "--redist", "tensorrt")
    assert result.exit_code == 0
    assert held("10.9.0", "tensorrt").exists()


def test_older_folder_of_redist_is_listed(fetch: Run, server: FaultServer) -> None:
    new, old = manifest("3.1.7", "nvshmem"), manifest("2.9.0", "nvshmem")
    server.add_manifests("nvshmem", {"3.1.7": new})
    server.files["/compute/redist/nvshmem/"] = b"<ul><a href='redistrib_2.9.0.json'>x</a></ul>"
    server.files["/compute/redist/nvshmem/redistrib_2.9.0.json"] = old
    expect_output(fetch("--redist", "nvshmem", "--version", "all"), 0)
    assert held("2.9.0", "nvshmem").read_bytes() == old


# -- several sources


def test_next_source_is_used_after_failure_and_reported(run: Run, cuda: FaultServer) -> None:
    with FaultServer() as broken:
        broken.misbehave(FOLDER, faults.status(500))
        result = run(
            *("download-manifests", "--redist", "cuda", "--retries", "0", "--json"),
            *("--base-url", broken.url, "--base-url", cuda.url),
        )
    assert result.exit_code == 0
    (outcome,) = report(result)["manifests"]
    assert outcome["source"] == f"{cuda.url}/"


def test_next_source_is_used_after_invalid_manifest(run: Run, cuda: FaultServer) -> None:
    with FaultServer() as portal:
        portal.add_manifests("cuda", {"12.9.1": b"<html>please log in</html>"})
        result = run(
            *("download-manifests", "--redist", "cuda"),
            *("--base-url", portal.url, "--base-url", cuda.url),
        )
    assert result.exit_code == 0
    assert held().read_bytes() == manifest("12.9.1")


# -- runs without writes


def test_check_reports_changes_and_writes_nothing(fetch: Run, cuda: FaultServer) -> None:
    expect_output(fetch("--check"), 1, "would write")
    assert files() == set()
    fetch()
    assert fetch("--check").exit_code == 0


def test_check_reports_change_of_lock_only(fetch: Run, cuda: FaultServer) -> None:
    fetch()
    Path("data/lock.json").unlink()
    expect_output(fetch("--check"), 1, "only the lock changes")


def test_server_without_handwritten_manifests_succeeds(
    run: Run, fetch: Run, cuda: FaultServer, tmp_path: Path
) -> None:
    folder = tmp_path / "own" / "handwritten" / "tensorrt"
    folder.mkdir(parents=True)
    (folder / "redistrib_10.9.0.json").write_bytes(manifest("10.9.0", "tensorrt"))
    run("download-manifests", "--base-url", tmp_path / "own", "--redist", "tensorrt")
    assert fetch().exit_code == 0
