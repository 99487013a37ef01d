"""Tests of `export nix` with real files: Nix builds, and a program runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import REPOSITORY, SHARED
from support.nix_builds import (
    _patchelf,
    build_package,
    contents,
    host_gcc,
    host_libraries,
    materialized,
    needs_nix_builds,
    run_path_of,
    stand_in,
)
from support.optional_programs import needs
from support.running import ask_index, cudaredist
from support.wheels import download_wheel


def needed_by(path: Path) -> list[str]:
    """Return the sonames that an ELF file needs."""
    return _patchelf("--print-needed", path).split()


def is_dynamic(path: Path) -> bool:
    """Check if a file is an ELF file that is linked dynamically."""
    with path.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return False
    output = subprocess.run(
        ["readelf", "-d", path], capture_output=True, text=True, check=False
    ).stdout
    return "(NEEDED)" in output or "(SONAME)" in output


pytestmark = [pytest.mark.network, pytest.mark.nightly, needs_nix_builds]

RELEASE = "13.0.2"
DATA = REPOSITORY / "data"
MAKE_MIRROR = SHARED / "tools" / "wheel_mirror.py"
SMALL = (
    *("cuda_cccl", "cuda_crt", "cuda_cudart", "cuda_cupti", "cuda_nvtx", "cuda_opencl"),
    *("cuda_profiler_api", "cuda_sanitizer_api", "libnvfatbin", "libnvjpeg"),
)
WHEELS = (*SMALL, "cuda_nvrtc", "libcublas", "libnvjitlink", "libcusparse", "cudnn")
PROGRAM = r"""
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>

int main(void) {
    int count = 0, version = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cublasHandle_t handle;
    cublasStatus_t status = cublasCreate(&handle);
    cudaRuntimeGetVersion(&version);
    printf("runtime %d, cublas %d: %s\n", version, status == CUBLAS_STATUS_SUCCESS,
           cudaGetErrorString(error));
    return 0;
}
"""


class Built(NamedTuple):
    """A set with built packages, and the same packages written by `materialize`."""

    folder: Path
    packages: dict[str, Any]
    outputs: dict[str, dict[str, Path]]


def build_all(folder: Path, names: tuple[str, ...], *source: object) -> Built:
    """Materialize packages and build each with Nix."""
    components = [word for name in names for word in ("--component", name)]
    layout = ("--output", "root", "--layout", "split")
    cudaredist(folder, "materialize", "set.json", *source, *layout, *components)
    packages = json.loads((folder / "set.json").read_bytes())["packages"]
    outputs = {name: build_package(folder, name, packages[name]["outputs"]) for name in names}
    return Built(folder, packages, outputs)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build packages of a wheel set, including one of the largest libraries."""
    folder = tmp_path_factory.mktemp("wheels")
    source = ("--channel", "wheels", "--data-dir", DATA)
    options = ("--cuda", RELEASE, "--platform", "linux-x86_64", "--output", "set.json")
    cudaredist(folder, "build", *source, *options)
    packages = json.loads((folder / "set.json").read_bytes())["packages"]
    for name in WHEELS:
        download_wheel(folder / "wheels", packages[name]["archive"]["relative_path"])
    base = (folder / "wheels").as_uri()
    cudaredist(folder, "export", "nix", "set.json", "--wheel-base", base, "-o", "cuda")
    return build_all(folder, WHEELS, "--data-dir", DATA)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build packages of a set of NVIDIA archives, with development links."""
    if not MAKE_MIRROR.is_file():
        pytest.skip(f"no {MAKE_MIRROR}")
    folder = tmp_path_factory.mktemp("mirror")
    command = [sys.executable, str(MAKE_MIRROR), "--cuda", RELEASE, "--out", str(folder / "mirror")]
    command += ["--components", ",".join(SMALL), "--platforms", "linux-x86_64"]
    ask_index(*command)
    source = ("--base-url", folder / "mirror", "--redist", "cuda", "--data-dir", "data")
    cudaredist(folder, "download-manifests", *source)
    cudaredist(folder, "process-manifests", *source)
    place = ("--data-dir", "data", "--output", "set.json", "--allow-hollow")
    cudaredist(folder, "build", "--cuda", RELEASE, "--platform", "linux-x86_64", *place)
    document = json.loads((folder / "set.json").read_bytes())
    redist = folder / "mirror/compute/cuda/redist"
    for name in SMALL:
        archive = document["packages"][name]["archive"]
        archive["url"] = (redist / archive["relative_path"]).as_uri()
    (folder / "set.json").write_text(json.dumps(document))
    cudaredist(folder, "export", "nix", "set.json", "-o", "cuda")
    return build_all(folder, SMALL, "--archives", folder / "mirror", "--data-dir", "data")


@pytest.fixture(params=["wheels", "mirror"])
def built(request: pytest.FixtureRequest) -> Built:
    result: Built = request.getfixturevalue(request.param)
    return result


def test_built_outputs_contain_files_of_features(built: Built) -> None:
    for name, outputs in built.outputs.items():
        package = built.packages[name]
        for output, path in outputs.items():
            output_files = contents(path)
            assert output_files == materialized(built.folder / "root", name, output), (name, output)
            if not package["normalise"]:
                files = [kind for kind in output_files.values() if not kind.startswith("->")]
                assert len(files) == package["contents"][output]["files"], (name, output)
        for library in package["provides"]:
            assert (outputs[library["output"]] / library["path"]).exists(), (name, library)


def test_built_libraries_find_needed_libraries(built: Built) -> None:
    store = str(built.folder / "nix" / "store")
    examined = 0
    for name, outputs in built.outputs.items():
        needs = built.packages[name]["needs"]
        outside = {n["soname"] for n in needs if "external" in (n["satisfied_by"] or ())}
        for path in (path for output in outputs.values() for path in output.rglob("*")):
            if path.is_symlink() or not path.is_file() or not is_dynamic(path):
                continue
            folders = run_path_of(path)
            assert all(f.startswith((store, "/run/opengl-driver/lib")) for f in folders), path
            assert "/run/opengl-driver/lib" in folders
            for soname in needed_by(path):
                is_found = any(Path(folder, soname).exists() for folder in folders)
                assert is_found or soname in outside, (path, soname)
                assert is_found or soname not in {"libstdc++.so.6", "libgcc_s.so.1"}, path
            examined += 1
    assert examined >= 15


def test_libraries_have_run_paths_to_packages_that_they_open(wheels: Built) -> None:
    opened = set()
    for name, outputs in wheels.outputs.items():
        for need in wheels.packages[name]["depends"]:
            if need["kind"] == "dlopen":
                folder = str(wheels.outputs[need["attr"]][need["output"]] / "lib")
                paths = (outputs.get("lib") or outputs["out"]).rglob("*.so*")
                libraries = [path for path in paths if is_dynamic(path) and not path.is_symlink()]
                assert libraries, name
                assert all(folder in run_path_of(path) for path in libraries), (name, folder)
                opened.add((name, need["attr"]))
    assert {("cudnn", "cuda_nvrtc"), ("cudnn", "libcublas"), ("libcublas", "cuda_nvrtc")} <= opened


@needs("gcc")
def test_program_runs_with_built_libraries(wheels: Built, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    cudart, cublas = wheels.outputs["cuda_cudart"]["out"], wheels.outputs["libcublas"]
    headers = (cudart, cublas["include"], *(wheels.outputs[n]["out"] for n in SMALL[:2]))
    libraries = (cudart / "lib", cublas["lib"] / "lib")
    options = [
        *(f"-I{folder}/include" for folder in headers),
        *(f"-L{folder}" for folder in libraries),
        *(f"-Wl,-rpath,{folder}" for folder in libraries),
    ]
    command = ["gcc", "program.c", *options, "-lcudart", "-lcublas", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    process = subprocess.run(
        [tmp_path / "program"], env={"PATH": "/usr/bin"}, capture_output=True, text=True, check=True
    )
    assert process.stdout.startswith("runtime 13000, cublas ")
    if "libcuda.so.1" not in host_libraries():
        assert "CUDA driver version is insufficient" in process.stdout


def test_nixpkgs_page_steps_succeed(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "nixpkgs.md").read_text()
    first = page.partition("## Update")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", first, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 8
    script = "\n".join(blocks).replace("--default-gcc 14", f"--default-gcc {host_gcc()}")
    (tmp_path / "nixpkgs").mkdir()
    (tmp_path / "nixpkgs/default.nix").write_text(
        f"{{ config }}: {stand_in()} // {{ inherit config; }}"
    )
    store = {
        f"NIX_{name}_DIR": str(tmp_path / "nix" / name)
        for name in ("STORE", "STATE", "LOG", "CONF")
    }
    (tmp_path / "nix/CONF").mkdir(parents=True)
    (tmp_path / "nix/CONF/nix.conf").write_text("build-users-group =\nsandbox = false\n")
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **store, "PATH": tools, "NIX_PATH": f"nixpkgs={tmp_path}/nixpkgs"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    library = tmp_path / "result-lib/lib/libcublas.so.13"
    assert any("cuda_nvrtc" in folder for folder in run_path_of(library))
    assert process.stdout.count("GPU: ") == 2
    assert run_path_of(tmp_path / "with/bin/app") == ["/run/opengl-driver/lib"]
    assert run_path_of(tmp_path / "without/bin/app") == []
