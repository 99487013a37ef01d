"""Tests of audit: run paths, and symbols of libraries that are not listed as needed."""

import tracemalloc
from shlex import split

import pytest
from support.programs import cuda, cudnn, defined, file, judged, known, table, undefined

from cudaredist.binaries.symbols import SymbolTable, pack_groups
from cudaredist.programs.program import KnownLibrary, ProgramFile
from cudaredist.programs.report import AuditReport


def warnings(report: AuditReport, kind: str) -> list[str]:
    found = [each for each in report.findings if each.kind == kind]
    assert all(each.exit_code == 0 for each in found)
    return [each.message for each in found]


def installed(path: str, *needed: str, **facts: object) -> ProgramFile:
    """Return a file of a wheel."""
    return file(path, *needed, installed=path, **facts)  # type: ignore[arg-type] # any facts


CUBLAS = "libcublas.so.12"

# -- run paths

TWELVE = cuda("12.4.1")


@pytest.mark.parametrize(
    ("needed", "runpath", "is_found"),
    [
        (CUBLAS, ("$ORIGIN/../../nvidia/cublas/lib",), True),
        (CUBLAS, ("$ORIGIN", "${ORIGIN}/../../nvidia/cublas/lib/"), True),
        ("libcudart.so.12", ("$ORIGIN/../../nvidia/cuda_runtime/lib",), True),
        ("libcudart.so.12", ("$ORIGIN/../../nvidia/cublas/lib",), False),
        (CUBLAS, ("$ORIGIN/../nvidia/cublas/lib",), False),
        (CUBLAS, ("/usr/local/cuda/lib64",), False),
        (CUBLAS, ("$ORIGINAL/../../nvidia/cublas/lib",), False),
        (CUBLAS, (), False),
        # All wheels of CUDA 13 share one folder.
        ("libcublas.so.13", ("$ORIGIN/../../nvidia/cu13/lib",), True),
        ("libcublas.so.13", ("$ORIGIN/../../nvidia/cublas/lib",), False),
        # Only some other products use this folder.
        ("libcudnn.so.9", ("$ORIGIN/../../nvidia/cudnn/lib",), True),
        ("libcudnn.so.9", ("$ORIGIN/../../nvidia/cu12/lib",), False),
        ("libcudnn.so.9", ("$ORIGIN/../../cudnn/lib",), False),
        ("libnccl.so.2", ("$ORIGIN/../../nvidia/cu13/lib",), False),
        ("libnccl.so.2", ("$ORIGIN/../../nvidia/nccl/lib",), True),
        ("libcutensor.so.2", ("$ORIGIN/../../nvidia/cutensor/lib",), False),
        ("libcutensor.so.2", ("$ORIGIN/../../cutensor/lib",), True),
        ("libcudss.so.0", ("$ORIGIN/../../nvidia/cu13/lib",), True),
        # The folder of cuSPARSELt changed twice, and no release is for one folder only.
        ("libcusparseLt.so.0", ("$ORIGIN/../../cusparselt/lib",), True),
        ("libcusparseLt.so.0", ("$ORIGIN/../../nvidia/cusparselt/lib",), True),
        ("libcusparseLt.so.0", ("$ORIGIN/../../nvidia/cu13/lib",), True),
        ("libcusparseLt.so.0", ("$ORIGIN/../../nvidia/cu12/lib",), False),
        # The wheels of some products have folders of their own.
        ("libcublasmp.so.0", ("$ORIGIN/../../nvidia/cublasmp/cu12/lib",), True),
        ("libcublasmp.so.0", ("$ORIGIN/../../nvidia/cublasmp/lib",), False),
        # These libraries do not belong to CUDA.
        ("libc.so.6", (), True),
        ("libelse.so.1", (), True),
        ("libcuda.so.1", (), True),
    ],
)
def test_run_path_leads_to_the_folder_of_a_wheel(
    needed: str, runpath: tuple[str, ...], *, is_found: bool
) -> None:
    products = (
        ("libcublasmp.so.0", "cublasmp", "0.9.1", "nvidia-cublasmp-cu12"),
        ("libcudss.so.0", "cudss", "0.7.1", "nvidia-cudss-cu13"),
        ("libcusparseLt.so.0", "cusparselt", "0.6.3", "nvidia-cusparselt-cu12"),
        ("libcusparseLt.so.0", "cusparselt", "0.8.1", "nvidia-cusparselt-cu12"),
        ("libcusparseLt.so.0", "cusparselt", "0.9.0", "nvidia-cusparselt-cu13"),
        ("libcutensor.so.2", "cutensor", "2.5.0", "cutensor-cu13"),
        ("libnccl.so.2", "nccl", "2.29.7", "nvidia-nccl-cu13"),
    )
    others = [
        known(name, label, redist, project, redist=redist, variant=f"cuda{project[-2:]}")
        for name, redist, label, project in products
    ]
    libraries = [*TWELVE, *cuda("13.0.2"), *cudnn("9.5.1", 12), *others]
    report = judged([installed("example/lib/a.so", needed, runpath=runpath)], libraries)
    assert (not warnings(report, "run-path")) == is_found
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("name", "runpath", "is_found"),
    [
        ("libcudart.so.12", ("$ORIGIN/../example.libs",), True),
        ("libcudart.so.12", ("$ORIGIN",), False),
        # As in torchvision: the loader searches for the name of the file.
        ("libcudart-0123abcd.so.12", ("$ORIGIN/../example.libs",), False),
    ],
)
def test_run_path_leads_to_a_copy(name: str, runpath: tuple[str, ...], *, is_found: bool) -> None:
    program = [
        installed("example/a.so", "libcudart.so.12", runpath=runpath),
        installed(f"example.libs/{name}", soname="libcudart.so.12"),
    ]
    assert (not warnings(judged(program, TWELVE), "run-path")) == is_found


def test_run_path_counts_for_the_libraries_that_a_file_needs() -> None:
    program = [
        installed("a.so", "libb.so", runpath=("$ORIGIN/nvidia/cublas/lib",)),
        installed("libb.so", "libc.so", "libb.so"),
        installed("libc.so", CUBLAS, "libb.so"),
        installed("libd.so", CUBLAS),
    ]
    (message,) = warnings(judged(program, TWELVE), "run-path")
    assert "libd.so" in message
    assert "libc.so" not in message


@pytest.mark.parametrize(
    ("major", "is_found"), [("12", True), ("13", False)], ids=["same major", "another major"]
)
def test_run_path_leads_to_the_wheel_of_the_same_cuda_major(major: str, *, is_found: bool) -> None:
    libraries = [
        known("libcudss.so.0", "0.7.1", "libcudss", f"nvidia-cudss-cu{n}", redist="cudss",
              variant=f"cuda{n}")
        for n in (12, 13)
    ]  # fmt: skip
    paths = ("$ORIGIN/nvidia/cublas/lib", f"$ORIGIN/nvidia/cu{major}/lib")
    program = [installed("a.so", CUBLAS, "libcudss.so.0", runpath=paths)]
    report = judged(program, [*TWELVE, *libraries])
    assert (not warnings(report, "run-path")) == is_found


def test_run_path_finding_names_the_files_and_a_command() -> None:
    program = [
        installed("example/a.so", "libcudnn.so.9", CUBLAS),
        installed("b.so", CUBLAS),
        installed("c.so", CUBLAS),
    ]
    report = judged(program, [*TWELVE, *cudnn("9.5.1", 12)])
    (finding,) = [each for each in report.findings if each.kind == "run-path"]
    assert "to libcublas.so.12, libcudnn.so.9, so" in finding.message
    assert finding.message.endswith("before b.so, and 2 more")
    assert {each.soname: each.not_found_by for each in report.libraries} == {
        CUBLAS: ("b.so", "c.so", "example/a.so"),
        "libcudnn.so.9": ("example/a.so",),
    }
    cublas, cudnn_folder = "nvidia/cublas/lib", "nvidia/cudnn/lib"
    paths = ":".join(f"$ORIGIN/../{folder}" for folder in (cublas, cudnn_folder))
    assert (finding.hint or "").split(" && ") == [
        "wheel unpack --dest fixed dist/x-1.0-py3-none-any.whl",
        f"patchelf --add-rpath '$ORIGIN/{cublas}' fixed/x-1.0/b.so fixed/x-1.0/c.so",
        f"patchelf --add-rpath '{paths}' fixed/x-1.0/example/a.so",
        "wheel pack --dest-dir fixed fixed/x-1.0",
    ]


def test_run_path_hint_quotes_the_name_of_a_file() -> None:
    """A wheel from elsewhere may contain any name, and the hint is a command to copy."""
    program = [
        installed("a; touch b.so", "libcudart.so.12"),
        installed("c'; touch d/libcudart.so.12", soname="libcudart.so.12"),
    ]
    report = judged(program, TWELVE)
    (hint,) = [each.hint for each in report.findings if each.kind == "run-path"]
    _, patchelf, _ = (hint or "").split(" && ")
    assert split(patchelf) == [
        *("patchelf", "--add-rpath", "$ORIGIN/c'; touch d", "fixed/x-1.0/a; touch b.so")
    ]


def test_run_paths_of_many_files_with_one_name_are_followed_once() -> None:
    """The time was cubic: 600 files in a wheel of 130 KB took minutes."""
    program = [
        installed(f"{n}.so", "libx.so", CUBLAS, soname="libx.so", runpath=(f"$ORIGIN/{n}",))
        for n in range(2000)
    ]
    report = judged(program, TWELVE)
    (library,) = [each for each in report.libraries if each.soname == CUBLAS]
    assert len(library.not_found_by) == len(program)


@pytest.mark.parametrize(
    ("other", "libraries"),
    [
        (file("a.so", CUBLAS), TWELVE),
        (installed("a.so", CUBLAS, unread=("runpath",)), TWELVE),
        (installed("a.dll", "cublas64_12.dll", kind="pe"), TWELVE),
        (installed("a.so", opens=(CUBLAS,)), TWELVE),
        # Archives of NVIDIA have no folder below site-packages.
        (installed("a.so", CUBLAS), [each._replace(wheel=None) for each in TWELVE]),
    ],
    ids=["not in a wheel", "unread", "DLL", "only opens it", "in an archive"],
)
def test_run_path_that_does_not_matter_is_not_reported(
    other: ProgramFile, libraries: list[KnownLibrary]
) -> None:
    assert warnings(judged([other], libraries), "run-path") == []


# -- symbols of libraries that a file does not need

CREATE = ("cublasCreate", "", "")
LIBRARIES: list[KnownLibrary] = [*cuda("12.4.1", "12.9.1"), *cuda("13.0.2")]
TABLES = {
    CUBLAS: table(CUBLAS, {"12.4.1": [], "12.9.1": ["cublasCreate"]}),
    "libcublas.so.13": table("libcublas.so.13", {"13.0.2": ["cublasCreate"]}),
}


def test_symbol_of_a_library_that_is_not_needed_is_a_warning() -> None:
    """vllm and transformer-engine rely on torch to load cuBLAS and NVRTC."""
    program = [file("a.so", "libcudart.so.12", symbols=undefined(CREATE))]
    report = judged(program, LIBRARIES, TABLES)
    (message,) = warnings(report, "unlinked-library")
    assert message == (
        "symbols of libcublas.so.12 are used in a.so, but the library is not listed as needed: "
        "cublasCreate"
    )
    assert {each.soname: each.kind for each in report.libraries} == {
        "libcudart.so.12": "needed",
        CUBLAS: "unlinked",
    }
    assert [each.lowest for each in report.releases] == [None]
    assert "nvidia-cublas-cu12" in [each.project for each in report.requirements]


def test_unlinked_symbol_decides_the_lowest_release() -> None:
    program = [file("a.so", "libcublasLt.so.12", symbols=undefined(CREATE))]
    without = table("libcublasLt.so.12", {"12.4.1": [], "12.9.1": []})
    (release,) = judged(program, LIBRARIES, {**TABLES, without.soname: without}).releases
    assert (release.lowest, release.decisive) == ("12.9.1", ("cublasCreate",))


def test_symbols_that_no_library_exports_are_not_kept() -> None:
    """A wheel of 5 MB with 20 files of 128,000 symbols took 490 MB."""
    group = ("undefined", "global", "func", "", "", "")
    files = ([f"unknown_function_{file}_{n}".encode() for n in range(10_000)] for file in range(10))
    program = [
        file(
            f"{number}.so",
            "libcudart.so.12",
            symbols=SymbolTable(exports=0, imports=10_000, packed=pack_groups([(group, names)])),
        )
        for number, names in enumerate(files)
    ]
    tracemalloc.start()
    try:
        judged(program, LIBRARIES, TABLES)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20


@pytest.mark.parametrize(
    "program",
    [
        [file("a.so", CUBLAS, symbols=undefined(CREATE))],
        [
            file("a.so", "libcudart.so.12", symbols=undefined(CREATE)),
            file("b.so", symbols=defined("cublasCreate")),
        ],
        [file("a.so", symbols=undefined(CREATE))],
        [file("a.so", "libcublasLt.so.12", "libcudart.so.13", symbols=undefined(CREATE))],
        [file("a.so", "libcudart.so.12", symbols=undefined(("PyInit", "", "")))],
        [file("a.so", "libcudart.so.12", symbols=undefined(("cublasCreate", "V", "libown.so")))],
    ],
    ids=["needed", "own", "no CUDA major", "two majors", "of Python", "of another library"],
)
def test_symbol_that_is_not_of_an_unneeded_library_is_not_reported(
    program: list[ProgramFile],
) -> None:
    report = judged(program, LIBRARIES, TABLES)
    assert warnings(report, "unlinked-library") == []
    assert "unlinked" not in [each.kind for each in report.libraries]
