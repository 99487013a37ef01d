"""Tests of the feature files and the cache of process-manifests."""

import gzip
import json
import lzma
import os
import time
from pathlib import Path
from typing import BinaryIO

import pytest
from conftest import Run
from support import binaries
from support.patching import Patch
from support.processing import CCCL, FEATURES, archives_read, cached, entry, withdraw
from support.releases import packed, publish, put, release
from support.running import expect_output, report
from support.server import FaultServer

from cudaredist.archives.members import Members
from cudaredist.archives.open_archive import open_archive
from cudaredist.store import archive_service

# -- feature files


def test_next_archive_is_downloaded_while_one_is_read(
    cuda_archives: FaultServer, process: Run, patch: Patch
) -> None:
    started: list[str] = []

    def open_slowly(name: str, file: BinaryIO) -> Members:
        started.append(name)
        deadline = time.monotonic() + 300
        # The first archive is read until another one was downloaded, or two were requested.
        while started == [name] and archives_read(cuda_archives) < 3:
            assert time.monotonic() < deadline, "no other archive was requested"
            time.sleep(0.01)
        return open_archive(name, file)

    patch(archive_service, "open_archive", open_slowly)
    assert process("--jobs", 2).exit_code == 0
    assert len(started) == 5


def test_feature_file_describes_every_archive(cuda_archives: FaultServer, process: Run) -> None:
    result = expect_output(process(), 0)
    size = sum(len(cuda_archives.files[path]) for path in cuda_archives.requests)
    assert result.stdout == (
        "cuda  12.9.1  written  5 of 5 archives examined\n"
        f"archives: 5 examined; {size:,} bytes read\n"
    )
    features = entry("cuda_cudart", "linux-x86_64")
    assert features["status"] == "examined"
    assert features["machine"] == "x86_64"
    assert {name: size["files"] for name, size in features["outputs"].items()} == {
        "include": 1,
        "lib": 1,
        "out": 1,
        "static": 1,
    }
    assert features["libraries"] == [
        {
            "path": "lib/libcudart.so.12.9.79",
            "output": "lib",
            "soname": "libcudart.so.12",
            "links": ["lib/libcudart.so", "lib/libcudart.so.12"],
            "needed": ["libc.so.6"],
            "runpath": [],
            "stub": False,
            "glibc": "2.17",
            "libstdcxx": None,
        }
    ]
    assert entry("cuda_cudart", "windows-x86_64")["libraries"][0]["soname"] == "cudart64_12.dll"


def test_second_run_sends_no_request_and_unpacks_nothing(
    cuda_archives: FaultServer, process: Run, patch: Patch
) -> None:
    opened = patch.count(f"{archive_service.__name__}.open_archive")
    process()
    before, requests, number = FEATURES.stat(), cuda_archives.requests.copy(), opened.number
    result = process()
    assert opened.number == number
    assert "unchanged  5 of 5" in result.stdout
    assert "archives: 5 known; 0 bytes read" in result.stdout
    assert cuda_archives.requests == requests
    assert FEATURES.stat().st_mtime_ns == before.st_mtime_ns


def test_feature_file_replaces_missing_cache(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    process()
    requests = cuda_archives.requests.copy()
    before = FEATURES.read_bytes()
    result = process("--cache-dir", tmp_path / "other")
    assert "unchanged" in result.stdout
    assert cuda_archives.requests == requests
    assert FEATURES.read_bytes() == before


def test_fill_cache_reads_archives_with_known_features(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    process()
    before = FEATURES.read_bytes()
    other = ("--cache-dir", tmp_path / "other/cache")
    fill = ("--fill-cache", "--package", "cuda_cccl", *other)
    assert process(*fill, "--check").exit_code == 1
    assert not (tmp_path / "other/cache/facts").exists()
    result = process(*fill)
    assert "archives: 2 examined, 3 known" in result.stdout
    assert archives_read(cuda_archives) == 7
    assert len(cached(tmp_path / "other")) == 2
    assert process(*fill).exit_code == 0
    assert archives_read(cuda_archives) == 7
    assert FEATURES.read_bytes() == before


def test_failed_fill_cache_keeps_features(cuda_archives: FaultServer, process: Run) -> None:
    process()
    before = FEATURES.read_bytes()
    withdraw(cuda_archives, "cuda_cccl")
    assert process("--fill-cache", "--cache-dir", "other").exit_code == 3
    assert FEATURES.read_bytes() == before


def test_feature_file_of_other_rules_is_rebuilt_from_facts(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    process()
    good, requests = FEATURES.read_bytes(), cuda_archives.requests.copy()
    document = json.loads(good)
    document["rules"] += 1
    document["packages"] = {}
    FEATURES.write_text(json.dumps(document))
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == good
    assert cuda_archives.requests == requests


@pytest.mark.parametrize("junk", [b"", b"{", b"[1]", b'{"machine": null}'])
def test_broken_cache_entries_are_ignored(
    cuda_archives: FaultServer, process: Run, tmp_path: Path, junk: bytes
) -> None:
    process()
    good = FEATURES.read_bytes()
    FEATURES.unlink()
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(junk)
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == good


def test_temporary_files_of_killed_runs_are_removed(
    cuda_archives: FaultServer, process: Run, tmp_path: Path
) -> None:
    sha256 = "ab" * 32
    temporary_files = [
        Path("data/features/cuda/.feature_12.9.1.json.0123456789ab.tmp"),
        tmp_path / f"cache/facts/1/ab/.{sha256}.0123456789ab.tmp",
        tmp_path / f"cache/archives/ab/{sha256}.tar.xz.part",
    ]
    others = [
        Path("data/features/cuda/.feature_12.9.1.json.mine.tmp"),
        tmp_path / "cache/notes.tmp",
        tmp_path / "cache/archives/ab/download.part",
    ]
    for path in (*temporary_files, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
        os.utime(path, (0, 0))
    assert process().exit_code == 0
    assert not any(path.exists() for path in temporary_files)
    assert all(path.exists() for path in others)


def test_archive_with_two_paths_is_tried_at_both(server: FaultServer, process: Run) -> None:
    files = release("12.9.0", {"cuda_cccl": {"linux-x86_64": CCCL["linux-x86_64"]}})
    document = json.loads(files["redistrib_12.9.0.json"])
    document["release_label"] = "12.9.1"
    archive = document["cuda_cccl"]["linux-x86_64"]
    old, archive["relative_path"] = archive["relative_path"], "moved/cccl.tar.xz"
    archive["size"] = "1"
    files["redistrib_12.9.1.json"] = json.dumps(document).encode()
    files["moved/cccl.tar.xz"] = files.pop(old)
    publish(server, files)
    assert process().exit_code == 0


def test_archive_in_pool_is_read(server: FaultServer, run: Run) -> None:
    files = release("12.9.1", {"libx": {"linux-x86_64": {"LICENSE": b"x"}}})
    document = json.loads(files["redistrib_12.9.1.json"])
    archive = document["libx"]["linux-x86_64"]
    old, archive["relative_path"] = archive["relative_path"], "../../../pool/x/libx.tar.xz"
    server.files["/pool/x/libx.tar.xz"] = files.pop(old)
    put(Path("m"), {"redistrib_12.9.1.json": json.dumps(document).encode()})
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": json.dumps(document).encode()})
    assert run("process-manifests", "--pre", "--base-url", server.url).exit_code == 0
    expect_output(run("process-manifests", f"{server.url}/compute/cuda/redist/", "m"), 0)
    Path("m/feature_12.9.1.json").unlink()
    result = run("process-manifests", "--cache-dir", "c", f"{server.url}/elsewhere", "m")
    assert result.exit_code == 3
    assert "outside the source" in result.stderr


def test_shared_archive_is_read_once(server: FaultServer, process: Run) -> None:
    one = release("12.9.0", {"cuda_cccl": {"linux-x86_64": CCCL["linux-x86_64"]}})
    document = json.loads(one["redistrib_12.9.0.json"])
    document["release_label"] = "12.9.1"
    two = one | {"redistrib_12.9.1.json": json.dumps(document).encode()}
    publish(server, two)
    assert process().exit_code == 0
    assert archives_read(server) == 1
    assert FEATURES.exists()
    assert FEATURES.with_name("feature_12.9.0.json").exists()


def test_machine_of_other_platform_is_noted(server: FaultServer, process: Run) -> None:
    files = {"lib/libx.so": binaries.elf(machine="aarch64", soname="libx.so")}
    publish(server, release("12.9.1", {"libx": {"linux-x86_64": files}}))
    process()
    note = "binaries for aarch64, which linux-x86_64 archives do not contain"
    assert entry("libx", "linux-x86_64")["notes"] == [note]
    process()
    assert entry("libx", "linux-x86_64")["notes"] == [note]


# -- notes


def test_notes_of_archives_are_counted_and_can_be_required_absent(
    server: FaultServer, process: Run, run: Run
) -> None:
    files: dict[str, bytes | str] = {"LICENSE": b"x", "lib/liba.so": "gone.so", "lib/b.so": "none"}
    publish(server, release("12.9.1", {"cuda_cudart": {"linux-x86_64": files}}))
    result = expect_output(process("--json"), 0)
    assert report(result)["manifests"][0]["notes"] == 2
    assert report(process("--json"))["manifests"][0]["notes"] is None
    Path("data/features/cuda/feature_12.9.1.json").unlink()
    assert "2 notes\n" in process().stdout
    call = ("check", "--offline", "--json", "--no-shipped-data")
    kinds = {one["kind"] for one in report(run(*call))["findings"]}
    assert "archive-notes" not in kinds
    findings = report(run(*call, "--archive-notes"))["findings"]
    (notes,) = [one for one in findings if one["kind"] == "archive-notes"]
    assert (notes["exit_code"], notes["release"], notes["redist"]) == (1, "12.9.1", "cuda")
    assert notes["details"] == [
        "cuda_cudart linux-x86_64: dangling link: lib/liba.so",
        "cuda_cudart linux-x86_64: dangling link: lib/b.so",
    ]


# -- early manifests


EARLY = {
    "release_date": "2020-07-07",
    "fabricmanager": {"450.51.05": {"linux-x86_64": "fm/linux-x86_64/fm-450.51.05.tar.gz"}},
}


def test_early_manifest_requires_allow_unverified(
    server: FaultServer, process: Run, tmp_path: Path
) -> None:
    tar = lzma.decompress(packed("fm.tar.xz", {"LICENSE": b"x"}))
    publish(
        server,
        {
            "redistrib_11.0.3.json": json.dumps(EARLY).encode(),
            "fm/linux-x86_64/fm-450.51.05.tar.gz": gzip.compress(tar, mtime=0),
        },
    )
    path = Path("data/features/cuda/feature_11.0.3.json")
    result = expect_output(process("--json"), 3)
    assert report(result)["archives"][0]["reason"] == "the manifest states no hash"
    assert not path.exists()
    assert process("--allow-unverified", "--max-download", "1kB").exit_code == 3
    assert archives_read(server) == 0
    expect_output(process("--allow-unverified"), 0)
    features = entry("fabricmanager", "linux-x86_64", path)
    assert features["status"] == "examined"
    assert features["verified"] is False
    assert features["sha256"] is None
    assert not (tmp_path / "cache" / "facts").exists()
    requests = server.requests.copy()
    for options in ((), ("--allow-unverified",), ("--check",), ("--fill-cache", "--check")):
        assert process(*options).exit_code == 0
    assert server.requests == requests
