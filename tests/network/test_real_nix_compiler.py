"""Tests of `export nix` with a real nvcc: it compiles, links and works with CMake."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.nix_builds import build_package, host_gcc, needs_nix_builds, nix_build, stand_in
from support.optional_programs import needs
from support.running import cudaredist
from support.wheels import download_wheel

pytestmark = [
    pytest.mark.network,
    pytest.mark.nightly,
    needs_nix_builds,
    needs("gcc", "cmake", "ninja"),
]

PARTS = (
    "cuda_cccl",
    "cuda_crt",
    "cuda_cudart",
    "cuda_nvcc",
    "cuda_profiler_api",
    "libnvjitlink",
    "libnvvm",
)
SCALE = "__device__ float scale(float a, float x) { return a * x; }\n"
SAXPY = r"""
#include <cuda/std/array>
#include <thrust/device_vector.h>
#include <cstdio>
#ifdef SEPARATE
extern __device__ float scale(float a, float x);
#else
#include "scale.cu"
#endif
__global__ void saxpy(int n, float a, float *x, float *y) {
    int i = threadIdx.x;
    if (i < n) y[i] += scale(a, x[i]);
}
int main() {
    float *x = nullptr;
    cudaError_t error = cudaMalloc(&x, 128);
    if (!error) { saxpy<<<1, 32>>>(8, 2, x, x); error = cudaDeviceSynchronize(); }
    printf("error %d\n", error);
    return error != 0 && error != cudaErrorInsufficientDriver && error != cudaErrorNoDevice;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(X LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
if(SEPARATE)
  set(CMAKE_CUDA_SEPARABLE_COMPILATION ON)
  add_compile_definitions(SEPARATE)
  add_library(scale STATIC scale.cu)
  link_libraries(scale)
endif()
add_executable(program saxpy.cu)
add_executable(host host.cpp)
target_link_libraries(host CUDA::cudart)
if(OPTIMIZED)
  set_property(TARGET scale program PROPERTY INTERPROCEDURAL_OPTIMIZATION ON)
endif()
"""
HOST = """#include <cuda_runtime_api.h>
int main() { int n; return cudaGetDeviceCount(&n) == cudaErrorInvalidValue; }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export the compiler of a wheel set for the host's GCC."""
    folder = tmp_path_factory.mktemp("compiler")
    source = ("--channel", "wheels", "--data-dir", REPOSITORY / "data", "--output", "set.json")
    options = ("--cuda", "13.0.2", "--platform", "linux-x86_64", "--default-gcc")
    cudaredist(folder, "build", *source, *options, host_gcc())
    packages = json.loads((folder / "set.json").read_bytes())["packages"]
    for name in PARTS:
        download_wheel(folder / "wheels", packages[name]["archive"]["relative_path"])
    base = (folder / "wheels").as_uri()
    cudaredist(folder, "export", "nix", "set.json", "--wheel-base", base, "-o", "cuda")
    return folder


@pytest.fixture(scope="module")
def nvcc(folder: Path) -> Path:
    return build_package(folder, "cuda_nvcc", ["out"])["out"] / "bin/nvcc"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"scale.cu": SCALE, "saxpy.cu": SAXPY, "CMakeLists.txt": PROJECT, "host.cpp": HOST}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def expect_program_runs(program: Path) -> None:
    process = subprocess.run([program], capture_output=True, text=True, check=True)
    assert process.stdout.startswith("error ")


def expect_no_reference(program: Path, nvcc: Path) -> None:
    """Expect that a program does not refer to the compiler's own folder.

    If a program is optimized at link time, nvlink stores its options in it, with this folder.
    """
    assert str(nvcc.parent.parent).encode() not in program.read_bytes()


def test_nvcc_compiles_and_links_program(nvcc: Path, project: Path) -> None:
    command = [str(nvcc), "-arch=sm_90", "saxpy.cu", "-o", "program"]
    subprocess.run(command, cwd=project, env={"PATH": "/usr/bin:/bin"}, check=True)
    expect_program_runs(project / "program")
    expect_no_reference(project / "program", nvcc)


def test_nvcc_optimizes_at_link_time(nvcc: Path, project: Path) -> None:
    options = ("-arch=sm_90", "-rdc=true", "-dlto", "-DSEPARATE")
    command = [str(nvcc), *options, "saxpy.cu", "scale.cu", "-o", "program"]
    subprocess.run(command, cwd=project, env={"PATH": "/usr/bin:/bin"}, check=True)
    expect_program_runs(project / "program")


@pytest.mark.parametrize(
    "options",
    [(), ("-DSEPARATE=ON",), ("-DSEPARATE=ON", "-DOPTIMIZED=ON")],
)
def test_cmake_project_builds_with_nvcc(
    folder: Path, nvcc: Path, project: Path, options: tuple[str, ...]
) -> None:
    """CMake finds the headers next to nvcc. A derivation sets the path of the build inputs."""
    cudart = build_package(folder, "cuda_cudart", ["out"])["out"]
    environment = {"PATH": f"{nvcc.parent}:/usr/bin:/bin", "CMAKE_PREFIX_PATH": str(cudart)}
    setup = ("-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_CUDA_ARCHITECTURES=75;90")
    for arguments in ((*setup, *options), ("--build", "build")):
        subprocess.run(["cmake", *arguments], cwd=project, env=environment, check=True)
    expect_program_runs(project / "build/program")
    subprocess.run([project / "build/host"], check=True)
    if "-DOPTIMIZED=ON" not in options:
        expect_no_reference(project / "build/program", nvcc)
        expect_no_reference(project / "build/host", nvcc)


def test_tests_of_packages_succeed(folder: Path) -> None:
    names = ("libnvjitlink", "cuda_cudart", "cuda_nvcc", "cuda_profiler_api")
    tests = f"with (import ./cuda {{ pkgs = {stand_in()}; }}).tests; [ {' '.join(names)} ]"
    # nix-build -A tests skips the mark of each package, which is not a derivation.
    process = nix_build(
        folder, f'map (tests: removeAttrs tests [ "recurseForDerivations" ]) ({tests})'
    )
    assert process.returncode == 0, process.stderr
    built = [Path(line) for line in process.stdout.split()]
    kinds = {path.name.rpartition("-")[2] for path in built}
    assert kinds == {"headers", "libraries", "programs", "saxpy"}
    (program,) = (path / "bin/saxpy" for path in built if path.name.endswith("-saxpy"))
    expect_program_runs(program)
