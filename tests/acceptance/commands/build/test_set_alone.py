"""A package set without this tool: the example consumer reads it and installs packages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support import binaries
from support.releases import Files, Packages, publish, release
from support.server import FaultServer

CONSUMER = REPOSITORY / "examples/unpack_set.py"
CUBLAS: Files = {
    "LICENSE": b"text",
    "include/cublas.h": b"//\n",
    "lib/libcublas.so.13": binaries.elf(soname="libcublas.so.13"),
    "lib/libcublas.so": "libcublas.so.13",
    "lib/libcublas_static.a": binaries.ar([]),
}
PACKAGES: Packages = {
    "cuda_cudart": {"linux-x86_64": {"include/cuda_runtime.h": b"//\n"}},
    "libcublas": {"linux-x86_64": CUBLAS},
    "cuda_nvcc": {"linux-x86_64": {"bin/nvcc": b"#!/bin/sh\n", "nvvm/lib64/x": b""}},
    "libnvvm": {"linux-x86_64": {"nvvm/bin/cicc": b"#!/bin/sh\n"}},
    "cuda_sanitizer_api": {"linux-x86_64": {"include/sanitizer.h": b"//\n"}},
}


def consume(*arguments: object) -> "subprocess.CompletedProcess[str]":
    call = [sys.executable, "-I", str(CONSUMER), *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.fixture
def document(server: FaultServer, run: Run) -> Path:
    """Return a package set with files, whose archives are on a local server."""
    publish(server, release("13.0.2", PACKAGES, product="cuda"), "cuda")
    source = ("--base-url", server.url, "--redist", "cuda")
    assert run("process-manifests", *source).exit_code == 0
    path = Path("set.json")
    assert run("build", "--files", "--allow-hollow", "-o", path).exit_code == 0
    content = json.loads(path.read_text())
    for package in content["packages"].values():
        if package["archive"]:
            archive = package["archive"]
            archive["url"] = f"{server.url}/compute/cuda/redist/{archive['relative_path']}"
    path.write_text(json.dumps(content))
    return path


def test_files_of_outputs_and_changes_of_tree(document: Path) -> None:
    names = ("libcublas", "cuda_nvcc", "cuda_sanitizer_api")
    process = consume(document, "root", *names, "--outputs", "out,bin,include,dev,lib")
    assert process.returncode == 0, process.stderr
    found = {str(path.relative_to("root")) for path in Path("root").rglob("*") if path.is_file()}
    assert found == {
        *("LICENSE", "bin/nvcc", "nvvm/lib64/x", "nvvm/bin/cicc"),
        *("include/cublas.h", "include/cuda_runtime.h", "lib/libcublas.so.13", "lib/libcublas.so"),
        "compute-sanitizer/include/sanitizer.h",
    }
    assert Path("root/lib/libcublas.so").readlink() == Path("libcublas.so.13")
    assert Path("root/bin/nvcc").stat().st_mode & 0o111


def test_only_requested_outputs_are_installed(document: Path) -> None:
    assert consume(document, "root", "libcublas").returncode == 0
    found = {path.name for path in Path("root").rglob("*") if path.is_file()}
    assert found == {"libcublas.so", "libcublas.so.13"}


def test_wrong_hash_and_missing_package_end_the_consumer(document: Path) -> None:
    content = json.loads(document.read_text())
    content["packages"]["libcublas"]["archive"]["sha256"] = "0" * 64
    document.write_text(json.dumps(content))
    process = consume(document, "root", "libcublas")
    assert process.returncode != 0
    assert "has another hash" in process.stderr
    assert consume(document, "root", "cuda_cccl").returncode != 0
    assert not Path("root").exists()


def test_without_option_sets_have_no_files(document: Path, run: Run) -> None:
    run("build", "--allow-hollow", "-o", "small.json")
    content = json.loads(Path("small.json").read_text())
    assert not any("files" in package for package in content["packages"].values())


def test_consumer_is_short() -> None:
    assert len(CONSUMER.read_text().splitlines()) <= 60
