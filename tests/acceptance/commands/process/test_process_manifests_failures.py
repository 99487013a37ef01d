"""Tests of process-manifests with failing servers, broken archives and full disks."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import server as faults
from support.archives import tar_member, tar_of, xz
from support.patching import Patch, patching
from support.processing import (
    FEATURES,
    FOLDER,
    LINUX,
    PACKAGES,
    archives_read,
    cached,
    entry,
    withdraw,
)
from support.releases import Files, Packages, packed, publish, put, release
from support.running import expect_error, expect_output, report
from support.server import FaultServer

from cudaredist.commands.process import feature_file
from cudaredist.store import archive_service


def test_missing_archives_are_reported_and_processed_later(
    cuda_archives: FaultServer, process: Run
) -> None:
    expect_output(process("--json"), 0)
    whole = FEATURES.read_bytes()
    shutil.rmtree("data/features")
    gone = [path for path in cuda_archives.files if "cuda_cudart" in path]
    for path in gone:
        del cuda_archives.files[path]
    result = expect_output(process("--cache-dir", "other"), 3, "2 of 5 archives examined  3 failed")
    assert result.stderr.count("404 Not Found") == 3
    lost = entry("cuda_cudart", "linux-x86_64")
    assert (lost["status"], lost["reason"]) == ("not-examined", "failed: not-found")
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == whole


WRONG = packed("other.tar.xz", {"LICENSE": b"other"})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda good: good + b"x", id="too long"),
        pytest.param(lambda good: good[:-1], id="too short"),
        pytest.param(lambda good: WRONG + bytes(len(good) - len(WRONG)), id="another archive"),
    ],
)
def test_archive_with_wrong_bytes_exits_4(
    cuda_archives: FaultServer, process: Run, tmp_path: Path, data: Any
) -> None:
    cuda_archives.files[LINUX] = data(cuda_archives.files[LINUX])
    result = expect_output(process("--json"), 4)
    failed = [a for a in report(result)["archives"] if a["status"] == "failed"]
    assert [a["error"]["kind"] for a in failed] == ["archive-mismatch"]
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "not-examined"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"
    assert len(cached(tmp_path)) == 4


def test_invalid_archive_with_matching_hash_exits_5(server: FaultServer, process: Run) -> None:
    files = release("12.9.1", PACKAGES)
    path = LINUX.removeprefix(FOLDER)
    document = json.loads(files["redistrib_12.9.1.json"])
    about = document["cuda_cudart"]["linux-x86_64"]
    about["size"] = "5"
    about["sha256"] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    files |= {path: b"hello", "redistrib_12.9.1.json": json.dumps(document).encode()}
    publish(server, files)
    expect_output(process(), 5)
    assert entry("cuda_cudart", "linux-x86_64")["reason"] == "failed: invalid-archive"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"


@pytest.mark.slow
@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(faults.reset_in_the_middle, id="reset"),
        pytest.param(faults.truncated, id="truncated"),
        pytest.param(faults.status(503), id="503"),
        pytest.param(faults.status(429, Retry_After="0"), id="429"),
        pytest.param(faults.breaking_after(100), id="breaks once"),
        pytest.param(faults.breaking_after(100, resumable=False), id="breaks, no ranges"),
        pytest.param(faults.stalling_after(100), id="stalls"),
        pytest.param(faults.silent, id="silent"),
        pytest.param(faults.header_byte_by_byte, id="header byte by byte"),
        pytest.param(faults.chunk_extension_for_ever, id="chunk extension for ever"),
        pytest.param(faults.never_ending_of_right_length, id="byte by byte"),
    ],
)
def test_transient_failures_are_retried(
    cuda_archives: FaultServer, process: Run, behaviour: Any
) -> None:
    cuda_archives.misbehave(LINUX, behaviour, times=1)
    # With a short limit a good response may come too late, but not twenty times in a row.
    expect_output(process("--timeout", 0.5, "--retries", 20), 0)
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


BIG = f"{FOLDER}libx/linux-x86_64/libx-linux-x86_64-12.9.1.5-archive.tar.xz"


@pytest.fixture
def big(server: FaultServer, run: Run) -> FaultServer:
    """Serve an archive of some 400 kB."""
    files: Files = {"lib/noise": random.Random(1).randbytes(400_000)}
    publish(server, release("12.9.1", {"libx": {"linux-x86_64": files}}))
    return server


def test_download_resumes_after_each_break(big: FaultServer, process: Run) -> None:
    big.misbehave(BIG, faults.breaking_after(70_000))
    size = len(big.files[BIG])
    assert process("--retries", 1).exit_code == 0
    ranges = [headers.get("Range") for path, headers in big.headers if path == BIG]
    assert ranges == [None, *(f"bytes={start}-" for start in range(70_000, size, 70_000))]


def test_download_without_progress_fails_after_retries(big: FaultServer, process: Run) -> None:
    big.misbehave(BIG, faults.breaking_after(1000))
    assert process("--retries", 2).exit_code == 3
    assert big.count(".tar.xz") == 3


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(faults.another_part, id="another part"),
        pytest.param(faults.status(416), id="416"),
        pytest.param(faults.body(b"whole"), id="as a whole"),
    ],
)
def test_download_restarts_after_unsuitable_range_response(
    big: FaultServer, process: Run, again: Any
) -> None:
    answers = iter([faults.breaking_after(70_000), again])

    def behave(handler: faults.Handler, data: bytes) -> None:
        next(answers)(handler, data)

    big.misbehave(BIG, behave, times=2)
    assert process("--retries", 2).exit_code == 0


def test_broken_download_without_validator_restarts(big: FaultServer, process: Run) -> None:
    good = big.files[BIG]

    def wrong_then_right(handler: faults.Handler, data: bytes) -> None:
        big.files[BIG] = good
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(good)))
        handler.end_headers()
        handler.wfile.write(bytes(100_000))
        handler.close_connection = True

    big.misbehave(BIG, wrong_then_right, times=1)
    assert process("--retries", 2).exit_code == 0
    assert [headers.get("Range") for _, headers in big.headers] == [None, None]


def test_failed_run_keeps_earlier_features(cuda_archives: FaultServer, process: Run) -> None:
    process()
    good = FEATURES.read_bytes()
    withdraw(cuda_archives, "cuda_cudart")
    document = json.loads(good)
    document["packages"]["cuda_cccl"]["archives"][0] |= {"notes": ["edited"]}
    FEATURES.write_text(json.dumps(document))
    expect_output(process("--cache-dir", "other", "--retries", 0), 0)
    assert archives_read(cuda_archives) == 5


def test_archive_changed_during_resume_is_downloaded_again(
    cuda_archives: FaultServer, process: Run
) -> None:
    good = cuda_archives.files[LINUX]

    def change(handler: faults.Handler, data: bytes) -> None:
        cuda_archives.files[LINUX] = bytes(len(good)) if data == good else good
        faults.breaking_after(100)(handler, data)

    cuda_archives.misbehave(LINUX, change, times=2)
    assert process("--retries", 3).exit_code == 0
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        pytest.param(faults.status(404), 3, id="404"),
        pytest.param(faults.status(403), 3, id="403"),
        pytest.param(faults.status(500), 3, id="500"),
        pytest.param(faults.truncated, 3, id="always truncated"),
        pytest.param(faults.truncated_with_matching_length, 4, id="truncated with matching length"),
        pytest.param(faults.gzipped, 3, id="encoded"),
        pytest.param(faults.never_ending, 4, id="a megabyte announced"),
        pytest.param(faults.two_gigabytes(with_length=False), 4, id="2 GB without a length"),
        pytest.param(faults.redirect("http://nonsense.invalid/"), 3, id="redirect to http"),
        pytest.param(faults.body(b"<html>hello</html>"), 4, id="HTML"),
    ],
)
def test_permanent_failure_fails_one_archive_only(
    cuda_archives: FaultServer, process: Run, behaviour: Any, code: int
) -> None:
    cuda_archives.misbehave(LINUX, behaviour)
    expect_output(process("--retries", 0), code)
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "not-examined"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"


def hostile(good: bytes) -> bytes:
    """Return another tar with the size of a good archive."""
    return xz(tar_of(tar_member("../../etc/passwd", b"hostile"))).ljust(len(good), b"\0")


@pytest.mark.parametrize("options", [(), ("--keep-archives",), ("--jobs", "1")])
def test_archive_with_wrong_hash_is_never_opened(
    cuda_archives: FaultServer, process: Run, options: tuple[str, ...], patch: Patch
) -> None:
    cuda_archives.files[LINUX] = hostile(cuda_archives.files[LINUX])
    opened = patch.count(f"{archive_service.__name__}.open_archive")
    result = process("--package", "cuda_cudart", "--platform", "linux-x86_64", *options)
    expect_error(result, 4, "SHA-256")
    assert opened.number == 0
    assert process("--package", "cuda_cudart", "--platform", "linux-sbsa").exit_code == 0
    assert opened.number == 1


def test_second_source_is_used_after_wrong_bytes(
    cuda_archives: FaultServer, run: Run, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    put(mirror, {path.lstrip("/"): data for path, data in cuda_archives.files.items()})
    cuda_archives.files[LINUX] = bytes(len(cuda_archives.files[LINUX]))
    result = run("process-manifests", "--base-url", cuda_archives.url, "--base-url", mirror)
    assert result.exit_code == 0
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


def test_unreachable_source_is_skipped_after_four_failures(run: Run, short_pauses: None) -> None:
    packages: Packages = {
        f"package_{n}": {"linux-x86_64": {"LICENSE": b"%d" % n}} for n in range(40)
    }
    files = release("12.9.1", packages)
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": files["redistrib_12.9.1.json"]})
    options = ("--base-url", "http://127.0.0.1:1", "--retries", 1, "--jobs", 2)
    result = run("process-manifests", *options)
    assert result.exit_code == 3
    assert "cannot connect" in result.stderr
    assert "more: skipped after 4 consecutive failures" in result.stderr


def test_fail_fast_stops_and_writes_no_features(cuda_archives: FaultServer, process: Run) -> None:
    largest = max(
        (p for p in cuda_archives.files if not p.endswith(".json")),
        key=lambda p: len(cuda_archives.files[p]),
    )
    cuda_archives.misbehave(largest, faults.status(404))
    result = expect_output(process("--fail-fast", "--jobs", 1, "--json"), 3)
    statuses = [a["status"] for a in report(result)["archives"]]
    assert statuses == ["failed"] * 5
    assert not FEATURES.exists()


def test_archive_with_oversized_features_fails_alone(
    cuda_archives: FaultServer, process: Run
) -> None:
    with patching() as patch:
        # Only the archive with a library has more.
        patch(feature_file, "_FEATURES_LIMIT", 760)
        result = process("--json")
    assert result.exit_code == 5
    failed = [a for a in report(result)["archives"] if a["status"] == "failed"]
    assert [(a["package"], a["platform"]) for a in failed] == [("cuda_cudart", "linux-x86_64")]
    assert "not a valid feature entry" in failed[0]["error"]["message"]
    assert entry("cuda_cudart", "linux-x86_64")["reason"] == "failed: invalid"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"
    assert entry("cuda_cccl", "linux-x86_64")["status"] == "examined"

    assert process().exit_code == 0
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


def test_full_disk_is_reported_and_leaves_no_partial_file(
    cuda_archives: FaultServer, process: Run, patch: Patch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    patch(os, "fsync", full)
    expect_error(process(), 3, "No space left on device")
    assert [path for path in Path("data").rglob("*") if path.is_file()] == [
        Path("data/manifests/cuda/redistrib_12.9.1.json")
    ]


def test_offline_run_accepts_folders_only(
    cuda_archives: FaultServer, run: Run, tmp_path: Path
) -> None:
    assert run("process-manifests", "--base-url", cuda_archives.url, "--offline").exit_code == 2
    put(tmp_path / "mirror", {path.lstrip("/"): data for path, data in cuda_archives.files.items()})
    expect_output(run("process-manifests", "--base-url", tmp_path / "mirror", "--offline"), 0)
