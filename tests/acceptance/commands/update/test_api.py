"""Tests of update-api on small releases."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import server as faults
from support.patching import Patch
from support.releases import Files, put, release
from support.running import expect_error, expect_output, snapshot, succeed
from support.server import FaultServer
from support.wheels import put_wheel

from cudaredist.primitives import sha256_of

pytest.importorskip("clang", reason="needs libclang: pip install 'cudaredist[api]'")

TAG = "manylinux2014_x86_64"
LABELS = ("12.9.1", "13.0.2")
RUNTIME = """\
#pragma once
#include "crt/host_defines.h"
typedef struct CUstream_st *cudaStream_t;
struct cudaDeviceProp { char name[256];%s };
extern __host__ int cudaMemPrefetchAsync(const void *devPtr, %s, cudaStream_t stream);
"""
OLD = RUNTIME % (" int clockRate;", "int dstDevice")
NEW = RUNTIME % ("", "unsigned int flags")


def packages(label: str) -> dict[str, dict[str, Files]]:
    runtime = OLD if label == "12.9.1" else NEW
    headers = {"include/cuda_runtime_api.h": runtime.encode(), "include/README": b"text"}
    if label == "13.0.2":
        headers["include/broken.h"] = b"int f(unknown x);"
    return {
        "cuda_cudart": {"linux-x86_64": headers, "linux-sbsa": headers},
        "cuda_nvcc": {"linux-x86_64": {"include/crt/host_defines.h": b"#define __host__\n"}},
        "cuda_gdb": {"linux-x86_64": {"include/gdb.h": b"int gdb(void);"}},
    }


def product(label: str) -> dict[str, dict[str, Files]]:
    header = b'#include "cuda_runtime_api.h"\nint cudnnSetStream(cudaStream_t stream);\n'
    return {"cudnn": {"linux-x86_64/cuda13": {f"include/cudnn_{label[0]}.h": header}}}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with tables of APIs."""
    root = tmp_path_factory.mktemp("api")
    for redist, label, content in (
        *(("cuda", label, packages(label)) for label in LABELS),
        ("cudnn", "9.9.0", product("9.9.0")),
    ):
        files = release(label, content, product=redist)
        put(root / f"source/compute/{redist}/redist", files)
        manifests = {name: data for name, data in files.items() if "/" not in name}
        put(root / f"data/manifests/{redist}", manifests)
    succeed("update-api", "-q", *sources(root))
    return root


def places(root: Path) -> tuple[object, ...]:
    return ("--data-dir", root / "data", "--cache-dir", root / "cache")


def sources(root: Path) -> tuple[object, ...]:
    return ("--base-url", root / "source", *places(root))


def table(root: Path, package: str) -> Any:
    return json.loads((root / f"data/api/{package}.json").read_bytes())


def test_tables_state_releases_of_each_form(root: Path) -> None:
    found = table(root, "cuda_cudart")
    assert list(found["providers"][0]["releases"]) == list(LABELS)
    header = found["headers"]["cuda_runtime_api.h"]
    old, new, both = sorted(header["groups"], key=lambda group: group.get("releases", ["~"]))
    assert old == {
        "releases": ["12.9.1"],
        "functions": {
            "cudaMemPrefetchAsync": "int (const void *devPtr, int dstDevice, cudaStream_t stream)"
        },
        "fields": {"cudaDeviceProp": {"clockRate": "int"}},
    }
    assert new["releases"] == ["13.0.2"]
    assert both == {
        "fields": {"cudaDeviceProp": {"name": "char[256]"}},
        "typedefs": {"cudaStream_t": "CUstream_st *"},
        "types": {"cudaDeviceProp": "struct"},
    }
    broken = found["headers"]["broken.h"]
    assert broken["releases"] == ["13.0.2"]
    assert broken["unread"] == [
        {"releases": ["13.0.2"], "reason": "broken.h:1: unknown type name 'unknown'"}
    ]
    assert {path.name for path in (root / "data/api").iterdir()} == {
        "cuda_cudart.json",
        "cudnn.json",
    }


def test_product_includes_headers_of_its_cuda_major(root: Path) -> None:
    found = table(root, "cudnn")
    assert found["providers"][0]["variant"] == "cuda13"
    (group,) = found["headers"]["cudnn_9.h"]["groups"]
    assert group["functions"] == {"cudnnSetStream": "int (cudaStream_t stream)"}


def test_update_twice_changes_nothing(root: Path, run: Run) -> None:
    before = snapshot(root / "data/api")
    for option in ("--check", "--offline"):
        result = run("update-api", option, *sources(root))
        assert (result.exit_code, result.stdout.splitlines()[-1]) == (
            0,
            "api: 2 packages, 0 changed; 0 archives read, 0 bytes",
        )
    assert snapshot(root / "data/api") == before


def test_release_by_release_gives_the_same_tables(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/manifests").symlink_to(root / "data/manifests")
    options = ("--data-dir", tmp_path / "data", "--base-url", root / "source")
    cached = ("--cache-dir", root / "cache")
    assert run("update-api", "--check", *options, *cached).exit_code == 1
    assert not (tmp_path / "data/api").exists()
    for label in ("13.0.2", "12.9.1", "9.9.0"):
        assert run("update-api", "--version", label, *options, *cached).exit_code == 0
    assert snapshot(tmp_path / "data/api") == snapshot(root / "data/api")


def test_check_finds_releases_without_tables_and_broken_tables(
    root: Path, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/manifests").symlink_to(root / "data/manifests")
    check = ("check", "--offline", "--data-dir", tmp_path / "data")
    options = (*check[2:], "--cache-dir", root / "cache", "--base-url", root / "source")
    assert run("process-manifests", "--redist", "cuda", *options).exit_code == 0
    # Tables are optional.
    assert "are not in any table" not in run(*check).stdout
    assert run("update-api", "--version", "12.9.1", *options).exit_code == 0
    result = run(*check, "--json")
    found = [one for one in json.loads(result.stdout)["findings"] if one["kind"] == "table-lacks"]
    messages = [(one["message"], one["redist"], one["release"]) for one in found]
    assert messages == [("the headers of cuda_cudart are not in any table", "cuda", "13.0.2")], (
        result.stdout
    )
    assert run("update-api", *options).exit_code == 0
    path = tmp_path / "data/api/cuda_cudart.json"
    assert "are not in any table" not in run(*check).stdout
    path.write_bytes(path.read_bytes().replace(b'"cuda_cudart"', b'"cudnn"'))
    assert "is the table of cudnn" in run(*check).stdout
    path.write_text("{")
    assert "api/cuda_cudart.json" in run(*check).stdout


def test_broken_header_is_a_warning(root: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/manifests").symlink_to(root / "data/manifests")
    options = ("--data-dir", tmp_path / "data", "--base-url", root / "source")
    result = run("update-api", "--redist", "cuda", *options)
    expect_output(result, 0, "api: 1 package, 1 changed; 4 archives read")
    assert "broken.h does not parse: broken.h:1: unknown type name" in result.stderr


def test_archive_that_cannot_be_read_fails_its_release_only(
    root: Path, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/manifests").symlink_to(root / "data/manifests")
    source = tmp_path / "source/compute/cuda/redist"
    put(source, release("12.9.1", packages("12.9.1")))
    options = ("--data-dir", tmp_path / "data", "--cache-dir", tmp_path / "cache")
    result = run("update-api", *options, "--base-url", tmp_path / "source", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == report["exit_code"] == 3
    statuses = {(one["redist"], one["release"]): one["status"] for one in report["archives"]}
    assert statuses == {
        ("cuda", "12.9.1"): "read",
        ("cuda", "13.0.2"): "failed",
        ("cudnn", "9.9.0"): "failed",
    }


def test_missing_libclang_is_an_error_with_command(run: Run, patch: Patch) -> None:
    patch("cudaredist.tables.api.header_process.find_spec", lambda _: None)
    expect_error(
        run("update-api"), 2, "update-api requires the package libclang", "cudaredist[api]"
    )


@pytest.mark.parametrize("has_ranges", [True, False])
def test_wheel_on_server_is_read_in_part(
    has_ranges: bool,  # noqa: FBT001 - a parameter of the test
    pip_folder: Path,
    server: FaultServer,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    headers = {"nvidia/cu13/include/cuda_runtime_api.h": NEW.encode()}
    library = {"nvidia/cu13/lib/libcudart.so.13": random.Random(1).randbytes(4 << 20)}
    crt = {"nvidia/cu13/include/crt/host_defines.h": b"#define __host__\n"}
    required = ["nvidia-cuda-runtime==13.0.96", "nvidia-cuda-crt==13.0.88"]
    put_wheel(pip_folder, "cuda-toolkit", "13.0.2", requires=required)
    put_wheel(pip_folder, "nvidia-cuda-runtime", "13.0.96", {**library, **headers}, tag=TAG)
    put_wheel(pip_folder, "nvidia-cuda-crt", "13.0.88", crt, tag=TAG)
    for path in pip_folder.iterdir():
        data = server.files[f"/files/{path.name}"] = path.read_bytes()
        project = path.name.split("-")[0].replace("_", "-")
        link = f"<a href='/files/{path.name}#sha256={sha256_of(data)}'>{path.name}</a>"
        server.answers[f"/simple/{project}/"] = faults.body(
            f"<!DOCTYPE html>{link}".encode(), Content_Type="text/html"
        )
        if not has_ranges:
            server.answers[f"/files/{path.name}"] = faults.without_ranges
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    of_wheels = ("--channel", "wheels", "--redist", "cuda")
    expect_output(run("download-manifests", *of_wheels), 0)
    result = run("update-api", *of_wheels, "--json")
    report = json.loads(result.stdout)
    assert report["changed"] == ["cuda_cudart"], result.output
    assert (report["fetched_bytes"] < 1 << 20) == has_ranges
    table = json.loads(Path("data/api/cuda_cudart.json").read_bytes())
    assert table["headers"]["cuda_runtime_api.h"]["groups"][0]["types"]
