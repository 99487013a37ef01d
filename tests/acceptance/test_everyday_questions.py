"""Tests of everyday questions: the first lines of the report answer each, on shipped data.

Of a package, these are five: where it exists, its newest archives and wheels, license and needs."""

import json
import shlex
from pathlib import Path

import pytest
from conftest import Run
from support import binaries
from support.running import expect_error, succeed
from support.wheels import put_wheel

ANSWERS = {
    # Which cuDNN for CUDA 12.9 on a GTX 1080? What for an RTX 5090? CUDA 13 and V100?
    "explain gpu GTX 1080": ["CUDA 12.9.2, cuDNN 9.10.2, NCCL ", " capability 6.1 "],
    "explain gpu RTX 5090": ["CUDA 13.5.0, cuDNN 9.28.1, ", " capability 12.0 "],
    "explain gpu V100": ["CUDA 9.0 to 12.9 support", "7.0 (Volta), later releases do not."],
    # What is the first CUDA with sm_103?
    "explain gpu sm_103": ["CUDA 12.9 and later support compute capability 10.3"],
    # Does it run on a Jetson Orin?
    "explain gpu Jetson Orin": ["NVIDIA's archives for linux-aarch64, up to CUDA 12.9.1"],
    # What runs on a host with driver 535, also with cuda_compat?
    "explain driver 535": [
        "runs CUDA 11.0 to 12.2 with all features; 12.3 to 12.9 with limited features",
        "with cuda_compat",
    ],
    # Which drivers and which architectures for CUDA 12.8?
    "explain cuda 12.8": [
        "from 570.124.06 on Linux",
        " 5.0 5.2 ",
        "package sets select by default: 7.5 8.0",
    ],
    # Does CUDA 12.8.0 exist, which has no wheels in the data?
    "explain cuda 12.8.0": ["CUDA 12.8.0, nvcc 12.8.61: GCC 6 to 14, Clang 7 to 19"],
    "explain cuda 11.7.1": ["CUDA 11.7.1 (NVIDIA's archives, "],
    "which --symbol cudaGraphConditionalHandleCreate --channel wheels --platform linux-x86_64": [
        "nvidia-cuda-runtime-cu12  12.3.0  12.9.2"
    ],
    "which libcudnn_graph.so.9 --channel wheels --platform linux-x86_64": ["9.28.0"],
    # Is there CUDA for Jetsons?
    "build --cuda 12.9.1 --platform linux-aarch64 --output sets": [
        "CUDA 12.9.1 has no wheels for linux-aarch64, but NVIDIA's manifest has archives of 29 pack"
    ],
    # Which GCC for CUDA 12.4?
    "explain nvcc 12.4": [
        "CUDA 12.4.1, the newest of 12.4, nvcc 12.4.131: GCC 6 to 13, Clang 7 to 17"
    ],
    # What changed from 13.4 to 13.5?
    "diff cuda@13.4 cuda@13.5": [
        "cuda@13.4.3 -> cuda@13.5.0",
        "12 sonames gone or renamed, 23 files",
    ],
    # Which package has libnvrtc-builtins?
    "which libnvrtc-builtins": ["cuda_nvrtc  archives (by wheel) "],
    # Which release has an undefined symbol of nvJitLink?
    "which --symbol __nvJitLinkCreate_12_8": ["nvidia-nvjitlink-cu12  12.8.0  12.9.2"],
    # Is there NCCL for Windows?
    "which nccl --platform windows-x86_64": ["only for linux-sbsa, linux-x86_64"],
    # Which NCCL for CUDA 12?
    "explain package nccl": ["nccl 2.32.3 (nccl 2.32.3, 2026-09-22) for ", "linux-x86_64/cuda12"],
    # What does cuSOLVER need?
    "explain package libcusolver": ["needs cuda_cudart, libcublas, libcusparse, libnvjitlink"],
    # What are the address and the hash of an archive?
    "explain package nvidia-cublas-cu12 --platform linux-x86_64": [
        "nvidia-cublas-cu12/nvidia_cublas_cu12-12.9.2.10-py3-none-manylinux",
        "sha256 e4f53a8ca8c5d6e8c492d0d0a3d565ecb59a751b19cfdaa4f6da0ab2104c1702",
    ],
    # Does NVIDIA publish it, and may I redistribute it?
    "explain package cuda_gdb": [
        "cuda_gdb: NVIDIA's archives of cuda 11.4.2 to 13.4.2; none of the known wheels",
        "cuda_gdb 13.4.92 (cuda 13.4.2, 2026-09-16) for linux-sbsa, linux-x86_64, archives",
        "license: CUDA EULA; may be redistributed",
    ],
    "explain package nsight_systems": [
        "nsight_systems: NVIDIA's archives of cuda 11.4.2 to 13.4.2; none of the known wheels",
        "license: NVIDIA SLA; whether it may be redistributed is unknown",
    ],
    "explain package cuda_nvcc --platform linux-sbsa": [
        "developer.download.nvidia.com/compute/cuda/redist/cuda_nvcc/linux-sbsa/cuda_nvcc-linux-",
        "sha256 8aebd451afb3984bc0019e803ae8a01a3837b7c69f36db779a7ce77e70831f5f",
    ],
    # Which package has a tool or a library that no wheel has?
    "which nsys": ["the provider of nsys is unknown", " archives not examined; run "],
    "which libnvinfer.so.10": ["is unknown", " archives not examined; run "],
    "which libcublas_static.a": ["is unknown", " archives not examined; run "],
    # Which cuDNN releases exist, and since when?
    "explain package cudnn": ["cudnn 9.28.1.4 (cudnn 9.28.1, 2026-11-06)"],
    "versions --redist cudnn --offline": [
        "cudnn, archives: 32 releases, 8.5.0 (2024-03-15) to 9.27.0 (2026-09-29)",
        "cudnn, wheels: 59 releases, 8.5.0 (2022-08-10) to 9.28.1 (2026-11-06)",
    ],
    # Is my data fresh?
    "check --offline": ["0 findings, 0 notes: exit 0, nothing to report"],
    # How large is a minimal root for cuBLAS, and a toolkit 12.8?
    "materialize set.json --output root --component libcublas --check": [
        "CUDA 12.8.2 for linux-x86_64, 6 packages, ",
        " MB unpacked",
        "libcublas ",
    ],
    "materialize set.json --output root --component nvidia-cublas-cu12 --check": [
        "CUDA 12.8.2 for linux-x86_64, 6 packages, ",
    ],
    "materialize set.json --output root --check": ["CUDA 12.8.2 for linux-x86_64"],
    # A lock file for pip.
    "export requirements set.json": [
        "# CUDA 12.8.2 for linux-x86_64.",
        "# pip install --no-deps --require-hashes --requirement requirements.txt",
    ],
    # A bill of materials.
    "export cyclonedx set.json": ['"bomFormat": "CycloneDX"'],
}


BUILD = "build --cuda 12.8 --platform linux-x86_64 --quiet --output"
CODE = binaries.fatbin([("sm", 80, "")], payload=bytes(4096))
LIBRARY = binaries.elf(soname="libexample.so", sections={".nv_fatbin": CODE})


@pytest.fixture(scope="module")
def package_set(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The package set of the questions."""
    path = tmp_path_factory.mktemp("set") / "set.json"
    succeed(*BUILD.split(), path)
    return path.read_bytes()


@pytest.mark.parametrize("call", ANSWERS)
def test_report_begins_with_answer(run: Run, package_set: bytes, call: str) -> None:
    Path("set.json").write_bytes(package_set)
    result = run(*shlex.split(call))
    count = 5 if call.startswith("explain package") else 3
    first = "\n".join(result.stdout.splitlines()[:count])
    assert [words for words in ANSWERS[call] if words not in first] == [], first


def by_the_door(call: str) -> str | None:
    """Return a question without its subject. None: it does not ask for a fact."""
    command, first, *more = shlex.split(call)
    if command == "explain":
        return shlex.join(["explain", *more])
    if command == "which":
        return shlex.join(["explain", *more] if first == "--symbol" else ["explain", first, *more])
    return call.replace("cuda@", "") if command == "diff" else None


DOOR = {call: words for call in ANSWERS if (words := by_the_door(call))}


@pytest.mark.parametrize("call", DOOR)
def test_report_of_a_word_begins_with_answer(run: Run, call: str) -> None:
    result = run(*shlex.split(DOOR[call]))
    count = 5 if call.startswith("explain package") else 3
    # An unpublished platform is an error, after the notes of the subject and of the data.
    lines = result.stdout.splitlines()[:count] or result.stderr.splitlines()[:count]
    first = "\n".join(lines)
    assert [words for words in ANSWERS[call] if words not in first] == [], first


def test_check_refuses_what_a_run_refuses(run: Run, package_set: bytes) -> None:
    Path("set.json").write_bytes(package_set)
    check = "materialize set.json --component libcublas --check --output"
    Path("file").write_text("x")
    expect_error(run(*check.split(), "file"), 2, "file exists and is not a cudaredist toolkit root")
    Path("folder").mkdir()
    assert run(*check.split(), "folder").exit_code == 1
    Path("folder/other").write_text("x")
    expect_error(run(*check.split(), "folder"), 2, "is not a cudaredist toolkit root")
    document = json.loads(Path("set.json").read_text())
    for package in document["packages"].values():
        if package["archive"] is not None:
            package["archive"]["size"] = 1000
    Path("set.json").write_text(json.dumps(document))
    result = run(*check.split(), "root", "--max-download", "2kB")
    expect_error(result, 2, "downloads of 6,000 bytes exceed --max-download 2,000")
    assert not Path("root").exists()


def test_project_of_other_cuda_is_no_component(run: Run, package_set: bytes) -> None:
    Path("set.json").write_bytes(package_set)
    call = "materialize set.json --output root --component nvidia-cublas-cu11 --check"
    expect_error(run(*call.split()), 2, "no component is called", "--component libcublas")


def test_audit_begins_with_sizes(run: Run, tmp_path: Path) -> None:
    """Why is a wheel large?"""
    path = put_wheel(tmp_path, "example", "1.0", {"example/libexample.so": LIBRARY})
    first = run("audit", path, "--sizes").stdout.splitlines()[:3]
    assert "MB of binaries" in first[2]
    assert "device code (sm_80 " in first[2]
    assert "the largest is example/libexample.so" in first[2]


def test_audit_begins_with_missing_packages(run: Run, tmp_path: Path) -> None:
    """What does my environment lack?"""
    folder = tmp_path / "env/lib/python3.12/site-packages/example"
    folder.mkdir(parents=True)
    (tmp_path / "env/pyvenv.cfg").write_text("version = 3.12.0\n")
    (folder / "lib.so").write_bytes(binaries.elf(soname="lib.so", needed=("libcublas.so.12",)))
    first = run("audit", tmp_path / "env").stdout.splitlines()[:4]
    assert first[1].startswith("1 finding: missing-library.")
    assert "nvidia-cublas-cu12" in "\n".join(first)


def test_audit_without_findings_names_what_it_checked(run: Run, tmp_path: Path) -> None:
    """Is my environment complete?"""
    folder = tmp_path / "env/lib/python3.12/site-packages/example"
    folder.mkdir(parents=True)
    (tmp_path / "env/pyvenv.cfg").write_text("version = 3.12.0\n")
    (folder / "lib.so").write_bytes(binaries.elf(soname="lib.so", needed=("libc.so.6",)))
    lines = run("audit", tmp_path / "env").stdout.splitlines()
    subject = f"CUDA libraries, symbols and installed packages of {tmp_path / 'env'}"
    assert lines[1].startswith(f"No findings about {subject}. Compared with ")
    assert "It needs no CUDA library." in lines
    report = json.loads(run("audit", tmp_path / "env", "--json").stdout)
    assert report["checked"] == ["CUDA libraries", "symbols", "installed packages"]
    assert report["findings"] == []


def test_audit_begins_with_required_gpu(run: Run, tmp_path: Path) -> None:
    """Does a wheel run on a Jetson Orin?"""
    path = put_wheel(tmp_path, "example", "1.0", {"example/libexample.so": LIBRARY})
    first = run("audit", path, "--require-gpu", "8.7").stdout.splitlines()[:3]
    assert first[0] == "GPUs of capability 8.7: no: it is for linux-x86_64"
    assert first[2].startswith("1 finding: gpu.")
