"""Tests of audit: files that nothing in an environment loads."""

from pathlib import Path

import pytest
from support.binaries import Symbol, elf
from support.environments import install
from support.judged_environments import CUBLAS, TO_CUBLAS, findings, put_cublas

NCCL = "libcudart.so.12"
"""A library that only an extra of the package requires."""
EXTRA = ["nvidia-cuda-runtime-cu12; extra == 'mp'"]
INIT = [Symbol("PyInit_a")]


@pytest.mark.parametrize(
    ("requires", "opener", "main", "codes"),
    [
        (EXTRA, elf(), [CUBLAS], [0]),
        (["nvidia-cuda-runtime-cu12"], elf(), [CUBLAS], [1]),
        (EXTRA, elf(needed=["libplugin.so"], runpath="$ORIGIN/../example"), [CUBLAS], [1]),
        (EXTRA, elf(), [CUBLAS, NCCL], [1]),
    ],
    ids=["unused extra", "required", "needed by a file", "all files need the extra"],
)
def test_missing_library_of_an_unused_extra_is_a_warning(
    tmp_path: Path, requires: list[str], opener: bytes, main: list[str], codes: list[int]
) -> None:
    """libcutensorMp.so.2 needs NCCL, which only cutensor-cu12[mp] requires."""
    put_cublas(tmp_path)
    files: dict[str, bytes | str] = {
        "example/a.so": elf(needed=main, runpath=TO_CUBLAS, symbols=INIT),
        "example/libplugin.so": elf(soname="libplugin.so", needed=[NCCL]),
    }
    install(tmp_path, "example", "1.0", files, requires, ["mp"])
    install(tmp_path, "other", "1.0", {"other/b.so": opener})
    missing = [each for each in findings(tmp_path) if each.kind == "missing-library"]
    assert [each.exit_code for each in missing] == codes


def test_plugin_is_optional_if_the_main_library_lacks_another_library(tmp_path: Path) -> None:
    """libcutensor.so.2 without cuBLAS is a finding, and NCCL of libcutensorMp.so.2 is optional."""
    files: dict[str, bytes | str] = {
        "example/main.so": elf(needed=[CUBLAS]),
        "example/libplugin.so": elf(soname="libplugin.so", needed=[NCCL]),
    }
    install(tmp_path, "example", "1.0", files, EXTRA, ["mp"])
    missing = findings(tmp_path)
    assert [(each.path, each.exit_code) for each in missing] == [
        ("example/main.so", 1),
        ("example/libplugin.so", 0),
    ]


@pytest.mark.parametrize(
    ("project", "code"), [("other", 0), ("example", 1)], ids=["another package", "its own package"]
)
def test_plugin_of_an_unused_extra_that_a_file_opens(
    tmp_path: Path, project: str, code: int
) -> None:
    """libcutensornet.so.2 opens libcutensorMp.so.2, and works without it."""
    put_cublas(tmp_path)
    opener = elf(sections={".rodata": b"\0libplugin.so\0"})
    files: dict[str, bytes | str] = {
        "example/a.so": elf(needed=[CUBLAS], runpath=TO_CUBLAS),
        "example/libplugin.so": elf(soname="libplugin.so", needed=[NCCL]),
    }
    if project == "example":
        files["example/opener.so"] = opener
    install(tmp_path, "example", "1.0", files, EXTRA, ["mp"])
    install(tmp_path, "other", "1.0", {"other/opener.so": opener} if project == "other" else {})
    assert [each.exit_code for each in findings(tmp_path)] == [code]


TOOLKIT = "cuda-toolkit[cudart]; extra == 'ctk'"


@pytest.mark.parametrize(
    ("requires", "extras", "codes"),
    [
        (["example"], ["ctk"], [0]),
        ([], ["ctk"], [1]),
        (["example[ctk]"], ["ctk"], [1]),
        (["example"], [], [1]),
    ],
    ids=["required without the extra", "not required", "required with the extra", "no extra"],
)
def test_extension_of_an_unused_extra_is_optional_for_a_required_package(
    tmp_path: Path, requires: list[str], extras: list[str], codes: list[int]
) -> None:
    """cudf requires cupy without `ctk`: `import cupy` works, and `cupy.cuda.cufft` does not."""
    put_cublas(tmp_path)
    files: dict[str, bytes | str] = {
        "example/a.so": elf(needed=[CUBLAS], runpath=TO_CUBLAS, symbols=INIT),
        "example/b.so": elf(needed=[NCCL], symbols=INIT),
    }
    install(tmp_path, "example", "1.0", files, [TOOLKIT] if extras else [], extras)
    toolkit = ["nvidia-cuda-runtime-cu12; extra == 'cudart'"]
    install(tmp_path, "cuda-toolkit", "12.9", {}, toolkit, ["cudart"])
    install(tmp_path, "cudf", "1.0", {}, requires)
    missing = [each for each in findings(tmp_path) if each.kind == "missing-library"]
    assert [each.exit_code for each in missing] == codes


@pytest.mark.parametrize(("name", "code"), [("a.so", 0), ("b.so", 1)])
def test_plugin_whose_libraries_an_extension_of_its_package_loads_is_a_warning(
    tmp_path: Path, name: str, code: int
) -> None:
    """liblightning_gpu_catalyst.so has no run path, and is for a package that is not installed."""
    put_cublas(tmp_path)
    symbols = INIT if name == "a.so" else []
    files: dict[str, bytes | str] = {
        f"example/{name}": elf(needed=[CUBLAS], runpath=TO_CUBLAS, symbols=symbols),
        "example/libplugin.so": elf(soname="libplugin.so", needed=[CUBLAS]),
    }
    install(tmp_path, "example", "1.0", files)
    (finding,) = findings(tmp_path)
    assert finding.exit_code == code
    assert finding.message.endswith("optional for example 1.0") == (not code)
