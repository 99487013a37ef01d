"""Tests of options, environment, credentials and report of download-manifests."""

import os
from pathlib import Path

import pytest
from conftest import SAMPLE, Run
from support import server as faults
from support.factory import manifest
from support.running import LATEST, expect_error, files
from support.server import FaultServer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--redist", "cuddn"], "did you mean cudnn", id="typo"),
        pytest.param(["--redist", "zzzzzzzz"], "known: cublasmp", id="nothing near"),
        pytest.param(["--version", "newest"], "is not a version", id="no version"),
        pytest.param(["--min-version", "x"], "is not a version", id="no bound"),
        pytest.param(["--min-version", "2", "--max-version", "1"], "is newer than", id="crossed"),
        pytest.param(["--base-url", "http://192.0.2.1/"], "is not encrypted", id="plain http"),
        pytest.param(["--base-url", "ftp://x/"], "ftp://", id="scheme"),
        pytest.param(["--base-url", "https://x/?token=secret"], "expected https://", id="query"),
        pytest.param(["--base-url", "https://"], "expected https://", id="no host"),
        pytest.param(["--base-url", "https://[::1"], "not a usable address", id="half an address"),
        pytest.param(
            ["--base-url", "file://other/x"], "cannot contain a host", id="file of a machine"
        ),
        pytest.param(["--offline"], "combined with --offline", id="offline"),
        pytest.param(["--jobs", "0"], "--jobs", id="jobs"),
        pytest.param(["--base-url", "https:/u:sekrit@x/"], "two slashes", id="one slash"),
        pytest.param(["--base-url", "https:u:sekrit@x/"], "two slashes", id="no slash"),
        pytest.param(["--base-url", " https://u:sekrit/x@h/"], "not a usable", id="slash inside"),
        pytest.param(["--base-url", "https://h:99999/"], "expected https://", id="port"),
        pytest.param(["--base-url", "file://[x"], "cannot contain a host", id="half a machine"),
        pytest.param(
            ["file://[x", "out"], "cannot contain a host", id="half a machine, positional"
        ),
        pytest.param(
            ["--base-url", "file://u:sekrit@x/"], "cannot contain a host", id="file of a user"
        ),
        pytest.param(["--base-url", "https://a..b/"], "not a usable address", id="no host name"),
    ],
)
def test_invalid_options_exit_2_with_hint(run: Run, arguments: list[str], message: str) -> None:
    result = expect_error(run("download-manifests", *arguments), 2, message)
    assert "sekrit" not in result.stderr
    assert files() == set()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SSL_CERT_FILE", "/nope"),
        ("HTTPS_PROXY", "foo://127.0.0.1:1"),
        ("HTTPS_PROXY", "socks5://127.0.0.1:1"),
        ("HTTPS_PROXY", "http://u:sek#rit@proxy:80"),
        ("HTTPS_PROXY", "http://proxy:abc"),
    ],
)
def test_invalid_environment_variable_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    result = expect_error(run("download-manifests"), 2, variable)
    assert "sek" not in result.stderr


def test_positional_call_ignores_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAREDIST_BASE_URL", "https://elsewhere.invalid")
    monkeypatch.setenv("CUDAREDIST_DATA_DIR", "elsewhere")
    assert run("download-manifests", SAMPLE / "compute/nvpl/redist", "out").exit_code == 0
    assert files() == {"out/redistrib_24.7.json"}


def test_positional_form_ignores_folder_name(run: Run) -> None:
    Path("mirror").mkdir()
    Path("mirror/redistrib_12.9.1.json").write_bytes(manifest())
    result = run("download-manifests", "--strict", "mirror", "out")
    assert (result.exit_code, result.stderr) == (0, "")


def test_positional_form_hides_credentials(run: Run) -> None:
    result = run(
        "download-manifests", "--retries", "0", "http://u:sekrit@127.0.0.1:9", "out", "--json"
    )
    assert result.exit_code == 3
    assert "sekrit" not in result.stdout + result.stderr


@pytest.mark.parametrize("folder", ["x" * 300, "~nosuchuser/x"])
def test_impossible_folder_name_is_reported(run: Run, folder: str) -> None:
    assert run("download-manifests", "--base-url", folder).exit_code == 3
    assert run("check", "--offline", "--data-dir", folder).exit_code == 2


def test_unrelated_data_folder_is_refused(run: Run) -> None:
    Path("data").mkdir()
    Path("data/mine.txt").touch()
    expect_error(run("download-manifests", "--base-url", SAMPLE), 2, "./data is not a data folder")
    assert files() == {"data/mine.txt"}


def test_missing_source_folder_exits_3(run: Run) -> None:
    expect_error(run("download-manifests", "--base-url", "/nowhere/at/all"), 3, "no such folder")


def test_credentials_are_sent_and_not_shown(run: Run, cuda: FaultServer) -> None:
    url = cuda.url.replace("http://", "http://user:secret@")
    cuda.misbehave(LATEST, faults.status(403))
    result = run("download-manifests", "--base-url", url, "-vv", "--json")
    assert "secret" not in result.output + result.stderr
    assert all("Basic" in headers["Authorization"] for _, headers in cuda.headers)


def test_credentials_are_not_sent_after_redirect(run: Run, cuda: FaultServer) -> None:
    with FaultServer() as other:
        other.files["/x.json"] = cuda.files[LATEST]
        cuda.misbehave(LATEST, faults.redirect(f"{other.url}/x.json"))
        url = cuda.url.replace("http://", "http://user:secret@")
        assert run("download-manifests", "--base-url", url).exit_code == 0
    assert [headers.get("Authorization") for _, headers in other.headers] == [None]


def test_unwritable_cache_is_not_a_failure(run: Run, cuda: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run(
        "download-manifests",
        "--base-url",
        cuda.url,
        "--cache-dir",
        tmp_path / "file" / "cache",
    )
    assert result.exit_code == 0
    assert "continuing without" in result.stderr


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "PIP_CERT", "PIP_CLIENT_CERT"])
def test_certificates_in_a_pipe_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    os.mkfifo("pipe")
    monkeypatch.setenv(variable, "pipe")
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:1/")
    result = run("download-manifests", "--channel", "wheels", "--redist", "cuda", "--retries", "0")
    assert result.exit_code == 2, result.output
    assert "pipe is not a regular file" in result.output
