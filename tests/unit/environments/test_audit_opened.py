"""Tests of audit: libraries that the files of an environment open when they run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.binaries import Symbol, elf, pe
from support.environments import install, library
from support.programs import audit_data, cudnn, known

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.environments.load_all import load_all
from cudaredist.environments.read_program import ProgramReader
from cudaredist.programs.finding import Finding
from cudaredist.programs.program import KnownLibrary
from cudaredist.store.cache import Cache

NVRTC, BUILTINS = "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"
FOLDER = "nvidia/cu13/lib"
CUDNN, SPARSE = "libcudnn.so.9", "libcusparseLt.so.0"


def nvrtc(label: str, *, finds_parts: bool) -> list[KnownLibrary]:
    names = (NVRTC, BUILTINS)
    libraries = (known(name, label, "cuda_nvrtc", "nvidia-cuda-nvrtc") for name in names)
    return [each._replace(finds_parts=finds_parts or each.soname != NVRTC) for each in libraries]


LIBRARIES = [
    *nvrtc("13.0.2", finds_parts=False),
    *nvrtc("13.1.2", finds_parts=True),
    *cudnn("9.1.1", 12),
    known("libcudnn_graph.so.9", "9.1.1", "cudnn", "nvidia-cudnn-cu12", redist="cudnn"),
    known("libcudnn_engines_tensor_ir.so.9", "9.21.1", "cudnn", "x-cu12", redist="cudnn"),
    known("libcublasLt.so.13", "13.0.2", "libcublas", "nvidia-cublas"),
    known(SPARSE, "0.8.1", "libcusparse_lt", "nvidia-cusparselt-cu13", redist="cusparselt"),
]


def findings(folder: Path, libraries: Sequence[KnownLibrary] = LIBRARIES) -> list[Finding]:
    reader = ProgramReader(cache=Cache(folder.with_suffix(".cache")), paths=[folder])
    (environment,) = reader.read_all().environments
    data = audit_data(libraries)
    return list(JudgedEnvironment(load_all(environment, data), data).findings())


def opening(*names: str, calls: Sequence[str] = (), **facts: Any) -> bytes:
    """Return a library with names of others in its data, and symbols that it uses."""
    data = "\0".join(["", *names, ""]).encode()
    symbols = [Symbol(name, is_defined=False) for name in calls]
    return elf(sections={".rodata": data}, symbols=symbols, **facts)


def put_nvrtc(site: Path, version: str = "13.0.2.7", **facts: Any) -> None:
    """Install NVRTC, which opens its builtins."""
    files = {
        f"{FOLDER}/{NVRTC}": opening(BUILTINS, soname=NVRTC, **facts),
        f"{FOLDER}/{BUILTINS}": elf(soname=BUILTINS),
    }
    install(site, "nvidia-cuda-nvrtc", version, files)


# -- libraries of NVIDIA


def test_library_that_opens_an_older_version_of_itself_is_no_finding(tmp_path: Path) -> None:
    files = {f"{FOLDER}/{SPARSE}": opening("libcusparseLt.so.9", soname=SPARSE)}
    install(tmp_path, "nvidia-cusparselt-cu13", "0.8.1", files)
    assert findings(tmp_path) == []


def test_library_that_does_not_find_its_part_is_a_finding(tmp_path: Path) -> None:
    """NVRTC 13.0.88 has no run path, and fails to compile any program."""
    put_nvrtc(tmp_path)
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("missing-library", 1)
    assert finding.message == (
        f"the loader does not find {BUILTINS}, which {FOLDER}/{NVRTC} opens, although the "
        f"environment has {FOLDER}/{BUILTINS}"
    )
    assert finding.hint == "pip install 'nvidia-cuda-nvrtc>=13.1.2.7'"


@pytest.mark.parametrize("facts", [{"runpath": "$ORIGIN"}, {"calls": ["dladdr"]}])
def test_library_finds_its_part_by_its_run_path_or_its_own_path(
    tmp_path: Path, facts: dict[str, Any]
) -> None:
    """CUPTI asks for its own path."""
    put_nvrtc(tmp_path, **facts)
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("run_path", "own", "codes"),
    [
        ({"rpath": "$ORIGIN/../nvidia/cu13/lib"}, {}, [0]),
        ({"runpath": "$ORIGIN/../nvidia/cu13/lib"}, {}, [1]),
        ({"rpath": "$ORIGIN/../nvidia/cu13/lib"}, {"runpath": "/nowhere"}, [1]),
    ],
    ids=["rpath", "runpath", "own run path"],
)
def test_part_found_by_the_run_path_of_a_caller_is_a_warning(
    tmp_path: Path, run_path: dict[str, Any], own: dict[str, Any], codes: Sequence[int]
) -> None:
    put_nvrtc(tmp_path, **own)
    user = elf(needed=[NVRTC], **run_path)
    install(tmp_path, "example", "1.0", {"example/a.so": user})
    found = findings(tmp_path)
    assert [each.exit_code for each in found] == codes
    assert ("by the run path of example/a.so" in found[0].message) == (codes == [0])


def test_variant_that_no_program_loads_is_not_reported(tmp_path: Path) -> None:
    name = "libnvrtc.alt.so.13"
    files = {
        f"{FOLDER}/{name}": opening("libnvrtc-builtins.alt.so.13.0", soname=name),
        f"{FOLDER}/libnvrtc-builtins.alt.so.13.0": elf(),
    }
    install(tmp_path, "nvidia-cuda-nvrtc", "13.0.2.7", files)
    assert findings(tmp_path) == []


@pytest.mark.parametrize("has_nvrtc", [False, True])
def test_nvrtc_that_cublaslt_does_not_find_is_a_warning(tmp_path: Path, *, has_nvrtc: bool) -> None:
    """cuBLASLt of NVIDIA's wheels has no run path to NVRTC, and works without it."""
    if has_nvrtc:
        put_nvrtc(tmp_path, runpath="$ORIGIN")
    files = {"nvidia/cublas/lib/libcublasLt.so.13": opening(NVRTC, soname="libcublasLt.so.13")}
    install(tmp_path, "nvidia-cublas", "13.0.2.7", files)
    found = findings(tmp_path)
    assert [each.exit_code for each in found] == [0] * has_nvrtc
    assert [f"although the environment has {FOLDER}/{NVRTC}" in n.message for n in found] == (
        [True] * has_nvrtc
    )


def test_library_that_a_package_loads_first_is_found(tmp_path: Path) -> None:
    put_nvrtc(tmp_path, runpath="$ORIGIN")
    files = {"nvidia/cusparselt/lib/libcusparseLt.so.0": opening(NVRTC)}
    install(tmp_path, "nvidia-cusparselt-cu13", "0.8.1", files)
    (finding,) = findings(tmp_path)
    assert (finding.exit_code, "libcusparseLt.so.0 opens" in finding.message) == (1, True)
    install(tmp_path, "torch", "2.9", {"torch/__init__.py": "_preload_cuda_deps"})
    assert findings(tmp_path) == []


def test_copy_of_a_library_does_not_find_its_parts(tmp_path: Path) -> None:
    """ctranslate2 contains a renamed cuDNN, which opens its parts with several versions."""
    folder = "nvidia/cudnn/lib"
    graph = {f"{folder}/libcudnn_graph.so.9": library("libcudnn_graph.so.9")}
    install(tmp_path, "nvidia-cudnn-cu12", "9.5.1", graph)
    stub = opening("libcudnn.so.9", "libcudnn_graph.so", soname="libcudnn-74a4c495.so.9.1.0")
    install(tmp_path, "example", "1.0", {"example.libs/libcudnn-74a4c495.so.9.1.0": stub})
    (finding,) = findings(tmp_path)
    assert finding.exit_code == 1
    assert "does not find libcudnn_graph.so, which example.libs/" in finding.message
    assert finding.hint == f"export LD_LIBRARY_PATH={tmp_path}/{folder}"


@pytest.mark.parametrize(
    ("name", "folder", "codes"),
    [
        ("libcudnn_engines_tensor_ir.so", "nvidia/cu13/lib", [0]),
        ("libcudnn_engines_tensor_ir.so", "nvidia/cudnn/lib", []),
        (NVRTC, "nvidia/cu13/lib", []),
    ],
    ids=["in another copy", "in the same folder", "of another product"],
)
def test_optional_name_in_a_library_of_nvidia(
    tmp_path: Path, name: str, folder: str, codes: Sequence[int]
) -> None:
    """cuDNN 9.20 opens a part that its wheel does not have, but that of 9.21."""
    graph = opening(name, soname="libcudnn_graph.so.9", runpath="$ORIGIN")
    files = {"nvidia/cudnn/lib/libcudnn_graph.so.9": graph}
    install(tmp_path, "nvidia-cudnn-cu12", "9.20.0", files)
    found = {f"{folder}/{name}.9": elf(), f"{folder}/{NVRTC}": elf()}
    install(tmp_path, "other", "1.0", found)
    assert [each.exit_code for each in findings(tmp_path)] == codes


def test_wheel_with_invalid_version_keeps_the_fix_of_its_folder(tmp_path: Path) -> None:
    put_nvrtc(tmp_path, "unknown")
    (finding,) = findings(tmp_path)
    assert finding.hint == f"export LD_LIBRARY_PATH={tmp_path}/{FOLDER}"


# -- libraries of others


@pytest.mark.parametrize(
    ("facts", "count"),
    [({}, 1), ({"runpath": f"$ORIGIN/../{FOLDER}"}, 0), ({"needed": ["libb.so"]}, 0)],
    ids=["nowhere", "by its run path", "by a needed library"],
)
def test_optional_library_that_is_not_found_is_a_warning(
    tmp_path: Path, facts: dict[str, Any], count: int
) -> None:
    put_nvrtc(tmp_path, calls=["dladdr"])
    rest = {} if "runpath" in facts else {"runpath": "$ORIGIN"}
    files = {
        "example/a.so": opening(NVRTC, **facts, **rest),
        "example/libb.so": elf(needed=[NVRTC], runpath=f"$ORIGIN/../{FOLDER}"),
    }
    install(tmp_path, "example", "1.0", files)
    found = findings(tmp_path)
    assert [each.exit_code for each in found] == [0] * count


@pytest.mark.parametrize("needed", [[], [CUDNN]], ids=["opened", "needed"])
def test_other_version_of_an_installed_library_is_optional(
    tmp_path: Path, needed: list[str]
) -> None:
    """onnxruntime opens the libraries of CUDA 12 and 13."""
    install(tmp_path, "x-cu12", "9.1", {f"nvidia/cudnn/lib/{CUDNN}": elf(soname=CUDNN)})
    names = ["libcudnn.so.8", *([] if needed else [CUDNN])]
    content = opening(*names, needed=needed, runpath="$ORIGIN/../nvidia/cudnn/lib")
    install(tmp_path, "example", "1.0", {"example/a.so": content})
    assert findings(tmp_path) == []


def test_library_that_is_not_installed_is_optional(tmp_path: Path) -> None:
    install(tmp_path, "example", "1.0", {"example/a.so": opening(CUDNN)})
    (finding,) = findings(tmp_path)
    assert (finding.exit_code, finding.hint) == (0, None)
    assert finding.message.endswith("example/a.so opens; optional for example 1.0")


@pytest.mark.parametrize(
    ("requires", "hint"),
    [
        (
            ["nvidia-cudnn-cu12; extra == 'gpu'", "nvidia-cuda-nvrtc; extra == 'gpu'"],
            "pip install 'example[gpu]==1.0'",
        ),
        (["nvidia-cudnn-cu12; extra == 'gpu'", "other; extra == 'gpu'"], None),
        (["nvidia-cudnn-cu12"], "pip install 'nvidia-cudnn-cu12>=9.1.1.7,<10'"),
    ],
    ids=["used extra", "unused extra", "required"],
)
def test_declared_library_that_is_not_installed_is_a_finding(
    tmp_path: Path, requires: Sequence[str], hint: str | None
) -> None:
    put_nvrtc(tmp_path, runpath="$ORIGIN")
    files = {"example/a.so": opening(CUDNN)}
    install(tmp_path, "example", "1.0", files, requires, extras=["gpu"])
    (finding,) = findings(tmp_path)
    assert (finding.exit_code, finding.hint) == (0 if hint is None else 1, hint)


def test_optional_libraries_of_several_packages_are_one_warning(tmp_path: Path) -> None:
    for project in ("example", "other"):
        install(tmp_path, project, "1.0", {f"{project}/a.so": opening(CUDNN)})
    (finding,) = findings(tmp_path)
    assert finding.exit_code == 0
    assert finding.message == (
        f"the loader does not find {CUDNN}, which example/a.so, other/a.so opens; optional for "
        "example 1.0, other 1.0"
    )


def test_package_opens_its_own_copy(tmp_path: Path) -> None:
    files = {"example/a.so": opening(CUDNN), f"example/lib/{CUDNN}": library(CUDNN)}
    install(tmp_path, "example", "1.0", files)
    assert findings(tmp_path) == []


def test_library_that_is_opened_with_another_one_is_found(tmp_path: Path) -> None:
    """TensorFlow opens cuBLASLt, and NVRTC, which cuBLASLt opens."""
    put_nvrtc(tmp_path, runpath="$ORIGIN")
    files = {f"nvidia/cusparselt/lib/{SPARSE}": opening(NVRTC, runpath="$ORIGIN")}
    install(tmp_path, "nvidia-cusparselt-cu13", "0.8.1", files)
    paths = ":".join(f"$ORIGIN/../{folder}" for folder in (FOLDER, "nvidia/cusparselt/lib"))
    install(tmp_path, "example", "1.0", {"example/a.so": opening(NVRTC, SPARSE, runpath=paths)})
    assert findings(tmp_path) == []


# -- Windows


CUBLAS_DLL = "cublas64_12.dll"
DLLS = [
    known(CUBLAS_DLL, "12.4.1", platform="windows-x86_64"),
    known("cublas64_13.dll", "13.0.2", project="nvidia-cublas", platform="windows-x86_64"),
    *(
        each._replace(soname=name, platform="windows-x86_64")
        for each in cudnn("9.5.1", 12, 13)
        for name in ("cudnn64_9.dll", "cudnn_ops64_9.dll")
    ),
]


def opening_dll(*names: str, **facts: Any) -> bytes:
    """Return a DLL with names of others in its data."""
    return pe(sections={".data": "\0".join(["", *names, ""]).encode()}, **facts)


def put_dlls(site: Path, *others: str, **facts: Any) -> None:
    """Install a package like ctranslate2, which opens cuBLAS by its name."""
    files = {"example/example.dll": opening_dll("nvcuda.dll", CUBLAS_DLL, **facts)}
    files |= {f"example/{name}": pe(name=name) for name in others}
    install(site, "example", "1.0", files)


def test_dll_that_is_opened_and_absent_is_a_warning(tmp_path: Path) -> None:
    """ctranslate2 4.8.5: "Library cublas64_12.dll is not found or cannot be loaded"."""
    put_dlls(tmp_path)
    (finding,) = findings(tmp_path, DLLS)
    assert finding.message == (
        f"the loader does not find {CUBLAS_DLL}, which example/example.dll opens; "
        "optional for example 1.0"
    )
    assert (finding.exit_code, finding.hint) == (0, None)


def test_dll_that_is_imported_and_absent_is_a_finding(tmp_path: Path) -> None:
    put_dlls(tmp_path, imports=[CUBLAS_DLL])
    (finding,) = findings(tmp_path, DLLS)
    assert finding.exit_code == 1
    assert finding.hint == "pip install 'nvidia-cublas-cu12>=12.4.1.7'"


def test_wheels_of_all_imported_dlls_are_installed_at_once(tmp_path: Path) -> None:
    put_dlls(tmp_path, imports=[CUBLAS_DLL, "cudnn64_9.dll"])
    (finding,) = findings(tmp_path, DLLS)
    assert finding.hint == (
        "pip install 'nvidia-cublas-cu12>=12.4.1.7' 'nvidia-cudnn-cu12>=9.5.1.7,<10'"
    )


def test_imported_dll_that_the_package_works_without_is_a_warning(tmp_path: Path) -> None:
    """`import cupy` works without cuDNN."""
    files = {"cupy/cudnn.pyd": pe(imports=["cudnn64_9.dll"])}
    install(tmp_path, "cupy-cuda12x", "13.6.0", files)
    (finding,) = findings(tmp_path, DLLS)
    assert finding.exit_code == 0


@pytest.mark.parametrize("name", [CUBLAS_DLL, "CUBLAS64_12.DLL"])
def test_dll_in_the_environment_is_found(tmp_path: Path, name: str) -> None:
    put_dlls(tmp_path, name, imports=[CUBLAS_DLL])
    assert findings(tmp_path, DLLS) == []


@pytest.mark.parametrize("variable", ["PATH", "CUDA_PATH"])
def test_dll_in_path_is_found(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_dlls(tmp_path / "env")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / CUBLAS_DLL).write_bytes(pe(name=CUBLAS_DLL))
    monkeypatch.setenv(variable, str(folder if variable == "PATH" else tmp_path))
    assert findings(tmp_path / "env", DLLS) == []


def test_part_of_a_copied_dll_is_a_finding_with_the_wheel_for_its_cuda(tmp_path: Path) -> None:
    """ctranslate2 contains cudnn64_9.dll alone: "Could not locate cudnn_ops64_9.dll"."""
    copy = opening_dll("cudnn_ops64_9.dll", name="cudnn64_9.dll")
    files = {"example/cudnn64_9.dll": copy, "example/example.dll": opening_dll(CUBLAS_DLL)}
    install(tmp_path, "example", "1.0", files)
    finding, _ = findings(tmp_path, DLLS)
    assert "cudnn_ops64_9.dll" in finding.message
    assert finding.hint == "pip install 'nvidia-cudnn-cu12>=9.5.1.7,<10'"
