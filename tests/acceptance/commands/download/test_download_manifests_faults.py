"""Tests of download-manifests with failing servers and invalid manifests."""

import hashlib
import time
from pathlib import Path

import pytest
from conftest import SAMPLE, Run
from support import server as faults
from support.factory import manifest
from support.running import FOLDER, LATEST, expect_error, expect_output, files, held, lock, report
from support.server import FaultServer


@pytest.mark.parametrize(
    ("behaviour", "times"),
    [
        pytest.param(faults.status(500), 1, id="500 then 200"),
        pytest.param(faults.status(503), 2, id="503 twice"),
        pytest.param(faults.status(408), 1, id="408"),
        pytest.param(faults.status(425), 1, id="425"),
        pytest.param(faults.status(429, Retry_After="1"), 1, id="429 with Retry-After"),
        pytest.param(faults.status(503, Retry_After="nonsense"), 1, id="Retry-After of nonsense"),
        pytest.param(faults.reset_in_the_middle, 1, id="reset"),
        pytest.param(faults.truncated, 1, id="truncated"),
        pytest.param(faults.without_length, None, id="no length"),
        pytest.param(faults.gzipped, None, id="gzip without request"),
        pytest.param(faults.redirect("/elsewhere.json"), None, id="redirect"),
    ],
)
def test_download_with_transient_failure_stores_manifest(
    fetch: Run, cuda: FaultServer, behaviour: faults.Behaviour, times: int | None
) -> None:
    cuda.misbehave(LATEST, behaviour, times)
    cuda.files["/elsewhere.json"] = cuda.files[LATEST]
    expect_output(fetch(), 0)
    assert held().read_bytes() == cuda.files[LATEST]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "code", "message"),
    [
        pytest.param(faults.status(500), 3, "answered 500", id="always 500"),
        pytest.param(faults.status(404), 3, "answered 404", id="listed but missing"),
        pytest.param(faults.status(403), 3, "answered 403", id="forbidden"),
        pytest.param(
            faults.status(429, Retry_After="86400"), 3, "answered 429", id="Retry-After of a day"
        ),
        pytest.param(faults.status(304), 3, "answered 304", id="304 without condition"),
        pytest.param(faults.reset_in_the_middle, 3, "connection broke", id="always reset"),
        pytest.param(faults.truncated, 3, "connection broke", id="always truncated"),
        pytest.param(
            faults.truncated_with_matching_length, 5, "not JSON", id="half with matching length"
        ),
        pytest.param(faults.redirect(LATEST), 3, "redirected more than 5", id="redirect loop"),
        pytest.param(faults.redirect(""), 3, "without a Location", id="redirect to nothing"),
        pytest.param(faults.redirect("http://192.0.2.1/x"), 3, "not encrypted", id="plain http"),
        pytest.param(faults.redirect("ftp://127.0.0.1/x"), 3, "not encrypted", id="ftp"),
        pytest.param(
            faults.redirect("http://[::1/"), 3, "invalid address", id="redirect to nonsense"
        ),
        pytest.param(faults.redirect("https://a..b/"), 3, "redirected to", id="no host name"),
        pytest.param(faults.redirect(f"http://127.0.0.1:{9**20}/"), 3, "redirected", id="port"),
        pytest.param(
            faults.redirect("https://u:sekrit/x/@h/"), 3, "invalid address", id="secret port"
        ),
        pytest.param(faults.redirect(f"https://{'a' * 70}/"), 3, "redirected to", id="long host"),
        pytest.param(faults.redirect("https://xn--a/"), 3, "cuda 12.9.1", id="odd host name"),
        pytest.param(faults.body(b"<html>503</html>"), 5, "HTML, not JSON", id="HTML"),
        pytest.param(faults.body(b"\0" * 99), 5, "not JSON", id="NULs"),
        pytest.param(faults.body(b"{}"), 5, "has no package", id="empty object"),
        pytest.param(faults.gzip_bomb(256 << 20), 5, "larger than", id="gzip bomb"),
        pytest.param(
            faults.body(b"not packed", Content_Encoding="gzip"),
            3,
            "gzip data is invalid",
            id="no gzip",
        ),
        pytest.param(faults.body(b"x", Content_Encoding="br"), 3, "not requested", id="brotli"),
        pytest.param(faults.two_gigabytes(with_length=True), 5, "larger than", id="2 GB"),
        pytest.param(
            faults.two_gigabytes(with_length=False), 5, "larger than", id="2 GB without length"
        ),
    ],
)
def test_download_with_failing_server_reports_error(
    fetch: Run, cuda: FaultServer, behaviour: faults.Behaviour, code: int, message: str
) -> None:
    cuda.add_manifests("nvpl", {"24.7": manifest("24.7", "nvpl", packages=("nvpl_blas",))})
    cuda.misbehave(LATEST, behaviour)
    result = expect_error(fetch("--retries", "1"), code, message, "cuda 12.9.1")
    assert "sekrit" not in result.stderr
    assert files() == {"data/lock.json", "data/manifests/nvpl/redistrib_24.7.json"}, (
        "the other redist is kept, and nothing is half written"
    )


def test_manifest_with_damaged_path_is_not_stored(fetch: Run, cuda: FaultServer) -> None:
    damaged = manifest("12.9.1").replace(b"linux-sbsa-12", b"linux-sbsc-12")
    cuda.misbehave(FOLDER + "redistrib_12.9.1.json", faults.body(damaged), times=1)
    expect_error(fetch("--redist", "cuda"), 5, "contradicts the rest of the manifest")
    assert not held().exists()
    assert fetch("--redist", "cuda").exit_code == 0


def test_accept_changed_replaces_damaged_manifest_with_same_etag(
    run: Run, fetch: Run, cuda: FaultServer
) -> None:
    good = manifest("12.9.1")
    damaged = good.replace(good.partition(b'"sha256": "')[2][:64], b"1" * 64)
    etag = f'"{hashlib.sha256(good).hexdigest()[:16]}"'
    cuda.misbehave(FOLDER + held().name, faults.body(damaged, ETag=etag), times=1)
    command = ("--redist", "cuda")
    assert fetch(*command).exit_code == 0
    assert held().read_bytes() == damaged
    assert fetch(*command, "--replace").exit_code == 0
    assert held().read_bytes() == good
    assert run("check", "--base-url", cuda.url, "--json").exit_code != 4


def test_truncated_listing_of_matching_length_is_fetched_again(
    fetch: Run, cuda: FaultServer
) -> None:
    fetch("--version", "all")
    cuda.misbehave(FOLDER, faults.truncated_with_matching_length, times=1)
    expect_output(fetch("--version", "all"), 0)
    assert not any("gone" in entry for entry in lock()["cuda"].values())


LINKS = b"".join(b"<a href='redistrib_1.%d.json'>x</a>" % number for number in range(1001))


@pytest.mark.parametrize(
    ("behaviour", "message", "requests"),
    [
        (faults.truncated_with_matching_length, "the listing has no end", 2),
        (faults.body(b"<pre>" + LINKS + b"</pre>"), "lists 1,001 manifests, more than the lim", 1),
    ],
)
def test_truncated_or_endless_listing_marks_nothing_as_gone(
    fetch: Run,
    cuda: FaultServer,
    behaviour: faults.Behaviour,
    message: str,
    requests: int,
) -> None:
    all_versions = ("--version", "all")
    fetch(*all_versions)
    before = lock()
    cuda.requests.clear()
    cuda.misbehave(FOLDER, behaviour)
    expect_error(fetch(*all_versions, "--retries", "1"), 3, message)
    assert lock() == before
    assert cuda.requests[FOLDER] == requests
    assert not cuda.count("redistrib_1.1.json")


@pytest.mark.slow
@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(faults.never_ending, id="never-ending"),
        pytest.param(faults.silent, id="silent"),
        pytest.param(faults.header_byte_by_byte, id="slow header"),
        pytest.param(faults.early_hints_for_ever, id="early hints"),
        pytest.param(faults.chunk_extension_for_ever, id="slow chunk"),
    ],
)
def test_download_of_endless_response_stops_at_time_limit(
    fetch: Run, cuda: FaultServer, behaviour: faults.Behaviour
) -> None:
    cuda.add_manifests("nvpl", {"24.7": manifest("24.7", "nvpl", packages=("nvpl_blas",))})
    fetch("--redist", "nvpl")
    before = files()
    cuda.misbehave(LATEST, behaviour)
    limits = ("--retries", "0", "--timeout", "1")
    expect_error(fetch("--redist", "cuda", *limits), 3, "not complete within 1 s")
    assert files() == before, "the other redist is kept, and nothing is half written"


def test_response_cut_by_time_limit_is_not_complete(fetch: Run, cuda: FaultServer) -> None:
    fetch("--version", "all")

    def stalling(handler: faults.Handler, data: bytes) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n<a href='redistrib_12.9.1.json'>")
        time.sleep(0.6)
        handler.wfile.write(b"\n")
        faults.silent(handler, b"")

    cuda.misbehave(FOLDER, stalling)
    expect_error(fetch("--timeout", "1", "--retries", "0"), 3, "not complete within 1 s")
    assert "gone" not in lock()["cuda"]["12.9.0"]


def test_empty_first_source_does_not_hide_gone_labels(
    run: Run, fetch: Run, cuda: FaultServer
) -> None:
    fetch("--version", "all")
    cuda.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
    with FaultServer() as empty:
        run("download-manifests", "--base-url", empty.url, "--base-url", cuda.url)
    assert lock()["cuda"]["12.9.0"]["gone"] is True


def test_unreadable_folder_does_not_block_others(run: Run, fetch: Run, cuda: FaultServer) -> None:
    Path("data/manifests").mkdir(parents=True)
    Path("data/manifests/cudnn").symlink_to("cudnn")
    cuda.add_manifests("cudnn", {"9.0.0": manifest("9.0.0", "cudnn")})
    assert fetch().exit_code == 3
    assert held().exists()
    result = expect_output(run("check", "--offline", "--json"), 3)
    assert "unreadable" in {finding["kind"] for finding in report(result)["findings"]}


def test_retry_after_delays_retry(fetch: Run, cuda: FaultServer) -> None:
    cuda.misbehave(LATEST, faults.status(429, Retry_After="1"), 1)
    started = time.monotonic()
    assert fetch().exit_code == 0
    assert time.monotonic() - started >= 1


@pytest.mark.parametrize(
    ("status", "options", "count"), [(500, ("--retries", "2"), 3), (403, (), 1)]
)
def test_retries_limit_requests_and_permanent_failure_is_not_retried(
    fetch: Run, cuda: FaultServer, status: int, options: tuple[str, ...], count: int
) -> None:
    cuda.misbehave(LATEST, faults.status(status))
    fetch(*options)
    assert cuda.requests[LATEST] == count


def test_fail_fast_reports_skipped_manifests(fetch: Run, cuda: FaultServer) -> None:
    cuda.misbehave(f"{FOLDER}redistrib_12.9.0.json", faults.status(403))
    result = fetch("--redist", "cuda", "--version", "all", "--fail-fast", "--jobs", "1")
    assert result.exit_code == 3
    assert "12.9.1: skipped: the run stopped earlier" in result.stderr
    assert not held().exists()


def test_unreachable_server_is_reported_once(run: Run, cuda: FaultServer) -> None:
    url = "http://127.0.0.1:9"
    result = run("download-manifests", "--base-url", url, "--retries", "0")
    assert result.exit_code == 3
    assert "cannot connect" in result.stderr
    assert result.stderr.count("error:") == 1, "one error for all redists"


def test_listing_without_manifests_exits_5(fetch: Run, server: FaultServer) -> None:
    server.files[FOLDER] = b"<html>moved</html>"
    expect_error(fetch("--redist", "cuda"), 5, "has no redistrib_")


def test_empty_source_exits_3(fetch: Run, server: FaultServer) -> None:
    expect_output(fetch(), 3, "not at this source: cublasmp, cuda")


def test_selected_redist_without_manifest_exits_3(run: Run) -> None:
    result = run("download-manifests", "--base-url", SAMPLE, "--redist", "tensorrt")
    assert result.exit_code == 3
    assert "NVIDIA publishes no manifest for TensorRT" in result.stderr


def test_unlisted_release_exits_3(run: Run) -> None:
    result = run("download-manifests", "--base-url", SAMPLE, "--version", "12.7.0")
    assert result.exit_code == 3
    assert "lists 12.7.0" in result.stderr
    assert "newest upstream: cuda 13.0.2" in result.stderr


def test_unknown_platform_warns_and_fails_with_strict(fetch: Run, server: FaultServer) -> None:
    odd = manifest("12.9.1", platforms=("linux-riscv64",))
    server.add_manifests("cuda", {"12.9.1": odd})
    expect_error(fetch(), 0, "unknown platform, kept")
    expect_output(fetch(), 0)
    expect_output(fetch("--strict"), 5)  # The cache knows the manifest.
    held().unlink()
    expect_output(fetch("--strict"), 5)
    assert not held().exists()


def test_manifest_of_another_product_warns(fetch: Run, server: FaultServer) -> None:
    server.add_manifests("cudnn", {"9.0.0": manifest("9.0.0", "cuda")})
    result = fetch()
    assert "names the product 'cuda', expected cudnn" in result.stderr
