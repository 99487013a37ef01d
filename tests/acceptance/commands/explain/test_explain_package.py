"""Tests of `explain package`: a package across releases and platforms."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support.running import expect_error, expect_output
from support.set_inputs import build
from support.small_sets import make_data

from cudaredist.commands.explain.explain_package import explain_package
from cudaredist.sets.load import read_set_data
from cudaredist.store.cache import Cache
from cudaredist.store.facts_index import Index
from cudaredist.store.locate import store_to_read


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with one examined release of CUDA."""
    root = tmp_path_factory.mktemp("explained")
    make_data(root)
    return root / "data"


@pytest.fixture(autouse=True)
def _one_index(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all tests use the cache of the data folder, so that its index is created once."""
    monkeypatch.setenv("CUDAREDIST_CACHE_DIR", str(data.parent / "cache"))


def test_explain_package_shows_versions_and_needed_libraries(run: Run, data: Path) -> None:
    call = ("explain", "package", "libcublas", "--data-dir", data)
    lines = expect_output(run(*call), 0).stdout.splitlines()
    assert lines[:3] == [
        "libcublas: NVIDIA's archives of cuda 11.4.2 to 13.4.2; wheels of cuda 11.8.0 to 13.5.0",
        "libcublas 13.8.0.4 (cuda 13.4.2, 2026-09-16) for linux-sbsa, linux-x86_64, "
        "windows-arm64, windows-x86_64, archives",
        "libcublas 13.10.0.20 (cuda 13.5.0, 2026-11-04) for linux-sbsa, linux-x86_64, "
        "windows-arm64, windows-x86_64, wheels",
    ]
    lines = expect_output(run(*call, "--no-shipped-data"), 0).stdout.splitlines()
    assert lines[:7] == [
        "libcublas: NVIDIA's archives of cuda 12.9.1",
        "libcublas 12.9.1.5 (cuda 12.9.1, 2025-06-04) for linux-sbsa, linux-x86_64, archives",
        "license: CUDA EULA; whether it may be redistributed is unknown",
        "closure: 0.0 MB unpacked (linux-x86_64, archives 12.9.1)",
        "",
        "redist  kind      version   date        releases  platforms",
        "cuda    archives  12.9.1.5  2025-06-04  12.9.1    linux-sbsa linux-x86_64",
    ]
    assert "libcublas 12.9.1.5 (cuda 12.9.1), archives" in lines
    assert "  sonames: libcublas.so.12 libcublasLt.so.12" in lines
    lines = expect_output(run(*call, "--no-shipped-data", "--all"), 0).stdout.splitlines()
    assert "libcublas 12.9.1.5 (cuda 12.9.1) for linux-sbsa, linux-x86_64, archives" in lines
    assert "  needed libraries: libc.so.6 libcublasLt.so.12 libcuda.so.1" in lines


def test_explain_package_shows_lowest_glibc(run: Run) -> None:
    call = ("explain", "package", "libcublas@12.9.2", "--data-dir", REPOSITORY / "data")
    lines = expect_output(run(*call, "--channel", "wheels"), 0).stdout.splitlines()
    assert "  lowest glibc: 2.27" in lines
    document = json.loads(run(*call, "--channel", "wheels", "--json").stdout)
    floors = {archive["platform"]: archive["glibc"] for archive in document["archives"]}
    assert floors["linux-x86_64"] == "2.27"
    assert floors["windows-x86_64"] is None


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("12.9.7", "libcublas 12.9.7 is not in the data"),
        ("99", "libcublas 99 is not in the data"),
        ("abc", "no release of libcublas is called 'abc'"),
    ],
)
def test_explain_package_of_release_without_data_says_so(
    run: Run, release: str, message: str
) -> None:
    expect_error(run("explain", "package", f"libcublas@{release}"), 2, message)


def test_explain_package_lists_equal_facts_once(run: Run) -> None:
    lines = expect_output(run("explain", "package", "cudnn"), 0).stdout.splitlines()
    assert len(lines) < 40
    assert sum(line.startswith("license: ") for line in lines) == 1
    assert sum(line.startswith("  lowest glibc") for line in lines) == 1
    assert [line.partition(":")[0] for line in lines if line.startswith("  sonames")] == [
        "  sonames (linux-sbsa/cuda13, linux-x86_64/cuda13)",
        "  sonames (windows-arm64/cuda13, windows-x86_64/cuda13)",
    ]
    whole = expect_output(run("explain", "package", "cudnn", "--all"), 0).stdout
    assert "  SHA-256: " in whole
    assert "  needed libraries: " in whole


def test_closure_of_package_is_that_of_set(run: Run) -> None:
    run("build", "--cuda", "13.5.0", "--platform", "linux-x86_64", "--output", "set.json")
    for name in ("libcusolver", "libcublas", "nccl"):
        of_set = json.loads(run("explain", "set", "set.json", name, "--json").stdout)
        call = ("explain", "package", f"{name}@{of_set['release']}", "--channel", "wheels")
        closure = json.loads(run(*call, "--json").stdout)["closure"]
        assert closure["size"] == of_set["closure"]


def test_closure_names_libraries_of_other_products(run: Run) -> None:
    document = json.loads(run("explain", "package", "libcublasmp", "--json").stdout)
    assert "libnccl.so.2" in document["closure"]["outside"]
    text = run("explain", "package", "libcublasmp").stdout
    assert ", and of other products libcublas.so.13, libcublasLt.so.13, libnccl.so.2 (" in text


def test_closure_of_unexamined_package_is_unknown(run: Run) -> None:
    document = json.loads(run("explain", "package", "tensorrt", "--json").stdout)
    assert document["closure"] is None


def test_explain_package_names_dependencies(run: Run, data: Path) -> None:
    call = ("explain", "package", "libcusolver", "--data-dir", data, "--no-shipped-data")
    document = json.loads(run(*call, "--json").stdout)
    assert (document["kind"], document["asked"]) == ("package", "libcusolver")
    (archive,) = document["archives"]
    assert archive["depends"] == {"libcublas": ["libcublas.so.12"]}
    assert archive["is_examined"] is True
    assert set(archive["outputs"]) == {"include", "lib", "out"}


def test_explain_package_without_features_reports_not_examined(run: Run, data: Path) -> None:
    shutil.copytree(data, "copy")
    Path("copy/features/cuda/feature_12.9.1.json").unlink()
    result = run("explain", "package", "libcublas", "--data-dir", "copy", "--no-shipped-data")
    lines = result.stdout.splitlines()
    block = lines.index("libcublas 12.9.1.5 (cuda 12.9.1), archives")
    assert lines[block + 1] == "  not examined"


@pytest.mark.parametrize(
    ("project", "answer"),
    [
        ("nvidia-cublas-cu12", "libcublas 12.9.2.10 (cuda 12.9.2, "),
        ("nvidia-cublas", "libcublas 13."),
        ("nvidia_cuda_runtime_cu12", "cuda_cudart 12.9.79 (cuda 12.9.2, "),
        ("cutensor-cu12", "libcutensor "),
        ("nvidia-nccl-cu11", "nccl 2.21.5 (nccl 2.21.5, "),
    ],
)
def test_explain_package_answers_for_a_project_alone(run: Run, project: str, answer: str) -> None:
    result = run("explain", "package", project)
    assert result.stdout.startswith(f"{project}: wheels of ")
    assert result.stdout.splitlines()[1].startswith(answer)
    document = json.loads(run("explain", "package", project, "--json").stdout)
    folders = {archive["relative_path"].partition("/")[0] for archive in document["archives"]}
    assert folders == {project.replace("_", "-")}


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            "nvidia-cublas-cu10",
            "no project of libcublas is called 'nvidia-cublas-cu10'",
            "did you mean nvidia-cublas or nvidia-cublas-cu11 or nvidia-cublas-cu12?",
        ),
        ("cuda", "'cuda' is a product, not a package", "or for a release `cudaredist explain cuda"),
        ("nvpl", "'nvpl' is a product, not a package", "nvpl_blas, nvpl_common"),
        (
            "libnpp --platform linux-aarch64 --channel wheels",
            "no local release of libnpp is for linux-aarch64",
            "NVIDIA has no wheels for linux-aarch64: for its archives, run `cudaredist download",
        ),
        (
            "nccl --platform windows-x86_64",
            "no local release of nccl is for windows-x86_64, only for linux-sbsa, linux-x86_64",
            "run `cudaredist explain package nccl`",
        ),
        (
            "nccl --platform linux-x86",
            "no platform of nccl is called 'linux-x86'",
            "--platform linux-x86_64`",
        ),
    ],
)
def test_explain_package_refuses_unknown_names(
    run: Run, words: str, message: str, hint: str
) -> None:
    expect_error(run("explain", "package", *words.split()), 2, message, hint)


def test_explain_package_knows_every_package_of_set(data: Path) -> None:
    store = store_to_read(data, "redist")
    package_set = build(read_set_data(store), also=(("cudnn", "8.9.7"),))
    index = Index(store, Cache(data.parent / "cache"))
    reports = {name: explain_package(name, index) for name in package_set.packages}
    assert reports["cudnn_8_9"].archives
    for name, report in reports.items():
        entry = package_set.packages[name]
        assert (entry.status == "withheld") is any(
            reason.code == "withheld-by-policy" for reason in report.reasons
        )
        assert report.archives or report.reasons[-1].code == "not-in-manifest"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("mft", "not in package sets: purpose unclear; contains FHS paths (policy/withheld.json)"),
        (
            "cuquantum",
            "cuquantum: NVIDIA's archives of cuquantum 0.1.0 to 26.09.0; none of the known wheels, "
            "but of its parts: cudensitymat, cupauliprop, custabilizer, custatevec, cutensornet",
        ),
        ("tensorrt", "license: TensorRT EULA; may not be redistributed"),
        (
            "cccl",
            "cuda    wheels    13.3.5.0.6  2026-11-04  13.5.0         linux-sbsa linux-x86_64 "
            "windows-arm64 windows-x86_64",
        ),
    ],
)
def test_explain_package_of_shipped_data_gives_reason(run: Run, name: str, line: str) -> None:
    result = expect_output(run("explain", "package", name), 0)
    assert line in result.stdout.splitlines()


def test_explain_package_has_outputs_and_files_of_sets(run: Run) -> None:
    result = run("explain", "package", "cuda_sanitizer_api", "--json")
    archives = {(a["release"], a["platform"]): a for a in json.loads(result.stdout)["archives"]}
    for release in ("13.4.3", "13.5.0"):
        archive = archives[release, "linux-x86_64"]
        assert list(archive["outputs"]) == ["out"]
        assert "ld-linux-x86-64.so.2" in archive["needed"]
        assert "ld-linux.so.2" not in archive["needed"]


def test_history_of_shipped_data_has_symbols_and_changes(run: Run) -> None:
    result = expect_output(run("explain", "package", "nccl", "--history"), 0)
    start = result.stdout.index("nccl (nccl, wheels) for linux-x86_64/cuda11")
    rows = result.stdout[start:].splitlines()[1:6]
    assert [row.split()[1:7] for row in rows[:2]] == [
        ["date", "MB", "symbols", "added", "removed", "changes"],
        ["2022-07-27", "222.8", "#########", "27", "-", "-"],
    ]
    assert rows[4].split()[4:] == ["55", "26", "0"]
    assert "GPUs: sm_35 sm_50 sm_60 sm_61 sm_70 sm_80 sm_90 compute_90" in rows[3]
    document = json.loads(run("explain", "package", "nccl", "--history", "--json").stdout)
    archives = {(a["release"], a["platform"], a["variant"]): a for a in document["archives"]}
    archive = archives["2.16.2", "linux-x86_64", "cuda11"]
    assert (document["kind"], archive["symbols"], archive["added"]) == ("history", 55, 26)
    assert archive["license"] == "NVIDIA Proprietary Software"
    plain = json.loads(run("explain", "package", "nccl", "--json").stdout)["archives"]
    assert [sum(o["size"] for o in a["outputs"].values()) for a in plain] == [
        a["size"] or 0 for a in document["archives"]
    ]


def test_history_without_symbols_is_unknown(run: Run, data: Path) -> None:
    call = ("explain", "package", "libcublas", "--history", "--data-dir", data)
    result = run(*call, "--no-shipped-data")
    assert [line.split()[4:7] for line in result.stdout.splitlines() if "12.9.1" in line] == [
        ["-", "-", "-"],
        ["-", "-", "-"],
    ]


def test_explain_package_of_unknown_name_suggests_package(run: Run, data: Path) -> None:
    result = expect_output(run("explain", "package", "libcublass", "--data-dir", data), 2)
    assert "did you mean libcublas" in result.output


def test_unusual_contents_of_a_shipped_archive_are_notes(run: Run) -> None:
    result = run("explain", "package", "cuda_opencl", "--data-dir", REPOSITORY / "data")
    assert "  notes: binaries for several machines: x86 (1), x86_64 (1)" in result.stdout
    assert "link added" not in result.stdout
