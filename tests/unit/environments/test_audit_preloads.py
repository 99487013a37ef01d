"""Tests of audit: libraries that packages load before their own files."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.binaries import Symbol, elf
from support.environments import install, library, user
from support.judged_environments import (
    CUBLAS,
    FOLDER,
    LABELS,
    TABLES,
    TO_CUBLAS,
    findings,
    judge,
    kinds_of_report,
    loaded,
    put_cublas,
    put_example,
)
from support.programs import audit_data, cuda, cudnn

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.environments.load_all import load_all
from cudaredist.environments.read_program import ProgramReader
from cudaredist.formats.library_policy import Preload
from cudaredist.store.cache import Cache


@pytest.mark.parametrize(
    ("code", "requires", "found_by", "codes"),
    [
        ("_preload_cuda_deps", ["torch"], "preloaded", []),
        ("_preload_cuda_deps", ["middle[gpu]"], "preloaded", []),
        ("_preload_cuda_deps", ["middle"], "preloaded", [0]),
        ("_preload_cuda_deps", [], "preloaded", [0]),
        ("nothing", ["torch"], "other-code", [1]),
    ],
    ids=["required", "by an extra", "extra not required", "only installed", "other version"],
)
def test_library_is_loaded_first_by_convention(
    tmp_path: Path, code: str, requires: Sequence[str], found_by: str, codes: Sequence[int]
) -> None:
    put_cublas(tmp_path, "old")
    install(tmp_path, "torch", "2.9", {"torch/__init__.py": code})
    install(tmp_path, "middle", "1.0", {}, ["torch; extra == 'gpu'"])
    put_example(tmp_path, user(CUBLAS, "old"), *requires)
    (each,) = loaded(tmp_path)
    rule = "torch/__init__.py: _preload_cuda_deps" if found_by == "preloaded" else None
    assert (each.found_by, each.rule) == (found_by, rule)
    assert [finding.exit_code for finding in findings(tmp_path)] == codes


def test_extension_that_needs_a_library_of_torch_is_loaded_after_torch(tmp_path: Path) -> None:
    """The metadata of torchaudio does not require torch."""
    put_cublas(tmp_path, "old")
    files: dict[str, bytes | str] = {
        "torch/__init__.py": "_preload_cuda_deps",
        "torch/lib/libtorch.so": user(CUBLAS),
    }
    install(tmp_path, "torch", "2.9", files)
    put_example(tmp_path, elf(needed=["libtorch.so", CUBLAS]))
    assert {each.found_by for each in loaded(tmp_path)} == {"preloaded"}
    assert findings(tmp_path) == []


@pytest.mark.parametrize("requires", [["torch"], []], ids=["loaded by torch", "unlinked"])
def test_library_that_is_loaded_first_need_not_be_listed(
    tmp_path: Path, requires: Sequence[str]
) -> None:
    put_cublas(tmp_path, "old")
    install(tmp_path, "torch", "2.9", {"torch/__init__.py": "_preload_cuda_deps"})
    lib = "libcublasLt.so.12"
    install(tmp_path, "nvidia-cublas-lt", "12.4.1.7", {f"{FOLDER}/{lib}": library(lib)})
    symbols = [Symbol("old", is_defined=False)]
    put_example(tmp_path, elf(needed=[lib], runpath=TO_CUBLAS, symbols=symbols), *requires)
    assert ("unlinked-library" in kinds_of_report(tmp_path)) == (not requires)


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (("a/cupti/libcudart.so.12", "a/cupti-blackwell/libcudart.so.12"), set()),
        (("a.libs/libcudart-0123abcd.so.12", "b.libs/libcudart.89abcdef.so.12"), set()),
        (("a/libcudart.so.12", "b/libcudart.so.12"), {"duplicate-library"}),
    ],
    ids=["of one package", "private", "of two packages"],
)
def test_copies_of_one_package_and_private_copies_do_not_count(
    tmp_path: Path, names: Sequence[str], kinds: set[str]
) -> None:
    files = {name: library("libcudart.so.12") for name in names}
    first, second = files
    is_one = first.startswith("a/cupti")
    install(tmp_path, "example", "1.0", files if is_one else {first: files[first]})
    if not is_one:
        install(tmp_path, "other", "1.0", {second: files[second]})
    assert kinds_of_report(tmp_path) == kinds


def test_libraries_of_a_package_that_is_not_required_are_one_warning(tmp_path: Path) -> None:
    put_cublas(tmp_path, "old")
    runtime = {"nvidia/cuda_runtime/lib/libcudart.so.12": library("libcudart.so.12")}
    install(tmp_path, "nvidia-cuda-runtime-cu12", "12.4.1.7", runtime)
    install(tmp_path, "torch", "2.9", {"torch/__init__.py": "_preload_cuda_deps"})
    put_example(tmp_path, elf(needed=[CUBLAS, "libcudart.so.12"]))
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("run-path", 0)
    assert finding.message == (
        f"the loader does not find {CUBLAS}, libcudart.so.12 for example/a.so, unless "
        "torch/__init__.py: _preload_cuda_deps loads them first"
    )


@pytest.mark.parametrize(
    ("requires", "code", "hint"),
    [
        (["tensorrt<11,>=10.3"], 1, "pip install 'tensorrt>=10.3,<11'"),
        (["tensorrt-cu13-libs==11.0"], 1, "pip install tensorrt-cu13-libs==11.0"),
        (["numpy"], 0, None),
    ],
)
def test_missing_library_of_tensorrt_is_a_finding_if_a_package_requires_it(
    tmp_path: Path, requires: Sequence[str], code: int, hint: str | None
) -> None:
    """torch-tensorrt requires it, and onnxruntime does not."""
    put_example(tmp_path, user("libnvinfer.so.11"), *requires)
    (finding,) = findings(tmp_path)
    assert "does not find libnvinfer.so.11 for example/a.so" in finding.message
    assert (finding.exit_code, finding.hint) == (code, hint)


@pytest.mark.parametrize(
    ("libraries", "found_by"),
    [("", "preloaded"), ("libcublas.so.*[0-9]", "preloaded"), ("libcudnn.so.9", "other-code")],
    ids=["of any name", "named", "others named"],
)
def test_library_is_loaded_first_if_the_installed_module_names_it(
    tmp_path: Path, libraries: str, found_by: str
) -> None:
    """torch 2.12.1 loads cuRAND, and torch 2.15.0 does not."""
    put_cublas(tmp_path, "old")
    code = f"def _preload_cuda_deps():\n    load({libraries!r})"
    install(tmp_path, "torch", "2.9", {"torch/__init__.py": code})
    put_example(tmp_path, user(CUBLAS, "old"), "torch")
    assert [each.found_by for each in loaded(tmp_path)] == [found_by]


@pytest.mark.parametrize(
    ("code", "soname", "is_called"),
    [("def preload_dlls()", CUBLAS, True), ("", CUBLAS, False), ("preload_dlls", "libx.so", False)],
)
def test_function_that_programs_must_call_is_the_answer(
    tmp_path: Path, code: str, soname: str, *, is_called: bool
) -> None:
    rule = Preload(
        projects=("onnxruntime-gpu",),
        module="onnxruntime/__init__.py",
        function="preload_dlls",
        names=("libcublas.so.*",),
        is_called=True,
        reason="loads libraries",
        reference="onnxruntime-gpu 1.31.1",
    )
    put_cublas(tmp_path)
    files: dict[str, bytes | str] = {
        "onnxruntime/__init__.py": code,
        "onnxruntime/a.so": user(CUBLAS),
    }
    install(tmp_path, "onnxruntime-gpu", "1.31", files)
    data = audit_data(cuda(*LABELS), TABLES)
    rules = (rule.model_copy(update={"names": (f"{soname[:-3]}*",)}),)
    data = data._replace(policy=data.policy.model_copy(update={"preloads": rules}))
    reader = ProgramReader(cache=Cache(tmp_path.with_suffix(".cache")), paths=[tmp_path])
    (environment,) = reader.read_all().environments
    (finding,) = JudgedEnvironment(load_all(environment, data), data).findings()
    assert finding.message.endswith("Call onnxruntime.preload_dlls() first") == is_called
    # The environment is complete if the program calls the function.
    assert (finding.is_warning, finding.hint is None) == (is_called, is_called)


def test_extras_of_the_package_are_the_answer(tmp_path: Path) -> None:
    libraries = [*cuda(*LABELS), *cudnn("9.5.1", 12)]
    files = {"a/b.so": user(CUBLAS), "a/c.so": user("libcudnn.so.9")}
    required = ("nvidia-cublas-cu12; extra == 'cuda'", "nvidia-cudnn-cu12; extra == 'cudnn'")
    more = ("nvidia-cublas-cu12; extra == 'all'", "nvidia-cudnn-cu12; extra == 'all'")
    extras = ("all", "cuda", "cudnn")
    install(tmp_path, "example", "1.2", files, [*required, *more], extras)
    judged = judge(tmp_path, libraries=libraries)
    found = list(judged.findings())
    assert [each.hint for each in found] == [
        "pip install 'example[cuda]==1.2'",
        "pip install 'example[cudnn]==1.2'",
    ]
    assert judged.report(found).fix == "pip install 'example[cuda,cudnn]==1.2'"


@pytest.mark.parametrize(
    ("required", "hint"),
    [
        ("nvidia-cublas-cu14", "pip install 'nvidia-cublas-cu12>=12.4.1.7'"),
        ("other-cu14", "pip install 'example[cuda]==1.2'"),
    ],
)
def test_extra_of_a_package_that_requires_a_placeholder_is_not_the_answer(
    tmp_path: Path, required: str, hint: str
) -> None:
    """nvidia-cudss-cu13 0.7.1.4 requires nvidia-cublas-cu13, which pip fails to build."""
    requires = [required, "nvidia-cublas-cu12; extra == 'cuda'"]
    install(tmp_path, "example", "1.2", {"a/b.so": user(CUBLAS)}, requires, ["cuda"])
    (finding,) = findings(tmp_path)
    assert finding.hint == hint


def test_extra_with_another_version_is_not_the_answer(tmp_path: Path) -> None:
    files = {"a/b.so": user(CUBLAS)}
    install(tmp_path, "example", "1.2", files, ["nvidia-cublas-cu12<12; extra == 'cuda'"], ["cuda"])
    (finding,) = findings(tmp_path)
    assert finding.hint == "pip install 'nvidia-cublas-cu12>=12.4.1.7'"


@pytest.mark.parametrize(
    ("runpath", "found_by"), [(TO_CUBLAS, "run-path"), ("$ORIGIN", "other-code")]
)
def test_libraries_of_a_library_that_other_code_loads_are_loaded(
    tmp_path: Path, runpath: str, found_by: str
) -> None:
    """pylibraft loads libraft.so, which has the run paths, before its extensions."""
    put_cublas(tmp_path, "old")
    install(tmp_path, "libraft", "1.0", {"libraft/libraft.so": user(CUBLAS, runpath=runpath)})
    # The first file of this name is for another machine.
    install(tmp_path, "arm", "1.0", {"arm/libraft.so": elf(machine="aarch64")})
    middle = {"middle/libmiddle.so": elf(needed=["libraft.so"])}
    install(tmp_path, "middle", "1.0", middle)
    put_example(tmp_path, elf(needed=["libmiddle.so", CUBLAS]))
    assert {each.found_by for each in loaded(tmp_path)} == {found_by}
    assert bool(findings(tmp_path)) == (found_by != "run-path")


# -- modules that are read


@pytest.mark.parametrize(
    ("code", "others", "found_by"),
    [
        ('load_nvidia_dynamic_lib("cublas")', ["cuda-pathfinder"], "preloaded"),
        ('load_nvidia_dynamic_lib("cublas")', [], "other-code"),
        ('load_nvidia_dynamic_lib("cufft")', ["cuda-pathfinder"], "other-code"),
        ("cublas.load_library()", [], "preloaded"),
        ("other.load_library()", [], "other-code"),
    ],
)
def test_module_of_a_package_loads_a_library_by_its_name(
    tmp_path: Path, code: str, others: Sequence[str], found_by: str
) -> None:
    """libcudf/load.py of libcudf-cu12 has both calls, and `import cudf` works with it."""
    put_cublas(tmp_path, "old")
    for project in others:
        install(tmp_path, project, "1.0", {})
    files: dict[str, bytes | str] = {
        "example/load.py": code,
        "example/lib64/a.so": user(CUBLAS, "old"),
    }
    install(tmp_path, "example", "1.0", files)
    (each,) = loaded(tmp_path)
    assert each.found_by == found_by
    codes = [finding.exit_code for finding in findings(tmp_path)]
    assert codes == ([] if found_by == "preloaded" else [1])


CDLL = "import ctypes, nvidia\ndef load_cuda(path):\n    ctypes.CDLL(path)\n"
TABLES_OF_PATHFINDER = {
    "descriptor_catalog.py": 'DescriptorSpec(name="cusolver", dependencies=("cublas",))',
    "supported_nvidia_libs.py": 'DEPENDENCIES = {"cusolver": ("nvJitLink", "cublas")}',
}


@pytest.mark.parametrize(
    ("code", "found_by"),
    [
        (f"{CDLL}load_cuda('libcublas.so.12')", "preloaded"),
        (f"{CDLL}load_cuda(f'{{folder}}/libcublas.so.*[0-9]')", "preloaded"),
        (f"{CDLL}load_cuda('libcufft.so.11')", "other-code"),
        ("load_cuda('nvidia/libcublas.so.12')", "other-code"),
        ("import ctypes\nctypes.CDLL('libcublas.so.12')", "other-code"),
        (f"{CDLL}[load_cuda(f'lib{{name}}.so') for name in ('cublas',)]", "preloaded"),
        (f"{CDLL}[load_cuda(f'{{name}}.so') for name in ('cublas',)]", "other-code"),
        (f"{CDLL}load_all(read('libraries.json'))", "preloaded"),
        (f"{CDLL}load_all(read('other.json'))", "other-code"),
    ],
    ids=[
        "name of a file",
        "pattern",
        "other library",
        "no function loads",
        "no folder of wheels",
        "composed name",
        "composed otherwise",
        "names in a JSON file",
        "another JSON file",
    ],
)
def test_module_of_a_package_loads_a_library_with_ctypes(
    tmp_path: Path, code: str, found_by: str
) -> None:
    """So do torch, jax-cuda12-pjrt, faiss-gpu-cu12 and transformer-engine-cu13."""
    put_cublas(tmp_path, "old")
    files: dict[str, bytes | str] = {
        "example/common/__init__.py": code,
        "example/libraries.json": '{"names": ["libcublas.so.12"]}',
        "example/lib64/a.so": user(CUBLAS, "old"),
    }
    install(tmp_path, "example", "1.0", files)
    (each,) = loaded(tmp_path)
    rule = "example/common/__init__.py: load_cuda" if found_by == "preloaded" else None
    assert (each.found_by, each.rule) == (found_by, rule)


@pytest.mark.parametrize("table", ["descriptor_catalog.py", "supported_nvidia_libs.py"])
@pytest.mark.parametrize(
    ("code", "found_by"),
    [
        ('load_nvidia_dynamic_lib("cusolver")', "preloaded"),
        ('[load_nvidia_dynamic_lib(name) for name in ("cusolver",)]', "preloaded"),
        ('NAMES = ("cusolver",)', "other-code"),
        ('load_nvidia_dynamic_lib("cufft")', "other-code"),
    ],
    ids=["literal", "variable", "no call", "other library"],
)
def test_module_loads_the_libraries_that_the_table_of_pathfinder_lists(
    tmp_path: Path, table: str, code: str, found_by: str
) -> None:
    """cupy_backends/cuda/libs/__init__.py of cupy 14.2.0 has its names in a tuple."""
    put_cublas(tmp_path, "old")
    path = f"cuda/pathfinder/_dynamic_libs/{table}"
    install(tmp_path, "cuda-pathfinder", "1.0", {path: TABLES_OF_PATHFINDER[table]})
    files: dict[str, bytes | str] = {
        "example/libs/__init__.py": code,
        "example/libs/a.so": user(CUBLAS, "old"),
    }
    install(tmp_path, "example", "1.0", files)
    (each,) = loaded(tmp_path)
    assert each.found_by == found_by


def test_module_of_another_package_in_the_same_folder_loads_a_library(tmp_path: Path) -> None:
    """Transformer Engine has its loader and its library in two distributions."""
    put_cublas(tmp_path, "old")
    install(tmp_path, "cuda-pathfinder", "1.0", {})
    code = 'load_nvidia_dynamic_lib("cublas")'
    install(tmp_path, "loader", "1.0", {"example/__init__.py": code})
    install(tmp_path, "example", "1.0", {"example/core.so": user(CUBLAS, "old")})
    (each,) = loaded(tmp_path)
    assert (each.found_by, findings(tmp_path)) == ("preloaded", [])


@pytest.mark.parametrize(("code", "count"), [("from .load import *\n", 0), ("import os\n", 1)])
def test_module_that_a_package_imports_loads_an_opened_library(
    tmp_path: Path, code: str, count: int
) -> None:
    """nvshmem.core imports init_fini.py, and no file needs a CUDA library."""
    put_cublas(tmp_path, "old")
    install(tmp_path, "cuda-pathfinder", "1.0", {})
    files: dict[str, bytes | str] = {
        "example/bindings/a.so": elf(sections={".rodata": f"\0{CUBLAS}\0".encode()}),
        "example/core/__init__.py": code,
        "example/core/load.py": 'load_nvidia_dynamic_lib("cublas")',
    }
    install(tmp_path, "example", "1.0", files, requires=["nvidia-cublas-cu12"])
    assert [finding.exit_code for finding in findings(tmp_path)] == [1] * count


def test_package_in_the_first_folder_is_read_before_many_modules_of_the_next(
    tmp_path: Path,
) -> None:
    """cupy loads libraries in packages, and `cupyx/_runtime.py` only to print their versions."""
    put_cublas(tmp_path, "old")
    install(tmp_path, "cuda-pathfinder", "1.0", {})
    files: dict[str, bytes | str] = {
        "example/core.so": user(CUBLAS, "old"),
        "example/loader/__init__.py": 'load_nvidia_dynamic_lib("cublas")',
        "other/core.so": elf(),
        **{f"other/module_{number}.py": "" for number in range(64)},
    }
    install(tmp_path, "example", "1.0", files)
    (each,) = loaded(tmp_path)
    assert (each.found_by, findings(tmp_path)) == ("preloaded", [])
