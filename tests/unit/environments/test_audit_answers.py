"""Tests of audit: answers to the messages of errors."""

from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.binaries import elf, fatbin
from support.cost import bounded_cost
from support.environments import install, library, user
from support.programs import audit_data, cuda, cudnn, known, table

from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.error_message import (
    SIZE_LIMIT,
    ErrorMessage,
    LibraryClaim,
    parse_message,
)
from cudaredist.environments.read_program import ProgramReader
from cudaredist.errors import UsageError
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.programs.program import AuditRequirements, Catalog
from cudaredist.programs.report import ErrorAnswer
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index

DRIVERS = DriverPolicy.model_validate_json((REPOSITORY / "data/policy/drivers.json").read_bytes())
CUBLAS, FOLDER = "libcublas.so.12", "nvidia/cublas/lib"
LABELS = ("12.4.1", "12.5.1")
TABLES = {CUBLAS: table(CUBLAS, {"12.4.1": ["old"], "12.5.1": ["old", "new"]}, f"@@{CUBLAS}")}
PARTS = [f"libcudnn_{name}.so" for name in ("adv", "cnn", "engines", "graph", "ops")]
CUDNN = {"redist": "cudnn", "variant": "cuda12"}
LIBRARIES = [
    *cuda(*LABELS),
    *cudnn("9.5.1", 12),
    *(known(f"{name}.9", "9.5.1", "cudnn", "nvidia-cudnn-cu12", **CUDNN) for name in PARTS),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The index of the shipped data."""
    store = Store(REPOSITORY / "data", channel="wheels")
    return Index(store, Cache(tmp_path_factory.mktemp("cache")))


def parse(text: str, index: Index) -> ErrorMessage:
    names = ("libnccl.so.2", "libcudnn_graph.so.9", "libnvrtc-builtins.so.13.0", CUBLAS)
    data = audit_data([known(name, "12.4.1") for name in names])
    return parse_message(text, index, Catalog(map(known, names, ["12.4.1"] * 4)), data.policy)


def put_example(site: Path, *symbols: str) -> None:
    put_cublas(site)
    program = user(CUBLAS, *symbols, runpath=f"$ORIGIN/../{FOLDER}")
    install(site, "example", "1.0", {"example/a.so": program})


def put_cublas(site: Path) -> None:
    install(site, "nvidia-cublas-cu12", "12.4.1.7", {f"{FOLDER}/{CUBLAS}": library(CUBLAS, "old")})


def answers(site: Path, *gpus: str, **message: object) -> list[ErrorAnswer]:
    """Return the answers to a message with some names."""
    values: dict[str, object] = {
        "symbols": {},
        "libraries": (),
        "users": (),
        "is_gpu": False,
        "is_driver": False,
        "capabilities": (),
        "supported": None,
    }
    reader = ProgramReader(cache=Cache(site.with_suffix(".cache")), paths=[site])
    report = audit_report(
        reader.read_all(),
        audit_data(LIBRARIES, TABLES)._replace(drivers=DRIVERS),
        AuditRequirements(gpus=gpus),
        ErrorMessage(**(values | message)),  # type: ignore[arg-type] # any values
    )
    return [*report.answers]


def test_answer_names_the_unused_file_for_another_release(tmp_path: Path) -> None:
    """bitsandbytes has a file for each CUDA release."""
    put_cublas(tmp_path)
    run_path = f"$ORIGIN/../{FOLDER}"
    files = {
        "example/lib_cuda118.so": user("libcublas.so.11", runpath=run_path),
        "example/lib_cuda124.so": user(CUBLAS, runpath=run_path),
    }
    install(tmp_path, "example", "1.0", files)
    (answer,) = answers(tmp_path, libraries=(("libcublas.so.11",),))
    assert answer.path == "example/lib_cuda118.so"
    assert "example 1.0 also has example/lib_cuda124.so for another CUDA release" in answer.message
    assert answer.hint is None


# -- messages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "symbols", "libraries"),
    [
        ("ImportError: /x/a.so: undefined symbol: ncclAlltoAll", ["ncclAlltoAll"], []),
        ("/x/a.so: undefined symbol: ncclAlltoAll, version X", ["ncclAlltoAll"], []),
        ("symbol cublasCreate_v2, version libcublas.so.12 not defined", ["cublasCreate_v2"], [1]),
        ("undefined reference to `ncclAlltoAll'", ["ncclAlltoAll"], []),
        ("ncclAlltoAll", ["ncclAlltoAll"], []),
        ("libcublas.so.12: cannot open shared object file", [], [1]),
        ("nvrtc: error: failed to open libnvrtc-builtins.so.13.0.", [], [1]),
        ("Unable to load any of {libcudnn_graph.so.9.1.0, libcudnn_graph.so.9}", [], [2]),
        ("OSError: libcuda.so.1: cannot open shared object file", [], [1]),
    ],
)
def test_message_has_known_symbols_and_libraries(
    index: Index, text: str, symbols: list[str], libraries: list[int]
) -> None:
    found = parse(text, index)
    assert [*found.symbols] == symbols
    assert [len(names) for names in found.libraries] == libraries


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("no kernel image is available for execution on the device", "is_gpu", ()),
        ("RTX with CUDA capability sm_120 is not compatible with the current", "is_gpu", ("12.0",)),
        ("no kernel image; compute capability 9.0", "is_gpu", ("9.0",)),
        ("CUDA driver version is insufficient for CUDA runtime version", "is_driver", ()),
        ("the provided PTX was compiled with an unsupported toolchain.", "is_ptx", ()),
        ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "is_ptx", ()),
        ("Unsupported .version 8.5; current version is '8.4'", "is_ptx", ()),
        ("CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "is_mixed_cudnn", ()),
    ],
)
def test_message_is_about_the_gpu_or_the_driver(
    index: Index, text: str, kind: str, values: tuple[str, ...]
) -> None:
    found = parse(text, index)
    assert getattr(found, kind)
    assert found.capabilities == values


def test_message_states_the_release_that_the_driver_supports(index: Index) -> None:
    text = "The NVIDIA driver on your system is too old (found version 12020)"
    assert parse(text, index).supported == "12.2"


@pytest.mark.parametrize(
    "text",
    [
        "segmentation fault",
        "undefined symbol: _ZN3abc6SymIntE",
        "libz.so.1: cannot open shared object file",
    ],
)
def test_message_without_a_known_name_is_unknown(index: Index, text: str) -> None:
    assert not parse(text, index).is_known


def test_large_message_is_refused(index: Index) -> None:
    with pytest.raises(UsageError, match="larger than 1,000,000 bytes") as caught:
        parse("x" * 1_000_001, index)
    assert "undefined symbol: ncclAlltoAll" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("RuntimeError: Unable to load cuBLAS. Is it correctly installed?", [CUBLAS]),
        ("libnccl.so.2 is too old; it is version 2.8, need at least 2.9", ["libnccl.so.2"]),
        ("may need newer version of cuBLAS", [CUBLAS]),
    ],
)
def test_message_claims_a_library(index: Index, text: str, names: list[str]) -> None:
    (claim,) = parse(text, index).claims
    assert [*claim.names] == names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RuntimeError: Library cublas64_12.dll is not found or cannot be loaded", "cublas64_12"),
        ("Could not locate cudnn_ops64_9.dll. Please make sure it is in your path", "cudnn_ops"),
        ("libnvinfer.so.11: cannot open shared object file", "libnvinfer.so.11"),
    ],
)
def test_message_names_a_library_of_windows_or_tensorrt(
    text: str, name: str, tmp_path: Path
) -> None:
    store = Store(REPOSITORY / "data", channel="wheels")
    dlls = [known("cublas64_12.dll", "12.4.1"), known("cudnn_ops64_9.dll", "9.5.1")]
    data = audit_data(dlls)
    message = parse_message(text, Index(store, Cache(tmp_path)), data.catalog, data.policy)
    ((found,),) = message.libraries
    assert found.startswith(name)


LONG_LINES = ("a", ".so", "lib-", "lib.so.1.1.1", "libx.so.1", "lib+", ": undefined symbol", "é")


@pytest.mark.parametrize("part", LONG_LINES)
def test_message_with_a_long_line_has_the_symbol_of_the_last_one(part: str, index: Index) -> None:
    last = "\nundefined symbol: ncclAlltoAll"
    line = part * ((SIZE_LIMIT - len(last)) // len(part.encode()))
    with bounded_cost():
        message = parse(line + last, index)
    assert [*message.symbols] == ["ncclAlltoAll"]
    assert message.libraries == ()


@pytest.mark.parametrize(
    "part",
    [
        *("a", "lib-", ": undefined symbol"),
        # The test above reads such lines of all parts.
        *(
            pytest.param(part, marks=pytest.mark.slow)
            for part in LONG_LINES
            if part not in {"a", "lib-", ": undefined symbol"}
        ),
    ],
)
def test_message_of_one_long_line_is_unknown(part: str, index: Index) -> None:
    text = part * (SIZE_LIMIT // len(part.encode()))
    with bounded_cost():
        assert not parse(text, index).is_known


# -- symbols


def test_symbol_names_the_loaded_file_and_the_first_release(tmp_path: Path) -> None:
    put_example(tmp_path, "old", "new")
    (answer,) = answers(tmp_path, symbols={"new": (CUBLAS,)})
    assert answer.message == (
        f"example/a.so loads {FOLDER}/{CUBLAS} (nvidia-cublas-cu12 12.4.1.7), which does not "
        f"export new; {CUBLAS} has it since cuda 12.5.1 (nvidia-cublas-cu12 12.5.1.7)"
    )
    assert answer.package == "nvidia-cublas-cu12 12.4.1.7"
    assert answer.first == "cuda 12.5.1 (nvidia-cublas-cu12 12.5.1.7)"
    assert answer.hint == "pip install 'nvidia-cublas-cu12>=12.5.1.7'"


def test_symbol_that_a_program_looks_up_has_a_command(tmp_path: Path) -> None:
    """Python packages load libraries with ctypes."""
    put_example(tmp_path, "old")
    (answer,) = answers(tmp_path, symbols={"new": (CUBLAS,)})
    assert answer.hint == "pip install 'nvidia-cublas-cu12>=12.5.1.7'"


def test_exported_symbol_means_that_another_copy_is_loaded(tmp_path: Path) -> None:
    put_example(tmp_path, "old")
    install(tmp_path, "other", "1.0", {f"other/{CUBLAS}": library(CUBLAS)})
    (answer,) = answers(tmp_path, symbols={"old": (CUBLAS,)})
    assert f"The process loaded another copy first: other/{CUBLAS}" in answer.message
    assert answer.hint is None


def test_symbol_of_a_library_that_no_file_needs(tmp_path: Path) -> None:
    install(tmp_path, "example", "1.0", {"example/a.so": elf()})
    (answer,) = answers(tmp_path, symbols={"new": (CUBLAS,)})
    assert answer.message.startswith("no file of the environment needs a library with new")


# -- libraries


def test_library_has_the_answer_of_its_finding(tmp_path: Path) -> None:
    put_example(tmp_path, "old")
    (tmp_path / FOLDER / CUBLAS).unlink()
    (answer,) = answers(tmp_path, libraries=((CUBLAS,),))
    assert answer.message.startswith(f"the loader does not find {CUBLAS} for example/a.so")
    assert answer.hint == "pip install --force-reinstall --no-deps nvidia-cublas-cu12==12.4.1.7"


def test_library_that_is_found_names_the_file(tmp_path: Path) -> None:
    put_example(tmp_path, "old")
    (answer,) = answers(tmp_path, libraries=((CUBLAS,),))
    title = f"{FOLDER}/{CUBLAS} (nvidia-cublas-cu12 12.4.1.7)"
    assert answer.message == f"the loader finds {title} for example/a.so"


def test_library_that_is_opened_by_several_names_has_one_answer(tmp_path: Path) -> None:
    put_example(tmp_path, "old")
    names = ("libcudnn_graph.so.9.1.0", "libcudnn_graph.so.9")
    (answer,) = answers(tmp_path, libraries=(names,))
    message = f"no file of the environment is {names[0]}; nvidia-cudnn-cu12 contains it"
    assert (answer.message, answer.hint) == (message, "pip install nvidia-cudnn-cu12")


def test_library_of_a_long_finding_has_its_answer(tmp_path: Path) -> None:
    """The finding names three libraries only."""
    data = "\0".join(["", *PARTS, ""]).encode()
    files = {"example.libs/libcudnn-1a2b3c4d.so.9": elf(sections={".rodata": data})}
    install(tmp_path, "example", "1.0", files)
    folder = {f"nvidia/cudnn/lib/{name}.9": elf(soname=f"{name}.9") for name in PARTS}
    install(tmp_path, "nvidia-cudnn-cu12", "9.5.1.7", folder)
    (answer,) = answers(tmp_path, libraries=(("libcudnn_ops.so.9.5.1", "libcudnn_ops.so.9"),))
    assert answer.message.startswith("the loader does not find libcudnn_adv.so, ")
    assert "libcudnn_ops" not in answer.message


def test_library_of_the_driver_has_no_command(tmp_path: Path) -> None:
    put_example(tmp_path, "old")
    (answer,) = answers(tmp_path, libraries=(("libcuda.so.1",),))
    assert "NVIDIA's driver" in answer.message
    assert answer.hint is None


# -- the GPU and the driver


@pytest.mark.parametrize(
    ("gpus", "capabilities", "message"),
    [
        (
            (),
            (),
            "device code is in example 1.0. Name your GPU with --require-gpu (host: that of this "
            "machine)",
        ),
        ((), ("12.0",), "example 1.0: GPUs of capability 12.0 do not run it: the code of "),
        (("8.0",), (), "GPUs of capability 8.0 run the device code of all packages"),
    ],
)
def test_kernel_image_is_compared_with_the_gpu(
    tmp_path: Path, gpus: tuple[str, ...], capabilities: tuple[str, ...], message: str
) -> None:
    section = fatbin([("sm", 80, "")], payload=bytes(4096))
    install(tmp_path, "example", "1.0", {"example/a.so": elf(sections={".nv_fatbin": section})})
    (answer,) = answers(tmp_path, *gpus, is_gpu=True, capabilities=capabilities)
    assert answer.message.startswith(message)
    assert ("Builds for CUDA 12.8 or later" in answer.message) == (capabilities == ("12.0",))


@pytest.mark.parametrize(
    ("project", "message"),
    [
        (
            "nvidia-cuda-runtime-cu12",
            "nvidia-cuda-runtime-cu12 12.4.127 is of CUDA 12.4, which needs driver 525.60.13 or "
            "later on Linux",
        ),
        ("other", "the CUDA runtime of the environment is not in a wheel of NVIDIA's"),
    ],
)
def test_driver_is_compared_with_the_runtime(tmp_path: Path, project: str, message: str) -> None:
    install(tmp_path, project, "12.4.127", {"example/a.so": elf()})
    (answer,) = answers(tmp_path, is_driver=True, supported="11.4")
    assert answer.message == f"{message}; the driver supports CUDA 11.4"


def test_packages_of_others_are_the_first_answer_about_a_gpu(tmp_path: Path) -> None:
    code = elf(sections={".nv_fatbin": fatbin([("sm", 80, "")], payload=bytes(4096))})
    install(tmp_path, "nvidia-cublas-cu12", "12.4.1.7", {"a/libcublas.so.12": code})
    install(tmp_path, "nvidia-cudnn-cu12", "9.5.1", {"b/libcudnn.so.9": code})
    nvidias = answers(tmp_path, "9.0", is_gpu=True)
    assert [each.message.partition(":")[0] for each in nvidias] == [
        "nvidia-cublas-cu12 12.4.1.7",
        "GPUs of capability 9.0 do not run nvidia-cudnn-cu12 9.5.1 either",
    ]
    install(tmp_path, "torch", "2.9", {"torch/a.so": code})
    first, second = answers(tmp_path, "9.0", is_gpu=True)
    assert first.message.startswith("torch 2.9: GPUs of capability 9.0 do not run it")
    assert second.message.endswith(
        "do not run nvidia-cublas-cu12 12.4.1.7, nvidia-cudnn-cu12 9.5.1 either"
    )


def test_symbol_of_a_file_in_the_library_path_unsets_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, old = tmp_path / "site", tmp_path / "old"
    install(site, "nvidia-cublas-cu12", "12.5.1.7", {f"{FOLDER}/{CUBLAS}": library(CUBLAS, "new")})
    program = user(CUBLAS, "new", runpath=f"$ORIGIN/../{FOLDER}")
    install(site, "example", "1.0", {"example/a.so": program})
    old.mkdir()
    (old / CUBLAS).write_bytes(library(CUBLAS, "old"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(old))
    (answer,) = answers(site, symbols={"new": (CUBLAS,)})
    assert answer.hint == "unset LD_LIBRARY_PATH"


# -- versions of PTX and libraries


@pytest.mark.parametrize(
    ("ptx", "hint"),
    [
        (None, "cudaredist explain cuda 12.5"),
        (("8.5", "8.4"), "pip install 'nvidia-cuda-nvrtc-cu12<12.5'"),
    ],
)
def test_ptx_is_that_of_the_installed_compiler(
    tmp_path: Path, ptx: tuple[str, str] | None, hint: str
) -> None:
    """CUDA 12.5 writes PTX 8.5, and its release notes require driver 555.42.02."""
    install(tmp_path, "nvidia-cuda-runtime-cu12", "12.4.127", {"example/a.so": elf()})
    install(tmp_path, "nvidia-cuda-nvrtc-cu12", "12.5.82", {"nvrtc/a.so": elf()})
    (answer,) = answers(tmp_path, is_ptx=True, ptx=ptx)
    words = "nvidia-cuda-nvrtc-cu12 12.5.82 writes PTX 8.5 of CUDA 12.5, which driver 555.42.02 or"
    assert answer.message.startswith(words)
    assert answer.hint == hint


@pytest.mark.parametrize(("driver", "count"), [("535.54.03", 1), ("555.42.02", 0)])
def test_installed_compiler_is_compared_with_the_driver(
    tmp_path: Path, driver: str, count: int
) -> None:
    install(tmp_path, "nvidia-cuda-nvrtc-cu12", "12.5.82", {"nvrtc/a.so": elf()})
    reader = ProgramReader(cache=Cache(tmp_path.with_suffix(".cache")), paths=[tmp_path])
    data = audit_data(LIBRARIES)._replace(drivers=DRIVERS)
    report = audit_report(reader.read_all(), data, AuditRequirements(driver=driver))
    words = f"driver {driver} does not compile PTX 8.5, which nvidia-cuda-nvrtc-cu12 12.5.82 writes"
    assert [each.message for each in report.findings] == [words] * count
    assert report.exit_code == 0


def test_old_library_has_the_command_for_the_needed_version(tmp_path: Path) -> None:
    put_example(tmp_path, "old")
    claim = LibraryClaim((CUBLAS,), "12.5", is_old=True)
    (answer,) = answers(tmp_path, claims=(claim,))
    assert answer.message.endswith("which is too old: 12.5 or later is needed")
    assert answer.hint == "pip install 'nvidia-cublas-cu12>=12.5'"


def test_mixed_cudnn_names_the_packages(tmp_path: Path) -> None:
    for project, folder in (("nvidia-cudnn-cu12", "nvidia/cudnn/lib"), ("other", "other")):
        content = {f"{folder}/libcudnn.so.9": elf(soname="libcudnn.so.9")}
        install(tmp_path, project, "9.5.1.7", content)
    (answer,) = answers(tmp_path, is_mixed_cudnn=True)
    assert "cuDNN in nvidia-cudnn-cu12 9.5.1.7, other 9.5.1.7" in answer.message


def test_symbol_of_torch_names_the_package_for_another_release(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.6.0", {"torch/a.so": elf()})
    install(tmp_path, "example", "1.0", {"example/ext.so": elf()})
    symbol = "_ZN3c105ErrorC2ENS_14SourceLocationE"
    (answer,) = answers(tmp_path, torch_symbols=(symbol,), users=("ext.so",))
    words = "is a symbol of torch, and example 1.0 was built for another release than torch 2.6.0"
    assert answer.message == f"{symbol} {words}"
