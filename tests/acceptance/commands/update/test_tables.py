"""Tests of update-nvcc-compat, update-gpus and explain on small releases."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support import server as faults
from support.headers import host_config, math_functions
from support.patching import Patch
from support.ptxas import PROFILES_11_8, PROFILES_12_9, PROFILES_13_4, ptxas
from support.releases import Files, publish, put, release
from support.running import expect_error, expect_output, report
from support.server import FaultServer
from support.wheels import put_wheel

from cudaredist.features import extracts
from cudaredist.primitives import sha256_of
from cudaredist.store import archive_service as archives

FOLDER = "/compute/cuda/redist/"
HEADER = host_config(gcc=14, clang=19)
MATH = math_functions()
COMPAT, GPUS = Path("data/nvcc_compat.json"), Path("data/gpus.json")


def nvcc(header: bytes = HEADER, profiles: object = PROFILES_12_9) -> dict[str, Files]:
    """Return cuda_nvcc for two platforms, with a larger second archive."""
    linux = {
        "include/crt/host_config.h": header,
        "include/crt/math_functions.h": MATH,
        "bin/ptxas": ptxas(profiles),  # type: ignore[arg-type]
    }
    return {"linux-x86_64": linux, "linux-sbsa": {**linux, "bin/nvcc": os.urandom(9000)}}


def archive_of(server: FaultServer, label: str, part: str = "linux-x86_64") -> str:
    paths = [p for p in server.files if f"-{part}-{label}." in p]
    assert len(paths) == 1, paths
    return paths[0]


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def archive_requests(server: FaultServer) -> Mapping[str, int]:
    return {path: count for path, count in server.requests.items() if "/cuda_" in path}


@pytest.fixture
def cuda(server: FaultServer, run: Run) -> FaultServer:
    """Serve two CUDA releases, with the header in different packages."""
    publish(server, release("12.9.1", {"cuda_nvcc": nvcc()}))
    publish(
        server,
        release(
            "13.4.0",
            {
                "cuda_nvcc": {
                    "linux-x86_64": {
                        "bin/ptxas": ptxas(PROFILES_13_4),
                        "bin/nvcc": os.urandom(3000),
                    }
                },
                "cuda_crt": {
                    "linux-x86_64": {
                        "include/crt/host_config.h": host_config(gcc=16, clang=22),
                        "include/crt/math_functions.h": math_functions("__THROW", "noexcept"),
                    }
                },
            },
        ),
    )
    return server


@pytest.fixture
def nvcc_table(run: Run, server: FaultServer) -> Run:
    """Run update-nvcc-compat against the server."""
    options = ("--base-url", server.url, "--retries", 0)
    return lambda *more: run("update-nvcc-compat", *options, *more)


@pytest.fixture
def gpu_table(run: Run, server: FaultServer) -> Run:
    """Run update-gpus against the server."""
    options = ("--base-url", server.url, "--retries", 0)
    return lambda *more: run("update-gpus", *options, *more)


# -- after process-manifests


def test_tables_after_process_manifests_request_nothing(
    cuda: FaultServer,
    nvcc_table: Run,
    gpu_table: Run,
    run: Run,
    tmp_path: Path,
    patch: Patch,
) -> None:
    nvcc_table()
    gpu_table()
    tables_alone = COMPAT.read_bytes(), GPUS.read_bytes()
    opened = patch.count(f"{archives.__name__}.open_archive")
    shutil.rmtree(tmp_path / "cache")
    COMPAT.unlink()
    GPUS.unlink()
    result = expect_output(run("process-manifests", "--base-url", cuda.url, "--retries", 0), 0)
    cuda.requests.clear()
    number = opened.number
    for table in (nvcc_table, gpu_table):
        result = expect_output(table("--json"), 0)
        assert report(result)["archives_read"] == 0
        assert report(result)["fetched_bytes"] == 0
    assert not cuda.requests
    assert opened.number == number
    assert (COMPAT.read_bytes(), GPUS.read_bytes()) == tables_alone


def test_tables_after_one_platform_read_no_other(
    cuda: FaultServer, nvcc_table: Run, gpu_table: Run, run: Run
) -> None:
    only = ("--version", "12.9.1", "--platform", "linux-sbsa")  # the larger archive
    assert run("process-manifests", "--base-url", cuda.url, *only).exit_code == 0
    for table in (nvcc_table, gpu_table):
        assert (
            report(expect_output(table("--version", "12.9.1", "--json"), 0))["archives_read"] == 0
        )


def test_process_manifests_after_table_update_reads_no_archive_twice(
    cuda: FaultServer, nvcc_table: Run, run: Run
) -> None:
    nvcc_table()
    read_for_table = archive_of(cuda, "12.9.1")
    cuda.requests.clear()
    expect_output(run("process-manifests", "--base-url", cuda.url, "--retries", 0), 0)
    assert read_for_table not in cuda.requests
    assert archive_of(cuda, "12.9.1", "linux-sbsa") in cuda.requests


# -- table contents


def test_nvcc_table_contains_compilers_and_sources_of_local_releases(
    cuda: FaultServer, nvcc_table: Run, run: Run
) -> None:
    expect_output(nvcc_table(), 0)
    releases = read(COMPAT)["releases"]
    assert releases["12.9.1"]["compilers"]["gcc"]["max"] == 14
    assert releases["12.9.1"]["compilers"]["gcc"]["min_basis"] == "documented"
    assert releases["13.4.0"]["compilers"]["clang"]["max"] == 22
    archive = cuda.files[archive_of(cuda, "12.9.1")]
    assert releases["12.9.1"]["source"] == {
        "channel": "redist",
        "package": "cuda_nvcc",
        "version": "12.9.1.5",
        "archive_sha256": sha256_of(archive),
        "path": "include/crt/host_config.h",
        "file_sha256": sha256_of(HEADER),
    }
    assert releases["12.9.1"]["glibc"] == {
        "newest": "2.40",
        "clashes": ["sinpi", "sinpif"],
        "path": "include/crt/math_functions.h",
        "file_sha256": sha256_of(MATH),
    }
    assert releases["13.4.0"]["source"]["package"] == "cuda_crt"
    assert releases["13.4.0"]["nvcc"] == "13.4.0.5"
    assert releases["13.4.0"]["glibc"]["newest"] == "2.44"
    assert releases["13.4.0"]["glibc"]["clashes"] == []
    assert releases["11.4"]["compilers"]["gcc"]["max_basis"] == "documented"
    assert run("validate", COMPAT).exit_code == 0
    assert not [path for path in cuda.requests if "linux-sbsa" in path], "not the smallest"


def test_gpu_table_contains_capabilities_of_local_releases(
    cuda: FaultServer, gpu_table: Run, run: Run
) -> None:
    expect_output(gpu_table(), 0)
    table = read(GPUS)
    assert table["capabilities"]["7.0"]["last_cuda"] == "12.9"
    assert table["capabilities"]["9.0a"]["last_cuda"] is None
    assert table["capabilities"]["9.0a"]["family"] == "Hopper"
    assert table["sources"]["13.4.0"]["path"] == "bin/ptxas"
    assert run("validate", GPUS).exit_code == 0


def test_table_update_prints_diff_first(cuda: FaultServer, nvcc_table: Run) -> None:
    nvcc_table("--version", "12.9.1")
    result = nvcc_table()
    assert result.stdout.startswith("--- a/nvcc_compat.json\n+++ b/nvcc_compat.json\n@@ ")
    assert '+    "13.4.0": {' in result.stdout
    assert '-    "12.9.1": {' not in result.stdout
    assert result.stdout.splitlines()[-1].startswith("nvcc_compat.json: written; 1 archive read, ")


def test_new_table_is_summarized_by_release(
    cuda: FaultServer, nvcc_table: Run, gpu_table: Run
) -> None:
    for update, bounds in (
        (nvcc_table, "clang 7 to 19, gcc 6 to 14, "),
        (gpu_table, "7.0 to 10.3"),
    ):
        lines = update("--check").stdout.splitlines()
        assert [line.split()[0] for line in lines[:-1]] == ["12.9.1", "13.4.0"]
        assert bounds in lines[0]
        document = report(update("--json"))
        assert len(document["diff"]) > len(lines)
        assert [outcome["bounds"] for outcome in document["releases"]] == [
            line.split("  ")[-1].strip() for line in lines[:-1]
        ]


def test_quiet_update_prints_findings_only(cuda: FaultServer, nvcc_table: Run) -> None:
    assert nvcc_table("-q", "--check").output == "nvcc_compat.json: would write\n"
    assert nvcc_table("-q").output == ""
    publish(cuda, release("12.9.1", {"cuda_nvcc": nvcc(host_config(gcc=13, clang=19))}))
    result = nvcc_table("-q")
    assert result.stdout == "changed: 12.9.1: gcc max was 14 and is 13\n"
    assert result.stderr.startswith("error: skipped CUDA 12.9.1")


def test_check_after_updates_reports_no_missing_table(
    cuda: FaultServer, nvcc_table: Run, gpu_table: Run, run: Run
) -> None:
    check = ("check", "--offline", "--no-shipped-data", "--data-dir", "data", "--json")
    before = report(run(*check))["findings"]
    hints = {f["path"]: f["hint"] for f in before if f["kind"] == "table-missing"}
    assert hints == {
        "nvcc_compat.json": "run `cudaredist update-nvcc-compat --data-dir data`",
        "gpus.json": "run `cudaredist update-gpus --data-dir data`",
    }
    nvcc_table("--version", "12.9.1")
    gpu_table("--version", "12.9.1")
    lacking = [f for f in report(run(*check))["findings"] if f["hint"]]
    assert {f["hint"] for f in lacking if f["kind"] == "table-lacks"} == {
        "run `cudaredist update-nvcc-compat --data-dir data`",
        "run `cudaredist update-gpus --data-dir data`",
    }
    nvcc_table()
    gpu_table()
    kinds = {f["kind"] for f in report(run(*check))["findings"]}
    assert not kinds & {"table-missing", "table-lacks", "not-canonical", "invalid"}


def test_tables_are_read_from_windows_archive(
    server: FaultServer, nvcc_table: Run, gpu_table: Run
) -> None:
    files = {
        "include/crt/host_config.h": HEADER.replace(b"\n", b"\r\n"),
        "bin/ptxas.exe": ptxas(platform="windows"),
    }
    publish(server, release("12.9.1", {"cuda_nvcc": {"windows-x86_64": files}}))
    assert nvcc_table().exit_code == 0
    assert read(COMPAT)["releases"]["12.9.1"]["compilers"]["clang"]["max"] == 19
    assert gpu_table().exit_code == 0
    assert read(GPUS)["sources"]["12.9.1"]["path"] == "bin/ptxas.exe"


# -- archives that are read


def test_second_update_reads_no_archive(
    cuda: FaultServer, nvcc_table: Run, gpu_table: Run, patch: Patch
) -> None:
    scans = patch.count(f"{extracts.__name__}.read_ptxas")
    first = report(nvcc_table("--json"))
    assert first["archives_read"] == 2
    assert {outcome["status"] for outcome in first["releases"]} == {"read"}
    gpu_table()
    before, stat_before = archive_requests(cuda), COMPAT.stat()

    number = scans.number
    for command in (nvcc_table, gpu_table):
        again = report(command("--json"))
        assert (again["status"], again["archives_read"], again["fetched_bytes"]) == (
            "unchanged",
            0,
            0,
        )
        assert again["diff"] == []
        assert {outcome["status"] for outcome in again["releases"]} == {"known"}
    assert scans.number == number
    assert archive_requests(cuda) == before
    assert COMPAT.stat().st_mtime_ns == stat_before.st_mtime_ns


def test_lost_cache_requires_no_archive(
    cuda: FaultServer, nvcc_table: Run, gpu_table: Run, tmp_path: Path
) -> None:
    nvcc_table()
    gpu_table()
    before = archive_requests(cuda)
    shutil.rmtree(tmp_path / "cache")
    for command in (nvcc_table, gpu_table):
        expect_output(command("--check"), 0, "unchanged; 0 archives read")
    assert archive_requests(cuda) == before


def test_changed_policy_is_applied_with_accept_changed(
    cuda: FaultServer, nvcc_table: Run, tmp_path: Path
) -> None:
    nvcc_table()
    bound = {"min": 9, "reason": "ours", "reference": "our page"}
    policy = {"schema_version": 1, "lower_bounds": {"gcc": bound}, "unseen_releases": {}}
    put(Path("data/policy"), {"nvcc.json": json.dumps(policy).encode()})
    shutil.rmtree(tmp_path / "cache")
    assert nvcc_table().exit_code == 1
    assert nvcc_table("--replace").exit_code == 0
    gcc = read(COMPAT)["releases"]["12.9.1"]["compilers"]["gcc"]
    assert (gcc["min"], gcc["documented_by"]["reference"]) == (9, "our page")


def test_features_select_archive_with_header(
    server: FaultServer, run: Run, nvcc_table: Run
) -> None:
    small = {"linux-x86_64": {"bin/x": b"#!/bin/sh\n"}}
    header = {"linux-x86_64": {"include/crt/host_config.h": HEADER, "x": os.urandom(3000)}}
    publish(server, release("13.0.2", {"cuda_nvcc": small, "cuda_crt": header}))
    expect_output(run("process-manifests", "--base-url", server.url, "--package", "cuda_nvcc"), 0)
    assert report(nvcc_table("--json"))["archives_read"] == 1
    assert read(COMPAT)["releases"]["13.0.2"]["source"]["package"] == "cuda_crt"


def test_archive_without_header_is_skipped_and_remembered(
    server: FaultServer, nvcc_table: Run, tmp_path: Path
) -> None:
    stub = {"linux-x86_64": {"include/host_config.h": b'#include "crt/host_config.h"\n'}}
    publish(server, release("12.9.1", {"cuda_crt": stub, "cuda_nvcc": nvcc()}))
    assert report(nvcc_table("--json"))["archives_read"] == 2
    assert read(COMPAT)["releases"]["12.9.1"]["source"]["package"] == "cuda_nvcc"
    COMPAT.unlink()
    assert report(nvcc_table("--json"))["archives_read"] == 0


def test_facts_without_math_functions_are_read_again(
    cuda: FaultServer, nvcc_table: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts of earlier releases of cudaredist lack the second file of the table."""
    paths = extracts.EXTRACT_PATHS
    monkeypatch.setattr(extracts, "EXTRACT_PATHS", {"host-config": paths["host-config"]})
    expect_output(nvcc_table(), 0)
    assert "glibc" not in read(COMPAT)["releases"]["12.9.1"]
    monkeypatch.setattr(extracts, "EXTRACT_PATHS", paths)
    assert report(nvcc_table("--json"))["archives_read"] == 2
    assert read(COMPAT)["releases"]["12.9.1"]["glibc"]["newest"] == "2.40"
    assert report(nvcc_table("--json"))["archives_read"] == 0


# -- findings


def test_check_writes_nothing(cuda: FaultServer, nvcc_table: Run) -> None:
    expect_output(nvcc_table("--check"), 1, "nvcc_compat.json: would write")
    assert not COMPAT.exists()
    assert nvcc_table().exit_code == 0
    assert nvcc_table("--check").exit_code == 0


def test_changed_bounds_require_accept_changed(cuda: FaultServer, nvcc_table: Run) -> None:
    nvcc_table()
    before = COMPAT.read_bytes()
    publish(cuda, release("12.9.1", {"cuda_nvcc": nvcc(host_config(gcc=13, clang=19))}))
    result = expect_error(nvcc_table(), 1, "12.9.1: gcc max was 14 and is 13", "--replace")
    assert "12.9.1  held back" in result.stdout
    assert COMPAT.read_bytes() == before
    assert nvcc_table("--check").exit_code == 1
    assert nvcc_table("--replace").exit_code == 0
    assert read(COMPAT)["releases"]["12.9.1"]["compilers"]["gcc"]["max"] == 13
    assert nvcc_table("--check").exit_code == 0


def test_decreased_bound_requires_accept_changed(server: FaultServer, nvcc_table: Run) -> None:
    publish(server, release("12.8.0", {"cuda_nvcc": nvcc(host_config(gcc=14, clang=20))}))
    publish(server, release("12.9.1", {"cuda_nvcc": nvcc()}))
    publish(server, release("13.4.0", {"cuda_nvcc": nvcc(host_config(gcc=15, clang=21))}))
    assert nvcc_table("--check").exit_code == 1
    result = nvcc_table()
    assert result.exit_code == 1
    assert "goes-down: 12.9.1: clang max was 20 in 12.8.0 and is 19" in result.stderr
    assert "skipped CUDA 12.9.1" in result.stderr
    assert "--replace" in result.stderr
    assert "12.9.1  held back" in result.stdout
    assert read(COMPAT)["releases"].keys() >= {"12.8.0", "13.4.0"}
    assert "12.9.1" not in read(COMPAT)["releases"]
    again = expect_output(nvcc_table("--check", "--json"), 1)
    assert (report(again)["status"], report(again)["held_back"]) == ("unchanged", ["12.9.1"])


def test_capability_missing_from_policy_is_a_finding(cuda: FaultServer, gpu_table: Run) -> None:
    policy = json.loads((REPOSITORY / "data/policy/gpus.json").read_bytes())
    del policy["overlay"]["9.0"]
    put(Path("data/policy"), {"gpus.json": json.dumps(policy).encode()})
    expect_error(gpu_table(), 0, "overlay-lacks")
    assert gpu_table("--check").exit_code == 1
    assert [f["about"] for f in report(gpu_table("--json"))["findings"]] == ["9.0"]


# -- failures


def test_invalid_header_fails_one_release(cuda: FaultServer, nvcc_table: Run) -> None:
    bad = HEADER.replace(b"#if __GNUC__ > 14", b"#if __GNUC__ >> > 14")
    line = bad[: bad.index(b">> > 14")].count(b"\n") + 1
    publish(cuda, release("12.8.1", {"cuda_nvcc": nvcc(bad)}))
    expect_error(nvcc_table(), 5, f"cuda 12.8.1: not a valid host compiler header: line {line}:")
    assert {"12.9.1", "13.4.0"} <= read(COMPAT)["releases"].keys()
    assert "12.8.1" not in read(COMPAT)["releases"]


def test_entry_of_failed_release_is_kept(cuda: FaultServer, nvcc_table: Run) -> None:
    nvcc_table()
    before = COMPAT.read_bytes()
    publish(cuda, release("12.9.1", {"cuda_nvcc": nvcc(b"#if 1\n")}))
    assert nvcc_table().exit_code == 5
    assert COMPAT.read_bytes() == before


def test_missing_header_exits_5(server: FaultServer, nvcc_table: Run) -> None:
    publish(server, release("12.9.1", {"cuda_nvcc": {"linux-x86_64": {"bin/nvcc": b"x"}}}))
    result = nvcc_table()
    assert result.exit_code == 5
    assert "none of the 1 archives of cuda_crt and cuda_nvcc has include/crt/" in result.stderr
    assert not COMPAT.exists()


def test_release_without_nvcc_exits_3(server: FaultServer, gpu_table: Run) -> None:
    publish(server, release("12.9.1", {"cuda_cccl": {"linux-x86_64": {"x": b"x"}}}))
    expect_error(gpu_table(), 3, "has no archive of cuda_nvcc")


def test_oversized_header_is_refused(server: FaultServer, nvcc_table: Run) -> None:
    publish(server, release("12.9.1", {"cuda_nvcc": nvcc(HEADER + b"\n" * (4 << 20))}))
    expect_error(nvcc_table(), 5, "larger than the limit of 4,194,304 bytes")


def test_archive_with_wrong_bytes_exits_4(
    cuda: FaultServer, nvcc_table: Run, tmp_path: Path
) -> None:
    path = archive_of(cuda, "12.9.1")
    other = release("12.9.1", {"cuda_nvcc": nvcc(host_config(gcc=99))})
    cuda.files[path] = other[path.removeprefix(FOLDER)].ljust(len(cuda.files[path]), b"\0")
    expect_output(nvcc_table(), 4)
    assert "12.9.1" not in read(COMPAT)["releases"]
    assert "13.4.0" in read(COMPAT)["releases"]
    assert len([p for p in (tmp_path / "cache/facts").rglob("*") if p.is_file()]) == 1


def test_missing_archive_exits_3(cuda: FaultServer, nvcc_table: Run) -> None:
    cuda.misbehave(archive_of(cuda, "12.9.1"), faults.status(404))
    assert nvcc_table().exit_code == 3
    assert "13.4.0" in read(COMPAT)["releases"]


def test_invalid_manifest_exits_5(cuda: FaultServer, nvcc_table: Run) -> None:
    put(Path("data/manifests/cuda"), {"redistrib_12.8.1.json": b"{"})
    expect_output(nvcc_table(), 5)
    assert "13.4.0" in read(COMPAT)["releases"]


def test_missing_local_release_exits_2(cuda: FaultServer, nvcc_table: Run) -> None:
    expect_error(nvcc_table("--version", "12.0.0"), 2, "no local manifest 12.0.0 in")


def test_broken_table_is_not_overwritten(cuda: FaultServer, gpu_table: Run) -> None:
    put(Path("data"), {"gpus.json": b"{}"})
    assert gpu_table().exit_code == 5
    assert GPUS.read_bytes() == b"{}"


def test_fail_fast_stops_at_first_failure(cuda: FaultServer, gpu_table: Run) -> None:
    cuda.misbehave(archive_of(cuda, "12.9.1"), faults.status(404))
    expect_output(gpu_table("--fail-fast", "--no-parallel"), 3)
    assert "13.4.0" not in str(archive_requests(cuda))


# -- wheels


@pytest.mark.slow
def test_wheels_extend_tables_and_never_replace_redist(
    cuda: FaultServer, nvcc_table: Run, run: Run, pip_folder: Path
) -> None:
    files = {
        "nvidia/cuda_nvcc/include/crt/host_config.h": host_config(gcc=11, clang=14),
        "nvidia/cuda_nvcc/bin/ptxas": ptxas(PROFILES_11_8),
    }
    tag = "manylinux2014_x86_64"
    for label, toolkit in (
        ("11.8.0", "nvidia-cuda-nvcc-cu11"),
        ("12.9.1", "nvidia-cuda-nvcc-cu12"),
    ):
        version = f"{label[:5]}9"
        put_wheel(pip_folder, "cuda-toolkit", label, requires=[f"{toolkit}=={version}.*"])
        put_wheel(pip_folder, toolkit, version, files, tag=tag)
    wheels = ("--channel", "wheels")
    expect_output(run("download-manifests", *wheels, "--redist", "cuda", "--version", "all"), 0)
    assert nvcc_table().exit_code == 0
    expect_output(run("update-nvcc-compat", *wheels), 0, "12.9.1  stands")
    releases = read(COMPAT)["releases"]
    assert releases["12.9.1"]["source"]["channel"] == "redist"
    assert releases["11.8.0"]["source"]["channel"] == "wheels"
    assert releases["11.8.0"]["source"]["path"] == "include/crt/host_config.h"
    assert run("update-gpus", *wheels).exit_code == 0
    assert read(GPUS)["sources"].keys() == {"11.8.0", "12.9.1"}


# -- explain
