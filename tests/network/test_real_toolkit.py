"""Tests of toolkits from real wheels: compiled programs contain the requested code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from support.optional_programs import needs

from cudaredist.binaries.examine_file import examine_file
from cudaredist.binaries.file_facts import Binary
from cudaredist.formats.features import Features
from cudaredist.sets.header_conditions import ROOTS

pytestmark = [pytest.mark.network, pytest.mark.nightly, needs("g++")]

DATA = REPOSITORY / "data"
SOURCE = REPOSITORY / "tests" / "saxpy"
FEATURES = DATA / "features" / "wheels" / "cuda"
FIRST = "13.0.2"


def newest() -> str:
    """Return the newest release with shipped features."""
    labels = [path.stem.removeprefix("feature_") for path in FEATURES.glob("feature_*.json")]
    return max(labels, key=lambda label: [int(part) for part in label.split(".")])


RELEASES = sorted({FIRST, newest()})


def run(*words: object, code: int = 0, **environment: str) -> "subprocess.CompletedProcess[str]":
    process = subprocess.run(
        [str(word) for word in words],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == code, f"{process.stdout[-3000:]}\n{process.stderr[-3000:]}"
    return process


def cudaredist(*words: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
    return run(sys.executable, "-m", "cudaredist", *words, code=code)


def read(path: Path) -> Binary:
    binary = examine_file(path)
    assert binary is not None
    return binary


def images(binary: Binary) -> set[str]:
    """Return the architectures of a binary's declared device code."""
    declared = (section for section in binary.device_code if section.is_declared)
    return {name for section in declared for name in section.counts}


RUN_BY_H100 = {
    "80 sm_80": False,
    "86 sm_86": False,
    "90 sm_90": True,
    "90a sm_90a": True,
    "100 sm_100": False,
    "100f sm_100f": False,
    "80 compute_80": True,
    "90a compute_90a": True,
    "100 compute_100": False,
    "75 sm_75,compute_75": True,
}
"""Programs with device code of `nvcc -gencode arch=compute_N,code=[...]`.

The value is the result on a real H100 (capability 9.0, driver 580.159.04): each kernel ran or not.
"""


def answers_for_h100(place: Path, code: str) -> bool:
    """Compile a program, and check if `audit` reports that GPUs of capability 9.0 run it."""
    architecture, _, images = code.partition(" ")
    program = place / f"saxpy_{images.replace(',', '_')}"
    code_option = f"arch=compute_{architecture},code=[{images}]"
    nvcc = place / "cuda" / "bin" / "nvcc"
    run(nvcc, "-cudart", "static", "-gencode", code_option, SOURCE / "saxpy.cu", "-o", program)
    command = [sys.executable, "-m", "cudaredist", "audit", program, "--data-dir", DATA]
    process = subprocess.run(
        [*map(str, command), "--require-gpu", "9.0", "--json"], check=False, capture_output=True
    )
    kinds = {finding["kind"] for finding in json.loads(process.stdout)["findings"]}
    assert (process.returncode, kinds) in [(0, set()), (1, {"gpu"})]
    return process.returncode == 0


@pytest.mark.parametrize("release", RELEASES)
def test_programs_compile_with_nvcc_and_cmake(release: str, tmp_path: Path) -> None:
    # The same command as `make toolkit`.
    bin_folder = Path(sys.executable).parent
    run("sh", "examples/toolkit.sh", tmp_path, release, BIN=str(bin_folder), DATA=str(DATA))
    place = tmp_path / release
    record: Any = json.loads((place / "cuda" / ".cudaredist.json").read_bytes())
    assert {"cuda_nvcc", "cuda_cudart"} <= record["packages"].keys()
    major = release.partition(".")[0]
    for folder in (place, place / "cmake"):
        static, shared = (read(folder / f"saxpy_{kind}") for kind in ("static", "shared"))
        assert f"libcudart.so.{major}" in shared.needed
        assert not any("cudart" in name for name in static.needed)
        assert "libc.so.6" in static.needed
        for program in (static, shared):
            # The shorthand of nvcc also embeds portable code.
            assert images(program) == ({"sm_90"} if folder != place else {"sm_90", "compute_90"})
    for code, is_run in RUN_BY_H100.items():
        assert answers_for_h100(place, code) == is_run, code
    # The program starts with the installed libraries and reports a missing GPU.
    libraries = {"LD_LIBRARY_PATH": str(place / "cuda" / "lib64")}
    process = subprocess.run(
        [place / "saxpy_shared"], env={**os.environ, **libraries}, check=False, capture_output=True
    )
    assert process.stdout in {b"no device\n", b"4\n"}


@needs("aarch64-linux-gnu-g++", "qemu-aarch64")
@pytest.mark.parametrize("library", ["cublas", None], ids=["linux-sbsa", "as linux-aarch64"])
def test_cross_toolkit_compiles_programs_for_arm(tmp_path: Path, library: str | None) -> None:
    """The second root has wheels for servers in the layout for Jetsons, which have no wheels."""
    root, toolchain = tmp_path / "cuda", tmp_path / "cross.cmake"
    cudaredist(
        *("build", "--channel", "wheels", "--data-dir", DATA, "--cuda", FIRST),
        *("--platform", "linux-x86_64", "--target", "linux-sbsa", "--output", tmp_path),
    )
    host = tmp_path / f"linux-x86_64/cuda-{FIRST}-to-linux-sbsa.json"
    target = tmp_path / f"linux-sbsa/cuda-{FIRST}-from-linux-x86_64.json"
    folder = root / "targets/sbsa-linux"
    if library is None:
        folder = root / "targets/aarch64-linux"
        for path in (host, target):
            path.write_text(path.read_text().replace("linux-sbsa", "linux-aarch64"))
    pair = (host, "--target-set", target, "--output", root)
    selection = ["--component", "runtime", *(["--component", "libcublas"] if library else [])]
    cudaredist("materialize", *pair, "--data-dir", DATA, *selection)
    assert [path.name for path in (root / "targets").iterdir()] == [folder.name]
    host_compiler = ("-ccbin", "aarch64-linux-gnu-g++")
    libraries = ("-cudart", "shared", "-Xlinker", "--no-as-needed")
    options = [*host_compiler, "-arch=sm_90", *libraries, *([f"-l{library}"] if library else [])]
    run(root / "bin/nvcc", *options, SOURCE / "saxpy.cu", "-o", tmp_path / "program")
    linked = tmp_path / "linked"
    run(root / "bin/nvcc", *options, "-dlto", "-rdc=true", SOURCE / "saxpy.cu", "-o", linked)
    cudaredist("export", "cmake", *pair, "-o", toolchain)
    build = tmp_path / "cmake"
    cmake = Path(sys.executable).parent / "cmake"
    run(cmake, "-S", SOURCE, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={toolchain}")
    run(cmake, "--build", build)
    emulator = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
    search = f"LD_LIBRARY_PATH={folder}/lib"
    both = {"libcudart.so.13", *([f"lib{library}.so.13"] if library else [])}
    for program, needed in (
        (tmp_path / "program", both),
        (linked, both),
        (build / "saxpy_shared", {"libcudart.so.13"}),
    ):
        facts = read(program)
        assert facts.machine == "aarch64"
        assert needed <= set(facts.needed)
        assert run(*emulator, "-E", search, program, code=1).stdout == "no device\n"


def test_runtime_root_runs_program_and_every_needed_file_is_required(tmp_path: Path) -> None:
    set_path, root = tmp_path / "set.json", tmp_path / "cuda"
    program, runtime = tmp_path / "program", tmp_path / "runtime"
    cudaredist(
        *("build", "--channel", "wheels", "--data-dir", DATA, "--cuda", FIRST),
        *("--platform", "linux-x86_64", "--gpu", "9.0", "--output", set_path),
    )
    options = (set_path, "--data-dir", DATA, "--output")
    selection = ("runtime", "libcublas", "libcufft")
    components = [word for name in selection for word in ("--component", name)]
    cudaredist("materialize", *options, root, *components)
    names = ("cudart", "cublas", "cufft")
    (tmp_path / "program.c").write_text(
        "#include <cublas_v2.h>\n#include <cuda_runtime_api.h>\n#include <cufft.h>\n"
        "#include <stdio.h>\nint main(void) { int n, v; cufftGetVersion(&v); "
        "cublasGetProperty(MAJOR_VERSION, &v); "
        'printf("%d\\n", cudaGetDeviceCount(&n)); return 0; }\n'
    )
    run(
        *("gcc", "-I", root / "include", tmp_path / "program.c", "-o", program),
        *("-L", root / "lib", f"-Wl,-rpath-link,{root / 'lib'}", *(f"-l{n}" for n in names)),
    )
    for_program = (*options, runtime, "--component", "runtime", "--for", program)
    report = json.loads(cudaredist("materialize", *for_program, "--json").stdout)
    files = {path.name for path in (runtime / "lib").iterdir()}
    loaded = {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12"}
    # cuBLASLt and cuFFT open these.
    opened = {"libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvJitLink.so.13"}
    assert files == loaded | opened
    assert report["size"] < report["full_size"]
    code = report["device_code"]
    assert (code["capabilities"], code["unknown"]) == (["9.0"], [])
    # Most code of cuBLAS is for other GPUs. cuFFT's portable code serves all of them.
    assert 0.2 < code["unused_size"] / code["size"] < 0.9
    search = str(runtime / "lib")
    assert run(program, LD_LIBRARY_PATH=search).stdout in {"35\n", "100\n", "0\n"}
    assert "not found" not in run("ldd", program, LD_LIBRARY_PATH=search).stdout
    for name in sorted(loaded):
        path = runtime / "lib" / name
        path.rename(tmp_path / name)
        # The machine's own libraries are not used.
        loader = ("/lib64/ld-linux-x86-64.so.2", "--inhibit-cache", "--library-path", search)
        assert name in run(*loader, program, code=127).stderr
        (tmp_path / name).rename(path)


def test_release_without_nvcc_compiles_host_programs(tmp_path: Path) -> None:
    set_path, root = tmp_path / "set.json", tmp_path / "cuda"
    cudaredist(
        *("build", "--channel", "wheels", "--data-dir", DATA, "--cuda", "12.9.1"),
        *("--platform", "linux-x86_64", "--output", set_path),
    )
    # The smallest math library. The component `math` has all of them.
    selection = ("--component", "libcurand", "--component", "runtime")
    cudaredist("materialize", set_path, "--data-dir", DATA, "--output", root, *selection)
    build = tmp_path / "cmake"
    cmake = Path(sys.executable).parent / "cmake"
    run(cmake, "-S", SOURCE, "-B", build, "-DHOST_ONLY=ON", f"-DCUDAToolkit_ROOT={root}")
    run(cmake, "--build", build)
    assert {"libcudart.so.12", "libcurand.so.10"} <= set(read(build / "host").needed)
    assert run(build / "host").stdout.startswith("runtime 12090, curand 103")


USES_LIBRARIES = """
#include <cstdio>
#include <cudnn.h>
#include <cufft.h>
#include <cusolverMg.h>
#include <nvrtc.h>

int main() {
  nvrtcProgram program;
  nvrtcCreateProgram(&program, "__global__ void f() {}", "f.cu", 0, nullptr, nullptr);
  cusolverMgHandle_t solver;
  int version = 0;
  std::printf("nvrtcCompileProgram %d\\n", nvrtcCompileProgram(program, 0, nullptr));
  std::printf("cusolverMgCreate %d\\n", cusolverMgCreate(&solver));
  std::printf("cudnnGetVersion %d\\n", cudnnGetVersion() >= 90000 ? 0 : 1);
  std::printf("cufftGetVersion %d\\n", cufftGetVersion(&version));
}
"""
OPENS = """
#include <dlfcn.h>
#include <cstdio>
extern "C" int open_library(const char *name) {
  if (dlopen(name, RTLD_NOW)) return 0;
  std::fprintf(stderr, "%s\\n", dlerror());
  return 1;
}
"""
CALLS = """
#include <dlfcn.h>
int main(int, char **words) {
  void *opener = dlopen(words[1], RTLD_NOW);
  auto open_library = (int (*)(const char *))dlsym(opener, "open_library");
  return open_library(words[2]);
}
"""
LOADED = ("cuda_nvrtc", "libcusolver", "cudnn", "libcufft", "libcublas", "libcusparse")


@needs("patchelf")
@pytest.mark.parametrize(
    ("release", "way"), [("12.9.2", "none"), ("13.0.3", "environment"), ("13.0.3", "run paths")]
)
def test_libraries_of_root_load_what_they_need_and_open(
    release: str, way: str, tmp_path: Path
) -> None:
    """Run programs that need no GPU, and open each name from a library with the same run path."""
    set_path, root = tmp_path / "set.json", tmp_path / "cuda"
    cudaredist(
        *("build", "--channel", "wheels", "--data-dir", DATA, "--cuda", release),
        *("--platform", "linux-x86_64", "--output", set_path),
    )
    components = [word for name in LOADED for word in ("--component", name)]
    options = ["--run-paths"] if way == "run paths" else []
    cudaredist("materialize", set_path, "--data-dir", DATA, "--output", root, *components, *options)
    environment = {}
    if way == "environment":
        variables = cudaredist("export", "env", set_path, "--root", root).stdout
        script = f'{variables}\nprintf %s "$LD_LIBRARY_PATH"'
        environment["LD_LIBRARY_PATH"] = run("bash", "-c", script).stdout
    for name, code in (("uses", USES_LIBRARIES), ("opens", OPENS), ("calls", CALLS)):
        (tmp_path / f"{name}.cpp").write_text(code)
    compile_ = ("g++", "-w", "-I", root / "include", "-L", root / "lib", "-ldl")
    names = ("nvrtc", "cusolverMg", "cudnn", "cufft", "cudart")
    search = [f"-Wl,-rpath-link,{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}"]
    links = [f"-l{name}" for name in names]
    run(*compile_, tmp_path / "uses.cpp", "-o", tmp_path / "uses", *search, *links)
    lines = run(tmp_path / "uses", code=0, **environment).stdout.splitlines()
    assert lines == [
        "nvrtcCompileProgram 0",
        "cusolverMgCreate 0",
        "cudnnGetVersion 0",
        "cufftGetVersion 0",
    ]
    run(*compile_, tmp_path / "calls.cpp", "-o", tmp_path / "calls")
    run(*compile_, "-shared", "-fPIC", tmp_path / "opens.cpp", "-o", tmp_path / "opens.so")
    opened = set()
    for path in sorted((root / "lib").glob("*.so*")):
        binary = read(path)
        own = sorted({name for name in binary.opens if (root / "lib" / name).exists()})
        if path.is_symlink() or not own:
            continue
        # The loader uses the run path of the library that calls it.
        opener = path.with_name("opener.so")
        opener.write_bytes((tmp_path / "opens.so").read_bytes())
        run(
            "patchelf", "--set-rpath", run("patchelf", "--print-rpath", path).stdout.strip(), opener
        )
        for name in own:
            command = [str(tmp_path / "calls"), str(opener), name]
            process = subprocess.run(
                command, env=os.environ | environment, check=False, capture_output=True, text=True
            )
            # Without a driver, a library that needs it is found, but not loaded.
            assert process.returncode == 0 or "libcuda.so.1:" in process.stderr, process.stderr
            opened.add(name)
        opener.unlink()
    assert {f"libnvrtc-builtins.so.{release[:4]}", "libcudnn_engines_precompiled.so"} <= opened


def include_names(release: str, platform: str) -> dict[str, list[str]]:
    """Return the include names of each package's headers."""
    document = Features.model_validate_json((FEATURES / f"feature_{release}.json").read_bytes())
    return {
        name: [
            path.removeprefix(root)
            for position, archive in enumerate(package.archives)
            if archive.platform == platform
            for path in package.files_of(position) or ()
            for root in ROOTS
            if path.startswith(root)
        ]
        for name, package in document.packages.items()
    }


@pytest.mark.parametrize("release", ["12.9.1", FIRST])
@pytest.mark.parametrize("component", ["libcurand", "libcusparse", "libnvjpeg", "cuda_cupti"])
def test_component_includes_headers_of_its_headers(
    component: str, release: str, tmp_path: Path
) -> None:
    set_path, root = tmp_path / "set.json", tmp_path / "cuda"
    cudaredist(
        *("build", "--channel", "wheels", "--data-dir", DATA, "--cuda", release),
        *("--platform", "linux-x86_64", "--output", set_path),
    )
    cudaredist(
        *("materialize", set_path, "--data-dir", DATA, "--output", root, "--component", component)
    )
    names = include_names(release, "linux-x86_64")
    nvidias = {name for of_package in names.values() for name in of_package}
    folders = [f"-I{root / folder}" for folder in ROOTS]
    missing = {}
    for name in names[component]:
        command = ["g++", "-E", "-x", "c++", *folders, str(root / "include" / name)]
        process = subprocess.run(command, check=False, capture_output=True, text=True)
        match = re.search(r"fatal error: (\S+): No such file", process.stderr)
        # Other headers require external headers (such as VDPAU) or contain an #error.
        if match is not None and match[1] in nvidias:
            missing[name] = match[1]
    assert names[component]
    assert missing == {}


def test_compiler_component_without_nvcc_is_refused(tmp_path: Path) -> None:
    set_path = tmp_path / "set.json"
    cudaredist(
        *("build", "--channel", "wheels", "--data-dir", DATA, "--cuda", "12.9.1"),
        *("--platform", "linux-x86_64", "--output", set_path),
    )
    root = tmp_path / "cuda"
    options = ("--data-dir", DATA, "--output", root, "--component", "compiler")
    process = cudaredist("materialize", set_path, *options, code=2)
    assert "do not include nvcc" in process.stderr
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"set.json"}
