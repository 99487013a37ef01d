"""Tests of audit: answers to status codes, compilers, drivers and libraries of other packages."""

from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.binaries import elf
from support.environments import install, library, user
from support.programs import audit_data, cudnn, known, table

from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.error_message import parse_message
from cudaredist.environments.read_program import ProgramReader
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import ErrorAnswer
from cudaredist.store.cache import Cache
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern

DATA = REPOSITORY / "data"
CUDNN, FOLDER = "libcudnn.so.9", "nvidia/cudnn/lib"
NOT_INITIALIZED = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"
LIBRARIES = [
    *cudnn("9.5.1", 12),
    *cudnn("9.8.0", 12),
    known("libcublas.so.12", "12.4.1"),
    known("libnvvm.so.4", "12.4.1", "cuda", "nvidia-cuda-nvcc-cu12"),
]
TABLES = {CUDNN: table(CUDNN, {"9.5.1": ["old"], "9.8.0": ["old", "new"]}, f"@@{CUDNN}")}


class SymbolsOfCudnn:
    """An index with the symbols of cuDNN. The shipped one takes long to make."""

    def exporting(self, pattern: SymbolPattern) -> tuple[str, ...]:
        return (CUDNN,) if pattern.text.startswith("cudnn") else ()


def answers(site: Path, text: str) -> list[ErrorAnswer]:
    """Return the answers to a message."""
    data = audit_data(LIBRARIES, TABLES)._replace(
        drivers=DriverPolicy.model_validate_json((DATA / "policy/drivers.json").read_bytes()),
    )
    message = parse_message(text, SymbolsOfCudnn(), data.catalog, data.policy)  # type: ignore[arg-type] # all that it needs
    reader = ProgramReader(cache=Cache(site.with_suffix(".cache")), paths=[site])
    report = audit_report(reader.read_all(), data, AuditRequirements(), message)
    return [*report.answers]


def put_cudnn(site: Path, version: str = "9.5.1.17") -> None:
    files = {f"{FOLDER}/{CUDNN}": library(CUDNN, "old")}
    install(site, "nvidia-cudnn-cu12", version, files)


def put_torch(site: Path, *requires: str) -> None:
    program = user(CUDNN, "old", runpath=f"$ORIGIN/../../{FOLDER}")
    install(site, "torch", "2.8.0", {"torch/lib/libtorch_cuda.so": program}, requires=requires)


# -- status codes


def test_status_has_the_findings_about_the_library(tmp_path: Path) -> None:
    put_cudnn(tmp_path)
    put_torch(tmp_path, "nvidia-cudnn-cu12==9.8.0.87")
    (answer,) = answers(tmp_path, NOT_INITIALIZED)
    words = "torch 2.8.0 requires nvidia-cudnn-cu12==9.8.0.87, but 9.5.1.17 is installed"
    assert answer.message == words
    assert answer.hint == "pip install nvidia-cudnn-cu12==9.8.0.87"


def test_status_of_a_complete_library_names_the_loaded_file_and_other_causes(
    tmp_path: Path,
) -> None:
    put_cudnn(tmp_path)
    put_torch(tmp_path)
    (answer,) = answers(tmp_path, NOT_INITIALIZED)
    title = f"{FOLDER}/{CUDNN} (nvidia-cudnn-cu12 9.5.1.17)"
    assert answer.message.startswith(f"the loader finds {title}, and no finding explains it")
    assert "Add --require-gpu host" in answer.message


def test_status_of_another_library_has_no_finding_about_this_one(tmp_path: Path) -> None:
    put_cudnn(tmp_path)
    put_torch(tmp_path, "nvidia-cudnn-cu12==9.8.0.87")
    (answer,) = answers(tmp_path, "CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`")
    assert answer.message.startswith("no file of the environment is libcublas")


def test_version_that_torch_was_compiled_with_is_required(tmp_path: Path) -> None:
    put_cudnn(tmp_path)
    put_torch(tmp_path)
    text = "PyTorch was compiled  against (9, 8, 0) but found runtime version (9, 5, 1)."
    (answer,) = answers(tmp_path, text)
    assert answer.message.endswith("which is too old: 9.8.0 or later is needed")
    assert answer.hint == "pip install 'nvidia-cudnn-cu12>=9.8.0'"


def test_old_library_of_conda_has_the_command_of_conda(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / CUDNN).write_bytes(library(CUDNN, "old"))
    site = tmp_path / "lib/python3.12/site-packages"
    program = elf(needed=[CUDNN], runpath="$ORIGIN/../../..")
    install(site, "jaxlib", "0.8.1", {"jaxlib/a.so": program})
    text = "Loaded runtime CuDNN library: 9.5.1 but source was compiled with: 9.8.0."
    (answer,) = answers(tmp_path, text)
    assert answer.path == f"lib/{CUDNN}"
    assert answer.hint == f"conda install --prefix {tmp_path} 'cudnn>=9.8.0'"


# -- compilers, GPUs and drivers


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
            "capability 12.0 needs a compiler of CUDA 12.8 or later; the environment has "
            "nvidia-cuda-nvcc-cu12 12.4.131",
            "pip install 'nvidia-cuda-nvcc-cu12>=12.8'",
        ),
        (
            "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
            "capability 12.1 needs a compiler of CUDA 12.9 or later",
            "pip install 'nvidia-cuda-nvcc-cu12>=12.9'",
        ),
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_90'",
            "nvidia-cuda-nvcc-cu12 12.4.131 knows it, so another compiler is used",
            None,
        ),
        (
            "nvrtc: error: invalid value for --gpu-architecture (-arch)",
            "Name your GPU with --require-gpu",
            None,
        ),
    ],
)
def test_compiler_that_does_not_know_the_gpu_has_a_later_release(
    tmp_path: Path, text: str, words: str, hint: str | None
) -> None:
    install(tmp_path, "nvidia-cuda-nvcc-cu12", "12.4.131", {"bin/ptxas": elf()})
    (answer,) = answers(tmp_path, text)
    assert words in answer.message
    assert answer.hint == hint


def test_compiler_in_a_package_of_others_is_named(tmp_path: Path) -> None:
    install(tmp_path, "triton", "3.1.0", {"triton/backends/nvidia/bin/ptxas": elf()})
    (answer,) = answers(tmp_path, "Value 'sm_120' is not defined for option 'gpu-name'")
    assert "triton/backends/nvidia/bin/ptxas of triton 3.1.0" in answer.message


def test_message_of_torch_is_about_the_gpu_that_it_does_not_support(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.5.0", {"torch/a.so": elf()})
    text = "RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch.\n"
    text += "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_80 sm_90."
    assert [answer.name for answer in answers(tmp_path, text)] == ["12.0"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.so": elf()}, "After an update of the driver, restart the machine"),
        ({"compat/libcuda.so.1": elf()}, "has compat/libcuda.so.1, which must not come first"),
    ],
)
def test_driver_of_two_versions_is_explained(
    tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    install(tmp_path, "example", "1.0", files)
    text = "Error 803: system has unsupported display driver / cuda driver combination"
    (answer,) = answers(tmp_path, text)
    assert words in answer.message


def test_symbol_of_the_driver_needs_a_later_driver(tmp_path: Path) -> None:
    install(tmp_path, "example", "1.0", {"example/a.so": elf()})
    (answer,) = answers(tmp_path, "a.so: undefined symbol: cuMemcpyBatchAsync_v2")
    assert "cuMemcpyBatchAsync_v2 is named like a function of libcuda.so.1" in answer.message
    assert "too old to have it" in answer.message


# -- libraries of other packages


def test_file_for_another_cuda_release_has_a_later_version(tmp_path: Path) -> None:
    names = [f"bitsandbytes/libbitsandbytes_cuda{release}.so" for release in (118, 124)]
    install(tmp_path, "bitsandbytes", "0.45.0", dict.fromkeys(names, elf()))
    text = "Configured CUDA binary not found at /x/bitsandbytes/libbitsandbytes_cuda130.so"
    (answer,) = answers(tmp_path, text)
    words = "bitsandbytes 0.45.0 has no libbitsandbytes_cuda130.so, but files for CUDA 118, 124"
    assert answer.message.startswith(words)
    assert answer.hint == "pip install 'bitsandbytes>0.45.0'"


def test_library_of_a_package_that_is_not_imported_names_it(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.8.0", {"torch/lib/libc10.so": elf()})
    install(tmp_path, "ext", "1.0", {"ext/_C.so": elf(needed=["libc10.so"])})
    (answer,) = answers(tmp_path, "ImportError: libc10.so: cannot open shared object file")
    words = "ext/_C.so (ext 1.0) needs torch/lib/libc10.so, and no run path leads to its folder"
    assert answer.message == f"{words}. Import torch of torch 2.8.0 first"


def test_library_that_no_package_contains_names_its_user(tmp_path: Path) -> None:
    install(tmp_path, "ext", "1.0", {"ext/_C.so": elf(needed=["libc10_cuda.so"])})
    (answer,) = answers(tmp_path, "libc10_cuda.so: cannot open shared object file")
    words = "no file of the environment is libc10_cuda.so, which ext/_C.so (ext 1.0) needs"
    assert answer.message == words


def test_library_that_no_file_explains_has_no_answer(tmp_path: Path) -> None:
    install(tmp_path, "ext", "1.0", {"ext/_C.so": elf()})
    assert answers(tmp_path, "libz.so.1: cannot open shared object file") == []


# -- libraries of NVIDIA that no file needs


def test_absent_library_is_installed_with_the_extra_of_its_user(tmp_path: Path) -> None:
    requires = ["nvidia-cudnn-cu12==9.5.1.17; extra == 'and-cuda'"]
    install(tmp_path, "tensorflow", "2.15.1", {"a.so": elf()}, requires, extras=["and-cuda"])
    (answer,) = answers(tmp_path, "Could not load dynamic library 'libcudnn.so.9'")
    assert answer.message.endswith("contains it; tensorflow[and-cuda] installs it")
    assert answer.hint == "pip install 'tensorflow[and-cuda]==2.15.1'"


def test_absent_library_of_several_extras_names_them(tmp_path: Path) -> None:
    requires = [
        "cuda-toolkit[nvcc]==12.*; extra == 'cu12'",
        "cuda-toolkit[nvcc]==13.*; extra == 'cu13'",
        "cuda-toolkit[cublas]==12.*; extra == 'blas'",
    ]
    extras = ["blas", "cu12", "cu13"]
    install(tmp_path, "numba-cuda", "0.30.4", {"a.so": elf()}, requires, extras=extras)
    for text in ("libNVVM cannot be found", "libdevice not found at ./libdevice.10.bc"):
        (answer,) = answers(tmp_path, text)
        assert answer.message.endswith("; numba-cuda[cu12] installs it")


def test_absent_library_is_of_the_cuda_major_of_opened_libraries(tmp_path: Path) -> None:
    content = b"\0libcublas.so.12\0"
    install(tmp_path, "ctranslate2", "4.8.5", {"a.so": elf(sections={".rodata": content})})
    text = "Unable to load any of {libcudnn.so.9.1, libcudnn.so.9}. cannot find symbol cudnnCreate"
    (answer,) = answers(tmp_path, text)
    assert answer.hint == "pip install nvidia-cudnn-cu12"
