"""download-manifests as a user sees it: folders, servers, faults, and what is left on disk."""

import contextlib
import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from conftest import SAMPLE, Run
from support import server as faults
from support.manifests import manifest
from support.server import FaultServer
from typer.testing import Result

from cudaredist.errors import WriteError
from cudaredist.locks import writing
from cudaredist.store.data_folder import ManifestFolder, Store

Start = Callable[..., Popen[str]]

FOLDER = "/compute/cuda/redist/"
LATEST = f"{FOLDER}redistrib_12.9.1.json"


@pytest.fixture
def cuda(server: FaultServer) -> FaultServer:
    """A server that has two releases of CUDA."""
    server.add_manifests("cuda", {label: manifest(label) for label in ("12.9.0", "12.9.1")})
    return server


def held(label: str = "12.9.1", redist: str = "cuda") -> Path:
    return Path(f"data/manifests/{redist}/redistrib_{label}.json")


def lock() -> Any:
    return json.loads(Path("data/manifests/lock.json").read_bytes())["redists"]


def files() -> set[str]:
    return {path.as_posix() for path in Path().rglob("*") if path.is_file()}


def report(result: Result) -> Any:
    return json.loads(result.stdout)


# -- what is taken


def test_takes_the_newest_of_every_redist_by_default(run: Run) -> None:
    result = run("download-manifests", "--base-url", SAMPLE)
    assert result.exit_code == 0
    assert files() == {
        "data/manifests/lock.json",
        "data/manifests/cuda/redistrib_13.0.2.json",
        "data/manifests/cudnn/redistrib_8.9.6.json",
        "data/manifests/nvpl/redistrib_24.7.json",
    }


def test_stores_bytes_untouched_and_records_them(run: Run) -> None:
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
def test_selects(run: Run, options: list[str], labels: list[str]) -> None:
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda", *options)
    assert sorted(lock()["cuda"]) == labels


def test_a_second_run_touches_nothing(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    before = {path: Path(path).stat().st_mtime_ns for path in files()}
    result = run("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    assert result.exit_code == 0
    assert "unchanged" in result.stdout
    assert {path: Path(path).stat().st_mtime_ns for path in files()} == before


def test_a_second_run_asks_only_whether_it_changed(run: Run, cuda: FaultServer) -> None:
    for _ in range(2):
        run("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    asked = [headers for path, headers in cuda.headers if path == LATEST]
    assert "If-None-Match" not in asked[0]
    assert "If-None-Match" in asked[1]


def test_a_lost_file_is_fetched_again_in_full(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    held().unlink()
    assert run("download-manifests", "--base-url", cuda.url, "--redist", "cuda").exit_code == 0
    assert held().read_bytes() == manifest("12.9.1")


def test_the_manuals_call_works_verbatim(run: Run, cuda: FaultServer) -> None:
    url = f"{cuda.url}/compute/cuda/redist"
    result = run(
        "download-manifests", "--log-level", "DEBUG", "--version", "12.9.1", url, "./manifests"
    )
    assert result.exit_code == 0
    assert files() == {"manifests/redistrib_12.9.1.json"}
    assert "debug: " in result.stderr


@pytest.mark.parametrize("end", ["", "/"])
def test_positional_form_takes_a_folder_too(run: Run, end: str) -> None:
    url = f"{SAMPLE}/compute/nvpl/redist{end}"
    result = run("download-manifests", "--no-parallel", "--no-cleanup", url, "out")
    assert result.exit_code == 0
    assert files() == {"out/redistrib_24.7.json"}


def test_file_address(run: Run) -> None:
    result = run("download-manifests", "--base-url", f"file://{SAMPLE}", "--redist", "nvpl")
    assert result.exit_code == 0


def test_handwritten_manifests_come_from_a_folder(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mirror" / "handwritten" / "tensorrt"
    folder.mkdir(parents=True)
    (folder / "redistrib_10.9.0.json").write_bytes(
        manifest("10.9.0", "tensorrt", packages=("tensorrt",))
    )
    result = run("download-manifests", "--base-url", tmp_path / "mirror", "--redist", "tensorrt")
    assert result.exit_code == 0
    assert held("10.9.0", "tensorrt").exists()


def test_older_folder_of_a_redist_is_read_too(run: Run, server: FaultServer) -> None:
    new, old = manifest("3.1.7", "nvshmem"), manifest("2.9.0", "nvshmem")
    server.add_manifests("nvshmem", {"3.1.7": new})
    server.files["/compute/redist/nvshmem/"] = b"<ul><a href='redistrib_2.9.0.json'>x</a></ul>"
    server.files["/compute/redist/nvshmem/redistrib_2.9.0.json"] = old
    result = run(
        "download-manifests", "--base-url", server.url, "--redist", "nvshmem", "--version", "all"
    )
    assert result.exit_code == 0
    assert held("2.9.0", "nvshmem").read_bytes() == old


# -- several sources


def test_next_source_is_asked_where_one_fails_and_the_answering_one_is_named(
    run: Run, cuda: FaultServer
) -> None:
    with FaultServer() as broken:
        broken.misbehave(FOLDER, faults.status(500))
        result = run(
            *("download-manifests", "--redist", "cuda", "--retries", "0", "--json"),
            *("--base-url", broken.url, "--base-url", cuda.url),
        )
    assert result.exit_code == 0
    (outcome,) = report(result)["manifests"]
    assert outcome["source"] == f"{cuda.url}/"


def test_next_source_is_asked_where_one_delivers_garbage(run: Run, cuda: FaultServer) -> None:
    with FaultServer() as portal:
        portal.add_manifests("cuda", {"12.9.1": b"<html>please log in</html>"})
        result = run(
            *("download-manifests", "--redist", "cuda"),
            *("--base-url", portal.url, "--base-url", cuda.url),
        )
    assert result.exit_code == 0
    assert held().read_bytes() == manifest("12.9.1")


# -- changes in place


def change_upstream(server: FaultServer) -> None:
    server.files[LATEST] = manifest("12.9.1", salt="rebuilt")


def test_a_manifest_changed_in_place_is_not_overwritten(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url)
    before = held().read_bytes()
    change_upstream(cuda)
    result = run("download-manifests", "--base-url", cuda.url)
    assert result.exit_code == 4
    assert held().read_bytes() == before
    assert "changed in place upstream" in result.stderr
    assert "cuda_cudart: linux-x86_64: sha256" in result.stderr
    assert "--accept-changed" in result.stderr


def test_accept_changed_takes_it(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url)
    change_upstream(cuda)
    result = run("download-manifests", "--base-url", cuda.url, "--accept-changed")
    assert result.exit_code == 0
    assert held().read_bytes() == cuda.files[LATEST]
    assert run("download-manifests", "--base-url", cuda.url).exit_code == 0


def test_a_change_is_seen_though_the_file_was_lost(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url)
    held().unlink()
    change_upstream(cuda)
    assert run("download-manifests", "--base-url", cuda.url).exit_code == 4
    assert not held().exists()


def test_a_file_edited_here_is_not_overwritten(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url)
    edited = held().read_bytes() + b"\n"
    held().write_bytes(edited)
    result = run("download-manifests", "--base-url", cuda.url)
    assert result.exit_code == 4
    assert "edited locally" in result.stderr
    assert "only the bytes differ" in result.stderr
    assert held().read_bytes() == edited


def test_a_change_is_seen_though_the_held_file_equals_it(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url)
    change_upstream(cuda)
    held().write_bytes(cuda.files[LATEST])
    recorded = lock()
    assert run("download-manifests", "--base-url", cuda.url).exit_code == 4
    assert lock() == recorded
    assert run("download-manifests", "--base-url", cuda.url, "--accept-changed").exit_code == 0
    assert lock() != recorded


def test_dates_of_files_are_no_proof_that_nothing_changed(run: Run, cuda: FaultServer) -> None:
    date = {"Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT", "ETag": 'W/"1"'}

    def dated(handler: faults.Handler, data: bytes) -> None:
        if "If-Modified-Since" in handler.headers or "If-None-Match" in handler.headers:
            handler.answer(304, b"")
        else:
            handler.answer(200, data, **date)

    cuda.misbehave(LATEST, dated)
    run("download-manifests", "--base-url", cuda.url)
    change_upstream(cuda)
    assert run("download-manifests", "--base-url", cuda.url).exit_code == 4


def test_strict_judges_what_is_held_too(run: Run, server: FaultServer) -> None:
    server.add_manifests("cuda", {"12.9.1": manifest(platforms=("linux-riscv64",))})
    assert run("download-manifests", "--base-url", server.url).exit_code == 0
    server.behaviours.clear()
    result = run("download-manifests", "--base-url", server.url, "--strict", "--cache-dir", "other")
    assert result.exit_code == 5


def test_positional_form_guards_too(run: Run, cuda: FaultServer) -> None:
    url = f"{cuda.url}/compute/cuda/redist"
    run("download-manifests", url, "out")
    change_upstream(cuda)
    assert run("download-manifests", url, "out").exit_code == 4


def test_labels_no_longer_listed_are_marked_not_deleted(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url, "--version", "all")
    listing = cuda.files[FOLDER]
    cuda.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
    result = run("download-manifests", "--base-url", cuda.url)
    assert "12.9.0: upstream no longer lists it" in result.stdout
    assert lock()["cuda"]["12.9.0"]["gone"] is True
    assert held("12.9.0").exists()
    cuda.files[FOLDER] = listing
    run("download-manifests", "--base-url", cuda.url)
    assert "gone" not in lock()["cuda"]["12.9.0"]


def test_a_partial_mirror_makes_nothing_gone(run: Run, cuda: FaultServer) -> None:
    with FaultServer() as partial:
        partial.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
        both = ("--base-url", partial.url, "--base-url", cuda.url)
        run("download-manifests", "--base-url", cuda.url, "--version", "all")
        run("download-manifests", *both)
        assert "gone" not in lock()["cuda"]["12.9.0"]
        held("12.9.0").unlink()
        assert run("download-manifests", *both, "--version", "12.9.0").exit_code == 0
        assert held("12.9.0").exists(), "a release named is looked for in every source"
        cuda.misbehave(FOLDER, faults.status(503))
        cuda.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
        run("download-manifests", *both, "--retries", "0")
        assert "gone" not in lock()["cuda"]["12.9.0"], "one of the sources did not answer"


def test_an_empty_second_folder_does_no_harm(run: Run, server: FaultServer) -> None:
    server.add_manifests("nvshmem", {"3.1.7": manifest("3.1.7", "nvshmem")})
    server.files["/compute/redist/nvshmem/"] = b"<html>nothing here</html>"
    result = run("download-manifests", "--base-url", server.url, "--redist", "nvshmem")
    assert result.exit_code == 0


# -- writing nothing


def test_check_writes_nothing_and_says_what_would_change(run: Run, cuda: FaultServer) -> None:
    result = run("download-manifests", "--base-url", cuda.url, "--check")
    assert result.exit_code == 1
    assert "would write" in result.stdout
    assert files() == set()
    run("download-manifests", "--base-url", cuda.url)
    assert run("download-manifests", "--base-url", cuda.url, "--check").exit_code == 0


def test_check_says_that_only_the_lock_would_change(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url)
    Path("data/manifests/lock.json").unlink()
    result = run("download-manifests", "--base-url", cuda.url, "--check")
    assert result.exit_code == 1
    assert "only the lock's records change" in result.stdout


def test_a_server_without_handwritten_manifests_is_no_failure(
    run: Run, cuda: FaultServer, tmp_path: Path
) -> None:
    folder = tmp_path / "own" / "handwritten" / "tensorrt"
    folder.mkdir(parents=True)
    (folder / "redistrib_10.9.0.json").write_bytes(manifest("10.9.0", "tensorrt"))
    run("download-manifests", "--base-url", tmp_path / "own", "--redist", "tensorrt")
    assert run("download-manifests", "--base-url", cuda.url).exit_code == 0


def test_dry_run_says_the_same_and_succeeds(run: Run, cuda: FaultServer) -> None:
    result = run("download-manifests", "--base-url", cuda.url, "--dry-run")
    assert (result.exit_code, files()) == (0, set())
    assert "would write" in result.stdout


# -- faults


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
        pytest.param(faults.gzipped, None, id="gzip nobody asked for"),
        pytest.param(faults.redirect("/elsewhere.json"), None, id="redirect"),
    ],
)
def test_ends_in_the_right_bytes(
    run: Run, cuda: FaultServer, behaviour: faults.Behaviour, times: int | None
) -> None:
    cuda.misbehave(LATEST, behaviour, times)
    cuda.files["/elsewhere.json"] = cuda.files[LATEST]
    result = run("download-manifests", "--base-url", cuda.url)
    assert result.exit_code == 0, result.stderr
    assert held().read_bytes() == cuda.files[LATEST]


@pytest.mark.parametrize(
    ("behaviour", "code", "says"),
    [
        pytest.param(faults.status(500), 3, "answered 500", id="500 for ever"),
        pytest.param(faults.status(404), 3, "answered 404", id="listed and not there"),
        pytest.param(faults.status(403), 3, "answered 403", id="forbidden"),
        pytest.param(
            faults.status(429, Retry_After="86400"), 3, "answered 429", id="come tomorrow"
        ),
        pytest.param(faults.status(304), 3, "answered 304", id="304 unasked"),
        pytest.param(faults.reset_in_the_middle, 3, "connection broke", id="reset for ever"),
        pytest.param(faults.truncated, 3, "connection broke", id="truncated for ever"),
        pytest.param(faults.truncated_with_matching_length, 5, "not JSON", id="half, well said"),
        pytest.param(faults.redirect(LATEST), 3, "redirected more than 5", id="redirect loop"),
        pytest.param(faults.redirect(""), 3, "without saying where", id="redirect to nothing"),
        pytest.param(faults.redirect("http://192.0.2.1/x"), 3, "not encrypted", id="plain http"),
        pytest.param(faults.redirect("ftp://127.0.0.1/x"), 3, "not encrypted", id="ftp"),
        pytest.param(faults.redirect("http://[::1/"), 3, "no address", id="redirect to nonsense"),
        pytest.param(faults.redirect("https://a..b/"), 3, "redirected to", id="no host name"),
        pytest.param(faults.redirect(f"http://127.0.0.1:{9**20}/"), 3, "redirected", id="port"),
        pytest.param(faults.redirect("https://u:sekrit/x/@h/"), 3, "no address", id="secret port"),
        pytest.param(faults.redirect(f"https://{'a' * 70}/"), 3, "redirected to", id="long host"),
        pytest.param(faults.redirect("https://xn--a/"), 3, "cuda 12.9.1", id="odd host name"),
        pytest.param(faults.body(b"<html>503</html>"), 5, "HTML, not JSON", id="HTML"),
        pytest.param(faults.body(b"\0" * 99), 5, "not JSON", id="NULs"),
        pytest.param(faults.body(b"{}"), 5, "names no package", id="empty object"),
        pytest.param(faults.gzip_bomb(256 << 20), 5, "larger than", id="gzip bomb"),
        pytest.param(
            faults.body(b"not packed", Content_Encoding="gzip"), 3, "and is not", id="no gzip"
        ),
        pytest.param(faults.body(b"x", Content_Encoding="br"), 3, "not asked for", id="brotli"),
        pytest.param(faults.two_gigabytes(with_length=True), 5, "larger than", id="2 GB"),
        pytest.param(faults.two_gigabytes(with_length=False), 5, "larger than", id="2 GB unsaid"),
    ],
)
def test_ends_in_the_right_error(
    run: Run, cuda: FaultServer, behaviour: faults.Behaviour, code: int, says: str
) -> None:
    cuda.add_manifests("nvpl", {"24.7": manifest("24.7", "nvpl", packages=("nvpl_blas",))})
    cuda.misbehave(LATEST, behaviour)
    result = run("download-manifests", "--base-url", cuda.url, "--retries", "1")
    assert result.exit_code == code, result.stderr
    assert says in result.stderr
    assert "cuda 12.9.1" in result.stderr
    assert "sekrit" not in result.stderr
    assert files() == {
        "data/manifests/lock.json",
        "data/manifests/nvpl/redistrib_24.7.json",
    }, "the other redist is kept, and nothing is half written"


def test_manifest_damaged_in_its_path_is_not_stored(run: Run, cuda: FaultServer) -> None:
    damaged = manifest("12.9.1").replace(b"linux-sbsa-12", b"linux-sbsc-12")
    cuda.misbehave(FOLDER + "redistrib_12.9.1.json", faults.body(damaged), times=1)
    result = run("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    assert result.exit_code == 5
    assert "contradicts the rest of the manifest" in result.stderr
    assert not held().exists()
    assert run("download-manifests", "--base-url", cuda.url, "--redist", "cuda").exit_code == 0


def test_accept_changed_replaces_a_damaged_manifest_of_the_same_etag(
    run: Run, cuda: FaultServer
) -> None:
    good = manifest("12.9.1")
    damaged = good.replace(good.partition(b'"sha256": "')[2][:64], b"1" * 64)
    etag = f'"{hashlib.sha256(good).hexdigest()[:16]}"'
    cuda.misbehave(FOLDER + held().name, faults.body(damaged, ETag=etag), times=1)
    command = ("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    assert run(*command).exit_code == 0
    assert held().read_bytes() == damaged
    assert run(*command, "--accept-changed").exit_code == 0
    assert held().read_bytes() == good
    assert run("check", "--base-url", cuda.url, "--json").exit_code != 4


def test_truncated_listing_of_matching_length_is_fetched_again(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url, "--version", "all")
    cuda.misbehave(FOLDER, faults.truncated_with_matching_length, times=1)
    result = run("download-manifests", "--base-url", cuda.url, "--version", "all")
    assert result.exit_code == 0, result.stderr
    assert not any("gone" in entry for entry in lock()["cuda"].values())


def test_truncated_listing_of_matching_length_marks_nothing_as_gone(
    run: Run, cuda: FaultServer
) -> None:
    run("download-manifests", "--base-url", cuda.url, "--version", "all")
    before = lock()
    cuda.misbehave(FOLDER, faults.truncated_with_matching_length)
    result = run("download-manifests", "--base-url", cuda.url, "--retries", "1")
    assert result.exit_code == 3
    assert "the listing has no end" in result.stderr
    assert lock() == before
    assert cuda.requests[FOLDER] == 1 + 2


def test_next_source_is_asked_where_a_listing_is_truncated(run: Run, cuda: FaultServer) -> None:
    with FaultServer() as broken:
        broken.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
        broken.misbehave(FOLDER, faults.truncated_with_matching_length)
        result = run(
            *("download-manifests", "--redist", "cuda", "--retries", "0", "--json"),
            *("--base-url", broken.url, "--base-url", cuda.url),
        )
    assert result.exit_code == 0
    (outcome,) = report(result)["manifests"]
    assert outcome["source"] == f"{cuda.url}/"


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
def test_download_ends_at_the_time_limit_if_an_answer_does_not(
    run: Run, cuda: FaultServer, behaviour: faults.Behaviour
) -> None:
    cuda.add_manifests("nvpl", {"24.7": manifest("24.7", "nvpl", packages=("nvpl_blas",))})
    run("download-manifests", "--base-url", cuda.url, "--redist", "nvpl")
    before = files()
    cuda.misbehave(LATEST, behaviour)
    limits = ("--retries", "0", "--timeout", "1")
    result = run("download-manifests", "--base-url", cuda.url, "--redist", "cuda", *limits)
    assert result.exit_code == 3, result.stderr
    assert "not complete within 1 s" in result.stderr
    assert files() == before, "the other redist is kept, and nothing is half written"


def test_an_answer_cut_by_our_own_time_limit_is_not_taken_for_whole(
    run: Run, cuda: FaultServer
) -> None:
    run("download-manifests", "--base-url", cuda.url, "--version", "all")

    def stalling(handler: faults.Handler, data: bytes) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n<a href='redistrib_12.9.1.json'>")
        time.sleep(0.6)
        handler.wfile.write(b"\n")
        faults.silent(handler, b"")

    cuda.misbehave(FOLDER, stalling)
    result = run("download-manifests", "--base-url", cuda.url, "--timeout", "1", "--retries", "0")
    assert result.exit_code == 3
    assert "not complete within 1 s" in result.stderr
    assert "gone" not in lock()["cuda"]["12.9.0"]


def test_a_first_source_that_has_nothing_does_not_hide_what_is_gone(
    run: Run, cuda: FaultServer
) -> None:
    run("download-manifests", "--base-url", cuda.url, "--version", "all")
    cuda.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
    with FaultServer() as empty:
        run("download-manifests", "--base-url", empty.url, "--base-url", cuda.url)
    assert lock()["cuda"]["12.9.0"]["gone"] is True


def test_what_was_gone_is_found_again_in_a_later_source(run: Run, cuda: FaultServer) -> None:
    run("download-manifests", "--base-url", cuda.url, "--version", "all")
    with FaultServer() as other:
        other.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
        run("download-manifests", "--base-url", other.url)
        assert lock()["cuda"]["12.9.0"]["gone"] is True
        run("download-manifests", "--base-url", other.url, "--base-url", cuda.url)
    assert "gone" not in lock()["cuda"]["12.9.0"]


def test_strict_does_not_depend_on_the_cache(run: Run, server: FaultServer) -> None:
    server.add_manifests("cuda", {"12.9.1": manifest(platforms=("linux-riscv64",))})
    for expected in (0, 0):
        assert run("download-manifests", "--base-url", server.url).exit_code == expected
    assert run("download-manifests", "--base-url", server.url, "--strict").exit_code == 5


def test_one_unreadable_folder_does_not_lose_the_others(run: Run, cuda: FaultServer) -> None:
    Path("data/manifests").mkdir(parents=True)
    Path("data/manifests/cudnn").symlink_to("cudnn")
    cuda.add_manifests("cudnn", {"9.0.0": manifest("9.0.0", "cudnn")})
    assert run("download-manifests", "--base-url", cuda.url).exit_code == 3
    assert held().exists()
    result = run("check", "--offline", "--json")
    assert result.exit_code == 3
    assert "unreadable" in {finding["kind"] for finding in report(result)["findings"]}


def test_retry_after_is_honoured(run: Run, cuda: FaultServer) -> None:
    cuda.misbehave(LATEST, faults.status(429, Retry_After="2"), 1)
    started = time.monotonic()
    assert run("download-manifests", "--base-url", cuda.url).exit_code == 0
    assert time.monotonic() - started >= 2


def test_retries_are_counted(run: Run, cuda: FaultServer) -> None:
    cuda.misbehave(LATEST, faults.status(500))
    run("download-manifests", "--base-url", cuda.url, "--retries", "2")
    assert cuda.requests[LATEST] == 3


def test_what_will_not_pass_is_not_tried_again(run: Run, cuda: FaultServer) -> None:
    cuda.misbehave(LATEST, faults.status(403))
    run("download-manifests", "--base-url", cuda.url)
    assert cuda.requests[LATEST] == 1


def test_fail_fast_stops_and_says_what_was_not_done(run: Run, cuda: FaultServer) -> None:
    cuda.misbehave(f"{FOLDER}redistrib_12.9.0.json", faults.status(403))
    result = run(
        *("download-manifests", "--base-url", cuda.url, "--redist", "cuda", "--version", "all"),
        *("--fail-fast", "--jobs", "1"),
    )
    assert result.exit_code == 3
    assert "12.9.1: not done: the run was stopped" in result.stderr
    assert not held().exists()


def test_a_server_that_is_down(run: Run, cuda: FaultServer) -> None:
    url = "http://127.0.0.1:9"
    result = run("download-manifests", "--base-url", url, "--retries", "0")
    assert result.exit_code == 3
    assert "cannot connect" in result.stderr
    assert result.stderr.count("error:") == 1, "one reason is said once, not per redist"


def test_a_listing_of_nothing(run: Run, server: FaultServer) -> None:
    server.files[FOLDER] = b"<html>moved</html>"
    result = run("download-manifests", "--base-url", server.url, "--redist", "cuda")
    assert result.exit_code == 5
    assert "names no redistrib_" in result.stderr


def test_a_source_without_anything(run: Run, server: FaultServer) -> None:
    result = run("download-manifests", "--base-url", server.url)
    assert result.exit_code == 3
    assert "not at this source: cublasmp, cuda" in result.stdout


def test_a_redist_asked_for_that_is_not_there(run: Run) -> None:
    result = run("download-manifests", "--base-url", SAMPLE, "--redist", "tensorrt")
    assert result.exit_code == 3
    assert "NVIDIA publishes no manifest for TensorRT" in result.stderr


def test_a_release_nobody_lists(run: Run) -> None:
    result = run("download-manifests", "--base-url", SAMPLE, "--version", "12.7.0")
    assert result.exit_code == 3
    assert "lists 12.7.0" in result.stderr
    assert "newest upstream: cuda 13.0.2" in result.stderr


def test_warnings_go_to_stderr_and_strict_refuses(run: Run, server: FaultServer) -> None:
    odd = manifest("12.9.1", platforms=("linux-riscv64",))
    server.add_manifests("cuda", {"12.9.1": odd})
    result = run("download-manifests", "--base-url", server.url)
    assert result.exit_code == 0
    assert "unknown platform, kept" in result.stderr
    held().unlink()
    strict = run("download-manifests", "--base-url", server.url, "--strict")
    assert strict.exit_code == 5
    assert not held().exists()


def test_another_products_manifest_is_a_warning(run: Run, server: FaultServer) -> None:
    server.add_manifests("cudnn", {"9.0.0": manifest("9.0.0", "cuda")})
    result = run("download-manifests", "--base-url", server.url)
    assert "names the product 'cuda', expected cudnn" in result.stderr


# -- usage


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--redist", "cuddn"], "did you mean cudnn", id="typo"),
        pytest.param(["--redist", "zzzzzzzz"], "known: cublasmp", id="nothing near"),
        pytest.param(["--version", "newest"], "is no version", id="no version"),
        pytest.param(["--min-version", "x"], "is no version", id="no bound"),
        pytest.param(["--version", "1.0", "--max-version", "2"], "do not go with", id="both"),
        pytest.param(["--min-version", "2", "--max-version", "1"], "is newer than", id="crossed"),
        pytest.param(["--base-url", "http://192.0.2.1/"], "without encryption", id="plain http"),
        pytest.param(["--base-url", "ftp://x/"], "ftp://", id="scheme"),
        pytest.param(["--base-url", "https://x/?token=secret"], "expected https://", id="query"),
        pytest.param(["--base-url", "https://"], "expected https://", id="no host"),
        pytest.param(["--base-url", "https://[::1"], "not a usable address", id="half an address"),
        pytest.param(["--base-url", "file://other/x"], "names no machine", id="file of a machine"),
        pytest.param(["--offline"], "--offline refuses", id="offline"),
        pytest.param(["x"], "URL requires MANIFEST_DIR", id="one positional"),
        pytest.param(["x", "y", "--redist", "cuda"], "combined with --redist", id="both forms"),
        pytest.param(["--jobs", "0"], "--jobs", id="jobs"),
        pytest.param(["--check", "--dry-run"], "cannot be combined", id="check and dry run"),
        pytest.param(["--base-url", "https:/u:sekrit@x/"], "two slashes", id="one slash"),
        pytest.param(["--base-url", "https:u:sekrit@x/"], "two slashes", id="no slash"),
        pytest.param(["--base-url", " https://u:sekrit/x@h/"], "not a usable", id="slash inside"),
        pytest.param(["--base-url", "https://h:99999/"], "expected https://", id="port"),
        pytest.param(["--base-url", "file://[x"], "names no machine", id="half a machine"),
        pytest.param(["file://[x", "out"], "names no machine", id="half a machine, positional"),
        pytest.param(["--base-url", "file://u:sekrit@x/"], "names no machine", id="file of a user"),
        pytest.param(["--base-url", "https://a..b/"], "not a usable address", id="no host name"),
    ],
)
def test_wrong_calls_exit_2_and_say_what_to_do(run: Run, arguments: list[str], says: str) -> None:
    result = run("download-manifests", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
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
def test_a_wrong_environment_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    result = run("download-manifests")
    assert result.exit_code == 2
    assert variable in result.stderr
    assert "sek" not in result.stderr


def test_the_manuals_call_works_where_the_variables_are_set(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDAREDIST_BASE_URL", "https://elsewhere.invalid")
    monkeypatch.setenv("CUDAREDIST_DATA_DIR", "elsewhere")
    assert run("download-manifests", SAMPLE / "compute/nvpl/redist", "out").exit_code == 0
    assert files() == {"out/redistrib_24.7.json"}


def test_positional_form_does_not_judge_by_the_folders_name(run: Run) -> None:
    Path("mirror").mkdir()
    Path("mirror/redistrib_12.9.1.json").write_bytes(manifest())
    result = run("download-manifests", "--strict", "mirror", "out")
    assert (result.exit_code, result.stderr) == (0, "")


def test_positional_form_shows_no_credentials(run: Run) -> None:
    result = run(
        "download-manifests", "--retries", "0", "http://u:sekrit@127.0.0.1:9", "out", "--json"
    )
    assert result.exit_code == 3
    assert "sekrit" not in result.stdout + result.stderr


@pytest.mark.parametrize("folder", ["x" * 300, "~nosuchuser/x"])
def test_a_folder_that_cannot_be(run: Run, folder: str) -> None:
    assert run("download-manifests", "--base-url", folder).exit_code == 3
    assert run("check", "--offline", "--data-dir", folder).exit_code == 2


def test_runs_with_different_caches_keep_each_others_records(
    server: FaultServer, start: Start, tmp_path: Path
) -> None:
    server.delay = 0.05
    for redist in ("cuda", "cudnn"):
        server.add_manifests(redist, {f"1.2.{n}": manifest(f"1.2.{n}", redist) for n in range(9)})
    runs = [
        start(
            *("download-manifests", "--base-url", server.url, "--version", "all"),
            *("--redist", redist, "--cache-dir", tmp_path / redist),
        )
        for redist in ("cuda", "cudnn")
    ]
    assert [process.wait() for process in runs] == [0, 0]
    recorded = json.loads((tmp_path / "data/manifests/lock.json").read_bytes())["redists"]
    assert {name: len(labels) for name, labels in recorded.items()} == {"cuda": 9, "cudnn": 9}


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_download_with_slow_disk_fetches_the_next_manifest(
    run: Run, cuda: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def both_requested() -> bool:
        return all(cuda.requests[f"{FOLDER}redistrib_12.9.{n}.json"] for n in (0, 1))

    def slow(_: int) -> None:
        if not wait_until(both_requested, seconds=20):
            raise OSError(5, "the disk was waited for")

    monkeypatch.setattr(os, "fsync", slow)
    result = run(
        *("download-manifests", "--base-url", cuda.url, "--redist", "cuda", "--version", "all"),
        *("--jobs", "1"),
    )
    assert result.exit_code == 0, result.stderr
    assert set(lock()["cuda"]) == {"12.9.0", "12.9.1"}


def test_download_with_stalled_disk_stops_fetching(
    run: Run, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = [f"1.2.{n}" for n in range(9)]
    server.add_manifests("cuda", {label: manifest(label) for label in labels})
    requests: list[int] = []

    def fetched() -> int:
        return sum(server.requests[f"{FOLDER}redistrib_{label}.json"] for label in labels)

    def stalled(_: int) -> None:
        if not requests:
            wait_until(lambda: fetched() > 4, seconds=1)
            requests.append(fetched())

    monkeypatch.setattr(os, "fsync", stalled)
    result = run(
        *("download-manifests", "--base-url", server.url, "--redist", "cuda", "--version", "all"),
        *("--jobs", "1"),
    )
    assert result.exit_code == 0
    assert requests[0] <= 4
    assert fetched() == 9


def test_download_with_full_disk_fails_each_manifest(
    run: Run, cuda: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("download-manifests", "--base-url", cuda.url, "--version", "all", "--json")
    assert result.exit_code == 3
    assert [outcome["status"] for outcome in report(result)["manifests"]] == ["failed", "failed"]
    assert "No space left on device" in result.stderr
    assert files() == set()


def test_download_with_a_bug_in_a_writer_reports_it(
    run: Run, cuda: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(ManifestFolder, "write", broken)
    result = run("download-manifests", "--base-url", cuda.url)
    assert result.exit_code == 70
    assert "ZeroDivisionError" in result.stderr


def test_a_lock_that_is_a_folder(run: Run, cuda: FaultServer) -> None:
    Path("data/manifests/lock.json/x").mkdir(parents=True)
    result = run("download-manifests", "--base-url", cuda.url, "--json")
    assert result.exit_code == 3
    assert "cannot read" in result.stderr


def test_a_lock_that_cannot_be_written_does_not_hide_the_report(
    run: Run, cuda: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Store, entries: object) -> bool:
        raise WriteError(self.lock_path, PermissionError(13, "Permission denied"))

    monkeypatch.setattr(Store, "update_lock", refuse)
    result = run("download-manifests", "--base-url", cuda.url, "--json")
    assert result.exit_code == 3
    assert report(result)["manifests"][0]["status"] == "written"
    assert "cannot write" in report(result)["errors"][0]["message"]
    assert "error: lock: cannot write" in result.stderr
    assert held().exists()


def test_dry_runs_report_says_the_code_it_exits_with(run: Run, cuda: FaultServer) -> None:
    new = ("--data-dir", "new")
    result = run("download-manifests", "--base-url", cuda.url, "--dry-run", "--json", *new)
    assert (result.exit_code, report(result)["exit_code"]) == (0, 0)


def test_a_folder_called_data_that_is_something_else_is_left_alone(run: Run) -> None:
    Path("data").mkdir()
    Path("data/mine.txt").touch()
    result = run("download-manifests", "--base-url", SAMPLE)
    assert result.exit_code == 2
    assert "./data is no data folder" in result.stderr
    assert files() == {"data/mine.txt"}


def test_a_folder_that_does_not_exist(run: Run) -> None:
    result = run("download-manifests", "--base-url", "/nowhere/at/all")
    assert result.exit_code == 3
    assert "no such folder" in result.stderr


def test_credentials_never_show(run: Run, cuda: FaultServer) -> None:
    url = cuda.url.replace("http://", "http://user:secret@")
    cuda.misbehave(LATEST, faults.status(403))
    result = run("download-manifests", "--base-url", url, "-vv", "--json")
    assert "secret" not in result.output + result.stderr
    assert all("Basic" in headers["Authorization"] for _, headers in cuda.headers)


def test_credentials_are_not_sent_elsewhere(run: Run, cuda: FaultServer) -> None:
    with FaultServer() as other:
        other.files["/x.json"] = cuda.files[LATEST]
        cuda.misbehave(LATEST, faults.redirect(f"{other.url}/x.json"))
        url = cuda.url.replace("http://", "http://user:secret@")
        assert run("download-manifests", "--base-url", url).exit_code == 0
    assert [headers.get("Authorization") for _, headers in other.headers] == [None]


def test_an_unwritable_cache_is_no_failure(run: Run, cuda: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run(
        "download-manifests", "--base-url", cuda.url, "--cache-dir", tmp_path / "file" / "cache"
    )
    assert result.exit_code == 0
    assert "going on without" in result.stderr


def test_json_report(run: Run, cuda: FaultServer) -> None:
    result = run("download-manifests", "--base-url", cuda.url, "--json")
    document = report(result)
    assert next(iter(document)) == "schema_version"
    assert document["exit_code"] == 0
    (outcome,) = document["manifests"]
    assert (outcome["redist"], outcome["label"], outcome["status"]) == ("cuda", "12.9.1", "written")


def test_a_broken_lock_is_refused_not_replaced(run: Run, cuda: FaultServer) -> None:
    Path("data/manifests").mkdir(parents=True)
    Path("data/manifests/lock.json").write_text('{"schema_version": 1, "redists": {"cuda": 1}}')
    result = run("download-manifests", "--base-url", cuda.url)
    assert result.exit_code == 5
    assert "redists.cuda" in result.stderr
    assert files() == {"data/manifests/lock.json"}


def test_leftovers_of_a_killed_run_are_removed(run: Run, cuda: FaultServer) -> None:
    held().parent.mkdir(parents=True)
    leftover = held().with_name(".redistrib_12.9.1.json.0a1b2c3d4e5f.tmp")
    leftover.write_bytes(b"half")
    run("download-manifests", "--base-url", cuda.url)
    assert not leftover.exists()


def test_two_runs_at_once_both_finish(cuda: FaultServer, start: Start, tmp_path: Path) -> None:
    cuda.delay = 0.05
    runs = [
        start("download-manifests", "--base-url", cuda.url, "--version", v)
        for v in ("12.9.0", "12.9.1")
    ]
    assert [process.wait() for process in runs] == [0, 0]
    recorded = json.loads((tmp_path / "data/manifests/lock.json").read_bytes())["redists"]["cuda"]
    assert sorted(recorded) == ["12.9.0", "12.9.1"]


UNREACHABLE = ["--base-url", "http://127.0.0.1:9"]


def _unlisted(server: FaultServer) -> list[str]:
    return ["--base-url", server.url, "--redist", "cuda", "--version", "1.2.3"]


def _without_manifests(server: FaultServer) -> list[str]:
    for path in [path for path in server.files if path.endswith(".json")]:
        server.misbehave(path, faults.status(404))
    return ["--base-url", server.url]


def _with_broken_manifests(server: FaultServer) -> list[str]:
    for path in [path for path in server.files if path.endswith(".json")]:
        server.misbehave(path, faults.body(b"{"))
    return ["--base-url", server.url]


def _without_listing(server: FaultServer) -> list[str]:
    server.files.clear()
    return ["--base-url", server.url, "--redist", "cuda"]


def _unreachable(_: FaultServer) -> list[str]:
    return UNREACHABLE


BRINGS_NOTHING = pytest.mark.parametrize(
    "prepare",
    [_unreachable, _unlisted, _without_manifests, _with_broken_manifests, _without_listing],
)


@BRINGS_NOTHING
@pytest.mark.parametrize("command", ["download-manifests", "bump"])
def test_run_that_brings_nothing_creates_nothing(
    run: Run, cuda: FaultServer, prepare: Callable[[FaultServer], list[str]], command: str
) -> None:
    options = [*prepare(cuda), "--retries", "0"]
    if command == "bump" and "--redist" not in options:
        options += ["--redist", "cuda"]
    assert run(command, *options).exit_code in {3, 5}
    assert not list(Path().iterdir())


@BRINGS_NOTHING
def test_run_that_brings_nothing_leaves_a_data_folder_as_it_was(
    run: Run, cuda: FaultServer, prepare: Callable[[FaultServer], list[str]]
) -> None:
    Path("data/policy").mkdir(parents=True)
    options = [*prepare(cuda), "--retries", "0", "--data-dir", "data"]
    assert run("download-manifests", *options).exit_code in {3, 5}
    assert [str(path) for path in Path().rglob("*")] == ["data", "data/policy"]


def test_positional_form_that_brings_nothing_creates_nothing(run: Run, cuda: FaultServer) -> None:
    _without_manifests(cuda)
    url = f"{cuda.url}/compute/cuda/redist"
    assert run("download-manifests", "--retries", "0", url, "new/folder").exit_code == 3
    assert not list(Path().iterdir())


def test_shipped_data_is_read_after_a_run_that_brought_nothing(run: Run) -> None:
    before = run("versions", "--json").stdout
    assert run("download-manifests", *UNREACHABLE, "--retries", "0").exit_code == 3
    assert run("versions", "--json").stdout == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_run_that_is_ended_before_the_first_manifest_creates_nothing(
    cuda: FaultServer, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    for path in [path for path in cuda.files if path.endswith(".json")]:
        cuda.misbehave(path, faults.silent)
    process = start("download-manifests", "--base-url", cuda.url, "--redist", "cuda")
    deadline = time.monotonic() + 90
    while not cuda.count(".json"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -9)
    assert not (tmp_path / "data").exists()


def test_run_that_waited_for_one_that_brought_nothing_makes_the_folder_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "data"
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        begin = first.enter_context(writing(root))
        waiting = threading.Thread(target=second.enter_context(writing(root)))
        begin()
        waiting.start()
        while "waiting for another run" not in caplog.text:
            assert waiting.is_alive()
            time.sleep(0.01)
        first.close()
        waiting.join(60)
        (root / "file").touch()
    assert (root / "file").exists()


def test_run_without_writes_keeps_empty_folders_of_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "data/manifests/cuda"
    with writing(tmp_path / "data"):
        folder.mkdir(parents=True)
    assert folder.is_dir()
