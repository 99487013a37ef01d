"""Tests of runtime roots with a data folder: environments, symbols, device code."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import binaries, wheels
from support.binaries import Symbol, elf
from support.environments import install, library, user
from support.releases import put, release
from support.running import expect_error, expect_output, succeed
from support.toolkits import MadeSet, Materialize, listing
from typer.testing import Result

RAND, CUDART, NVVM = "libcurand.so.10", "libcudart.so.13", "libnvvm.so.4"
SITE = Path("env/lib/python3.12/site-packages")
TORCH = user(RAND, "curandCreate")
LAUNCHER = binaries.pe(imports=("KERNEL32.dll",))
"""A program for Windows, which environments have for scripts."""


def code(*images: binaries.Image) -> dict[str, bytes]:
    """Return a section with one module, whose images have 4,096 bytes each."""
    return {".nv_fatbin": binaries.fatbin(images, payload=bytes(4096))}


def make_data(root: Path) -> Path:
    """Write a release, its features, its symbols and a set for GPUs of capability 9.0."""
    symbols = [Symbol("curandCreate", version=RAND)]
    images = code(("sm", 80, ""), ("sm", 90, ""), ("sm", 90, "a"), ("compute", 120, ""))
    packages = {
        "libcurand": {
            f"lib/{RAND}": elf(soname=RAND, defines=[RAND], symbols=symbols, sections=images)
        },
        "cuda_cudart": {f"lib/{CUDART}": library(CUDART, "cudaMalloc")},
        "libnvvm": {f"nvvm/lib64/{NVVM}": library(NVVM, "nvvmVersion")},
    }
    files = release("13.0.2", {name: {"linux-x86_64": of} for name, of in packages.items()})
    put(root / "source/compute/cuda/redist", files)
    manifests = {name: data for name, data in files.items() if "/" not in name}
    put(root / "data/manifests/cuda", manifests)
    data = ("--data-dir", root / "data", "--quiet")
    cached = (*data, "--cache-dir", root / "cache", "--base-url", root / "source")
    succeed("process-manifests", *cached)
    succeed("update-symbols", *cached)
    request = ("--cuda", "13.0.2", "--platform", "linux-x86_64", "--gpu", "9.0")
    succeed("build", *request, *data, "--allow-hollow", "--output", root / "set.json")
    return root


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("runtime"))


@pytest.fixture
def runtime(run: Run, data: Path) -> Run:
    """Return a function that materializes the libraries that paths need."""
    folders = ("--data-dir", data / "data", "--base-url", data / "source", "--output", "root")
    options = ("--component", "runtime", *folders)

    def invoke(*words: object) -> Result:
        return run("materialize", data / "set.json", *options, *words)

    return invoke


def put_environment(files: dict[str, bytes]) -> None:
    """Create a virtual environment with a package."""
    install(SITE, "torch", "2.9.0", files)
    install(SITE, "pip", "25.0", {"pip/_vendor/distlib/t64-arm.exe": LAUNCHER})
    Path("env/pyvenv.cfg").write_text("home = /usr/bin\n")


def libraries() -> set[str]:
    return {name for name in listing(Path("root")) if ".so" in name}


def test_runtime_root_of_environment_has_libraries_of_its_packages(runtime: Run) -> None:
    put_environment({"torch/_C.so": TORCH, "torch/lib/libtorch.so": user(CUDART)})
    expect_output(runtime("--for", "env"), 0, "written")
    assert libraries() == {f"lib/{RAND}", f"lib/{CUDART}"}
    expect_output(runtime("--for", "env"), 0, "unchanged")


@pytest.mark.parametrize("channel", ["redist", "wheels"])
def test_runtime_root_for_environment_with_nvidias_wheel(
    run: Run, materialize: Materialize, channel: str
) -> None:
    """The wheel has another build of the library, which needs a library that does not exist."""
    made_set = MadeSet(channel=channel)
    provides = [{"soname": RAND, "path": f"lib/{RAND}", "output": "out", "stub": False}]
    wheel = wheels.wheel("libcurand", "1.2.3", {f"nvidia/curand/lib/{RAND}": library(RAND)})
    data = wheel if channel == "wheels" else None
    made_set.add("libcurand", {f"lib/{RAND}": library(RAND)}, data=data, provides=provides)
    made_set.write(Path("set.json"))
    made_set.put_archives(Path("source"), is_flat=True)
    torch = user(RAND, "curandCreate", runpath="$ORIGIN/../nvidia/curand/lib")
    put_environment({"torch/_C.so": torch})
    install(SITE, "libcurand", "1", {f"nvidia/curand/lib/{RAND}": elf(needed=["libother.so.1"])})
    options = ("--component", "runtime", "--for", "env", "--archives", "source", "--offline")
    if channel == "redist":
        # The environment's file is one of its own.
        expect_error(materialize(*options, base=None), 5, "provides libother.so.1 for", RAND)
    else:
        expect_output(materialize(*options, base=None), 0, "written")
        assert libraries() == {f"lib/{RAND}"}


def test_runtime_root_excludes_own_libraries_of_environment(runtime: Run) -> None:
    own = library("libtorch_cuda.so", "run")
    put_environment(
        {"torch/_C.so": user("libtorch_cuda.so", "run"), "torch/lib/libtorch_cuda.so": own}
    )
    expect_error(runtime("--for", "env"), 2, "need no shared library of the set for linux-x86_64")


def test_runtime_root_of_environment_without_provider_is_refused(runtime: Run) -> None:
    put_environment({"torch/_C.so": TORCH, "torch/_other.so": user("libother.so.1")})
    result = runtime("--for", "env")
    expect_error(result, 5, "provides libother.so.1 for", "torch/_other.so", "with --for, too")
    assert not Path("root").exists()
    Path("libother.so.1").write_bytes(library("libother.so.1"))
    expect_output(runtime("--for", "env", "--for", "libother.so.1"), 0, "written")
    assert libraries() == {f"lib/{RAND}"}


def test_runtime_root_with_missing_symbol_is_refused(runtime: Run) -> None:
    Path("program").write_bytes(user(RAND, "curandCreate", "curandNewer"))
    result = runtime("--for", "program")
    expect_error(result, 5, "cuda of the set does not export curandNewer")
    assert not Path("root").exists()
    Path("own.so").write_bytes(library("own.so", "curandNewer"))
    expect_error(runtime("--for", "program", "--for", "own.so"), 5, "does not export curandNewer")


def test_runtime_root_of_set_without_symbol_tables_warns(runtime: Run, data: Path) -> None:
    Path("program").write_bytes(TORCH)
    (data / "data" / "symbols").rename(data / "away")
    try:
        result = expect_output(runtime("--for", "program"), 0, "written")
    finally:
        (data / "away").rename(data / "data" / "symbols")
    assert "the symbols of cuda 13.0.2 are unknown" in result.stderr


def test_runtime_root_reports_device_code_of_other_gpus(runtime: Run) -> None:
    Path("program").write_bytes(elf(kind="program", needed=[RAND, CUDART]))
    result = runtime("--for", "program", "--json")
    assert json.loads(result.stdout)["device_code"] == {
        "capabilities": ["9.0"],
        "size": 4 * 4096,
        # Portable code for later GPUs is kept by default.
        "unused": {f"lib/{RAND}": 4096},
        "unused_size": 4096,
        "unknown": [],
    }
    text = "16,384 bytes of device code, of which GPUs of capability 9.0 do not use 4,096"
    # The root has all of it.
    expect_output(runtime("--for", "program"), 0, "unchanged", text)


def test_unknown_device_code_of_runtime_root_is_not_counted(runtime: Run, data: Path) -> None:
    Path("program").write_bytes(elf(kind="program", needed=[RAND, CUDART]))
    (data / "data" / "features").rename(data / "away")
    try:
        result = expect_output(
            runtime("--for", "program"), 0, f"unknown for lib/{CUDART}, lib/{RAND}"
        )
    finally:
        (data / "away").rename(data / "data" / "features")
    assert "0 bytes of device code;" in result.stdout


def test_image_searches_each_folder_with_libraries(runtime: Run) -> None:
    Path("program").write_bytes(elf(kind="program", needed=[RAND, NVVM]))
    report: Any = json.loads(runtime("--for", "program", "--layout", "oci", "--json").stdout)
    folders = "/usr/local/cuda/lib:/usr/local/cuda/nvvm/lib64"
    assert report["image"]["environment"][0] == f"LD_LIBRARY_PATH={folders}"


def test_runtime_root_of_programs_for_several_machines(runtime: Run) -> None:
    for name, machine in (("arm", "aarch64"), ("x86", "x86_64")):
        Path(name).write_bytes(elf(kind="program", needed=[RAND], machine=machine))
    words = "the programs are for linux-sbsa, and the set is for linux-x86_64"
    expect_error(runtime("--for", "arm"), 5, words, "--platform linux-sbsa` to build a set")
    result = expect_output(runtime("--for", "x86", "--for", "arm"), 0, "written")
    assert "libraries for linux-sbsa are not installed: the set is for linux-x86" in result.stderr
