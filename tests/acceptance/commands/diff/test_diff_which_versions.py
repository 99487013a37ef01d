"""Tests of the diff, which and versions commands on small releases."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support import server as faults
from support.factory import manifest
from support.patching import Patch
from support.releases import put, release
from support.running import expect_error, expect_output, report, succeed
from support.server import FaultServer
from support.small_sets import LABEL, LINUX, library, make_data, make_sets
from typer.testing import Result

NEWER = "12.9.2"


def newer() -> dict[str, Any]:
    """Return a release with moved headers, a renamed library and another license."""
    return {
        "cuda_cudart": {
            platform: {"lib/libcudart.so.13": library(machine, "libcudart.so.13", "libm.so.6")}
            for platform, machine in LINUX.items()
        },
        "cuda_headers": {
            platform: {"include/cuda_runtime.h": b"#pragma once\n"} for platform in LINUX
        },
        "libcublas": {
            "linux-x86_64": {"lib/libcublas.so.12": library("x86_64", "libcublas.so.12")}
        },
    }


@pytest.fixture(scope="module")
def folder_with_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a cache and a data folder with examined releases."""
    root = tmp_path_factory.mktemp("folder_with_data")
    make_data(root)
    files = release(NEWER, newer())
    put(root / "source/compute/cuda/redist", files)
    put(root / "data/manifests/cuda", {n: d for n, d in files.items() if "/" not in n})
    options = ("--data-dir", root / "data", "--cache-dir", root / "cache")
    succeed("process-manifests", "-q", "--base-url", root / "source", *options)
    make_sets(root)
    return root


@pytest.fixture
def ask(run: Run, folder_with_data: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on that data folder and cache."""
    monkeypatch.setenv("CUDAREDIST_CACHE_DIR", str(folder_with_data / "cache"))
    options = ("--data-dir", folder_with_data / "data")
    archives = {"which": ("--channel", "redist", "--no-shipped-data")}
    return lambda command, *more: run(command, *options, *archives.get(command, ()), *more)


# -- diff


def test_diff_of_local_releases_includes_features(ask: Run, folder_with_data: Path) -> None:
    call = ("diff", f"cuda@{LABEL}", f"cuda@{NEWER}")
    expect_output(
        ask(*call, "--cache-dir", folder_with_data / "cache"),
        0,
        "cuda@12.9.1 -> cuda@12.9.2\nsummary:\n  5 packages gone, 1 package split, 2 sonames gone",
        "\nplatforms:\n  windows-x86_64: no archives any more\ngone:\n",
        "  mft 12.9.1.5 (linux-sbsa, linux-x86_64)\n",
        "  cuda_headers 12.9.2.5 (linux-sbsa, linux-x86_64) from cuda_cudart\n",
        "  cuda_cudart 12.9.1.5 -> 12.9.2.5 split: cuda_headers\n",
        "      sonames [linux-sbsa, linux-x86_64]: -libcudart.so.12 +libcudart.so.13\n",
        "      needed [linux-sbsa, linux-x86_64]: +libm.so.6\n",
        "      lib/libcudart_static.a [linux-sbsa, linux-x86_64]\n",
        "  cuda_cudart -> cuda_headers: 1 header\n      include/cuda_runtime.h [linux-sbsa, ",
    )


def test_diff_of_one_platform(ask: Run, folder_with_data: Path) -> None:
    call = ("diff", f"cuda@{LABEL}", f"cuda@{NEWER}", "--platform")
    document = report(ask(*call, "linux-x86_64", "--json"))
    places = {place for change in document["files"] for place in change["places"]}
    assert places == {"linux-x86_64"}
    assert "sbsa" not in ask(*call, "linux-x86_64").stdout
    assert "did you mean linux-sbsa" in ask(*call, "linux-sbs").stderr


@pytest.mark.parametrize(
    "kind",
    [f"cuda@{LABEL}", "data/manifests/cuda/redistrib_12.9.1.json",
     "data/features/cuda/feature_12.9.1.json", "sets/linux-x86_64/cuda-12.9.1.json"],
)  # fmt: skip
def test_diff_of_a_side_with_itself_is_empty(ask: Run, folder_with_data: Path, kind: str) -> None:
    side = kind if "@" in kind else str(folder_with_data / kind)
    expect_output(ask("diff", side, side), 0, "0 packages differ")
    document = report(ask("diff", side, side, "--json"))
    assert (document["packages"], document["platforms"], document["tables"]) == ([], None, [])
    assert document["equal"] > 0


def test_diff_of_package_sets_reports_status_changes(ask: Run, folder_with_data: Path) -> None:
    sets = [folder_with_data / f"sets/{platform}/cuda-12.9.1.json" for platform in LINUX]
    lines = ask("diff", *sets).stdout.splitlines()
    index = lines.index("may break:")
    assert "      status: available -> unsupported" in lines[index:]


@pytest.mark.parametrize(
    ("sides", "code", "message"),
    [
        (("cuda@12.9.1", "cuda@1.0"), 2, "no local release of cuda is called '1.0'"),
        (("cuda@12.9.1", "cudn@9.10.2"), 2, "did you mean cudnn"),
        (("cuda@12.9.1", "nowhere.json"), 2, "no such file"),
        (("cuda@12.9.1", f"cuda@{'1' * 300}"), 2, "no local release of cuda is called"),
        (("cuda@12.9.1", "DATA/features/cuda/feature_12.9.1.json"), 2, "is a feature file"),
        (("DATA/lock.json", "DATA/lock.json"), 2, "no such file"),
        (("DATA/gpus.json", "DATA/gpus.json"), 5, "is not a manifest"),
    ],
)
def test_diff_of_invalid_sides_is_rejected(
    ask: Run, folder_with_data: Path, sides: tuple[str, ...], code: int, message: str
) -> None:
    shutil.copytree(folder_with_data / "data", "copy")
    shutil.copy(REPOSITORY / "data/gpus.json", "copy/gpus.json")
    expect_error(ask("diff", *(side.replace("DATA", "copy") for side in sides)), code, message)


def test_diff_of_local_release_and_manifest_file_lists_packages(
    ask: Run, folder_with_data: Path
) -> None:
    """A user compares a manifest before storing it."""
    manifest_path = folder_with_data / "data/manifests/cuda/redistrib_12.9.2.json"
    both = ask("diff", f"cuda@{LABEL}", f"cuda@{NEWER}", "--json")
    result = expect_output(ask("diff", f"cuda@{LABEL}", manifest_path, "--json"), 0)
    names = [package["package"] for package in report(both)["packages"]]
    assert [package["package"] for package in report(result)["packages"]] == names
    assert "-libcudart.so.12" not in ask("diff", f"cuda@{LABEL}", manifest_path).stdout


@pytest.mark.parametrize(("newest", "is_compared"), [("13.0.", True), ("12.9.", False)])
def test_diff_compares_gpus_of_releases_up_to_newest_one_in_table(
    ask: Run, folder_with_data: Path, newest: str, *, is_compared: bool
) -> None:
    shutil.copytree(folder_with_data / "data", "copy")
    files = release("13.0.2", newer())
    put(Path("copy/manifests/cuda"), {n: d for n, d in files.items() if "/" not in n})
    gpus = json.loads((REPOSITORY / "data/gpus.json").read_bytes())
    sources = gpus["sources"].items()
    gpus["sources"] = {n: source for n, source in sources if n.startswith(("12.9.", newest))}
    Path("copy/gpus.json").write_text(json.dumps(gpus))
    call = ("diff", "cuda@12.9.1", "cuda@13.0.2", "--data-dir", "copy", "--no-shipped-data")
    assert ("  supported capabilities: -5.0 " in ask(*call).stdout) == is_compared


def test_feature_files_of_other_tools_are_ignored(ask: Run, folder_with_data: Path) -> None:
    shutil.copytree(folder_with_data / "data", "copy")
    Path("copy/features/cuda/feature_12.9.2.json").unlink()
    Path("copy/features/cuda/redistrib_features_12.9.2.json").write_text('{"cuda_cudart": {}}')
    options = ("--data-dir", "copy")
    assert ask("diff", f"cuda@{LABEL}", f"cuda@{NEWER}", *options).exit_code == 0
    document = report(ask("which", "libcudart.so.1?", "--json", *options))
    assert {hit["release"] for hit in document["hits"]} == {LABEL}


@pytest.mark.parametrize("call", [("diff", "cuda@12.9.1", "cuda@12.9.2"), ("which", "x.h")])
@pytest.mark.parametrize(
    "path", ["manifests/cuda/redistrib_12.9.2.json", "features/cuda/feature_12.9.2.json"]
)
def test_broken_file_is_named_in_error(
    ask: Run, folder_with_data: Path, call: tuple[str, ...], path: str
) -> None:
    shutil.copytree(folder_with_data / "data", "copy")
    Path("copy", path).write_text('{"schema_version": 1}')
    expect_error(ask(*call, "--data-dir", "copy"), 5, path)


@pytest.mark.parametrize(
    "call",
    [
        ("diff", "cuda@12.9.1", "cuda@12.9.2", "--no-shipped-data"),
        ("which", "x.h", "--no-shipped-data"),
        ("build", "--cuda", "12.9", "--platform", "linux-x86_64", "--no-shipped-data"),
        ("bump", "--check"),
        ("process-manifests", "--check"),
        ("update-gpus", "--check"),
        ("update-nvcc-compat", "--check"),
    ],
)
def test_missing_local_manifests_suggest_other_channel(run: Run, call: tuple[str, ...]) -> None:
    name = "manifests/wheels/cuda/redistrib_12.9.1.json"
    put(Path(), {f"data/{name}": (REPOSITORY / "data" / name).read_bytes()})
    expect_error(run(*call, "--channel", "redist"), 2, "no local manifests", "--channel wheels`")


def test_diff_of_different_redistributables_has_a_note(ask: Run, folder_with_data: Path) -> None:
    data = folder_with_data / "data"
    note = "note: different redistributables: cuda and cudnn"
    for form in (
        "{}@{}",
        f"{data}/manifests/{{}}/redistrib_{{}}.json",
        f"{data}/features/{{}}/feature_{{}}.json",
    ):
        sides = form.format("cuda", "12.9.1"), form.format("cudnn", "9.10.2")
        result = expect_output(ask("diff", *sides), 0)
        assert result.stdout.splitlines()[1] == note
        assert f"Note: {note[6:]}.\n" in ask("diff", *sides, "--format", "markdown").stdout
    assert report(ask("diff", "cuda@12.9.1", "cuda@12.9.2", "--json"))["notes"] == []


def test_diff_of_two_files_prints_no_channel_note(run: Run) -> None:
    put(Path(), {f"{name}/redistrib_12.9.1.json": manifest() for name in ("old", "new")})
    result = run("diff", "old/redistrib_12.9.1.json", "new/redistrib_12.9.1.json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "--channel wheels" in run("diff", "cuda@12.9.1", "cuda@13.0.2").stderr


# -- which


def rows(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines() if not line.startswith("of ")]


def test_which_finds_soname_in_features(ask: Run) -> None:
    result = ask("which", "libcublas.so.12")
    library = ("cuda", "libcublas", "archives")
    assert rows(result) == [
        ["redist", "package", "kind", "output", "file", "platform", "releases"],
        [*library, "lib", "lib/libcublas.so.12", "linux-sbsa", "12.9.1"],
        [*library, "lib", "lib/libcublas.so.12", "linux-x86_64", "12.9.1..12.9.2"],
        [*library, "stubs", "lib/stubs/libcublas.so", "linux-sbsa", "12.9.1"],
        [*library, "stubs", "lib/stubs/libcublas.so", "linux-x86_64", "12.9.1"],
    ]
    assert "process-manifests" not in result.stdout


@pytest.mark.parametrize(
    "name", ["cublas_v2.h", "include/cublas_v2.h", "cublas_v?.h", "*/cublas_v2.h"]
)
def test_which_finds_header_in_features(ask: Run, name: str) -> None:
    result = ask("which", name, "--platform", "linux-sbsa")
    assert rows(result)[1:] == [
        ["cuda", "libcublas", "archives", "include", "include/cublas_v2.h", "linux-sbsa", "12.9.1"]
    ]


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ((), ["12.9.1", "12.9.2"]),
        (("--cuda", "12.9"), ["12.9.2"]),
        (("--cuda", "12.9.1"), ["12.9.1"]),
        (("--redist", "cuda"), ["12.9.1", "12.9.2"]),
    ],
)
def test_which_options_select_releases(
    ask: Run, options: tuple[str, ...], labels: list[str]
) -> None:
    call = ("which", "lib/libcublas.so.12", "--platform", "linux-x86_64", "--json")
    assert [hit["release"] for hit in report(ask(*call, *options))["hits"]] == labels


def test_which_reports_variants_of_other_redists(ask: Run) -> None:
    document = report(ask("which", "libcudnn.so.*", "--json"))
    assert {(h["redist"], h["release"], h["variant"]) for h in document["hits"]} == {
        ("cudnn", "8.9.7", "cuda12"),
        ("cudnn", "9.10.2", "cuda12"),
    }


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("libnothing.so",), 1, "no local package provides libnothing.so"),
        (("ib/libcublas.so.12",), 1, "no local package provides ib/libcublas.so.12"),
        (("x", "--cuda", "11.8"), 2, "no local manifest of CUDA '11.8'"),
        (("x", "--cuda", ""), 2, "no local manifest of CUDA ''"),
        (("x", "--cuda", "twelve"), 2, "hint: local releases: 12.9.1, 12.9.2"),
        (("",), 2, "which requires a file, a soname or --symbol"),
        (("x", "--platform", "linux-x86"), 2, "did you mean linux-x86_64"),
        (("x", "--redist", "cudn"), 2, "did you mean"),
    ],
)
def test_which_without_provider_or_with_invalid_options_fails(
    ask: Run, options: tuple[str, ...], code: int, message: str
) -> None:
    result = expect_output(ask("which", *options), code)
    assert message in result.output


@pytest.mark.parametrize("name", ["libcuda.so.1", "lib/libcuda.so.1", "NVCUDA.dll"])
def test_which_driver_library_names_driver(ask: Run, name: str) -> None:
    copy = "cuda_compat has a copy for older drivers"
    expect_output(ask("which", name), 0, f"{name}: part of the driver\n{copy}\n")
    assert report(ask("which", name, "--json"))["outside"]["owner"] == "driver"


@pytest.mark.parametrize("name", ["libcublas", "libcublas.so", "libcublass.so.12"])
def test_which_name_without_version_lists_or_suggests_sonames(run: Run, name: str) -> None:
    """On the shipped data."""
    output = run("which", name).stdout
    assert (f"files that begin with {name}:" in output) is ("." not in name)
    # A stub is called `libcublas.so`.
    assert ("did you mean" in output) is (name == "libcublass.so.12")
    assert "libcublas.so.12" in output


@pytest.mark.parametrize(
    ("name", "package"),
    [("nsys", "nsight_systems"), ("ncu.exe", "nsight_compute"), ("libnvinfer.so.10", "tensorrt")],
)
def test_which_file_of_unexamined_package_names_package(run: Run, name: str, package: str) -> None:
    """On the shipped data, which has only wheels with contents."""
    output = expect_output(run("which", name), 3).stdout
    assert f"probably in the package {package}: run `cudaredist explain package" in output
    assert f"--package {package}` to inspect them" in output
    assert report(run("which", name, "--json"))["likely"] == [package]


def test_which_name_of_dll_without_version_suggests_versions(run: Run) -> None:
    output = expect_output(run("which", "cublas.dll"), 3).stdout
    assert "did you mean cublas64_11.dll or cublas64_12.dll or cublas64_13.dll?" in output


def test_which_symbol_of_driver_names_its_library(run: Run) -> None:
    output = expect_output(run("which", "--symbol", "cuMemAlloc_v2"), 3).stdout
    assert "cuMemAlloc_v2 is named like a function of libcuda.so.1: part of the driver" in output


@pytest.mark.parametrize("name", ["nvidia-cublas-cu12", "cutensor-cu13"])
def test_which_name_of_project_suggests_explain(run: Run, name: str) -> None:
    output = expect_output(run("which", name), 1).stdout
    assert f"{name} is a package for linux-sbsa, linux-x86_64" in output
    assert f"run `cudaredist explain package {name}`" in output


def test_which_absolute_path_is_searched_by_its_name(run: Run) -> None:
    """As users copy it from messages of the loader."""
    path = "/opt/venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12"
    assert run("which", path).stdout == run("which", "libcublas.so.12").stdout


@pytest.mark.parametrize(
    ("symbol", "suggestions"),
    [
        ("cublasLtCreat", "did you mean cublasLtCreate or "),
        ("cudaMaloc", "did you mean cudaMalloc or "),
        ("cublasXtZher2", "did you mean cublasXtZher2k or "),
        ("xyz", ""),
        ("[cub", ""),
        ("nothingLikeThis", ""),
    ],
)
def test_which_misspelled_symbol_has_suggestions(run: Run, symbol: str, suggestions: str) -> None:
    output = expect_output(run("which", "--symbol", symbol), 3).stdout
    unknown = f"the provider of {symbol} is unknown: no examined archive or wheel exports it"
    assert output.startswith(f"{unknown}\n{suggestions}")
    only_wheels = expect_output(run("which", "--symbol", symbol, "--channel", "wheels"), 1).stdout
    assert only_wheels.startswith(f"no local release exports {symbol}\n{suggestions}")
    assert ("did you mean" in output) is bool(suggestions)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (("libcudnn.so.9", "--cuda", "13.0"), "linux-x86_64/cuda13 9.12.0..9.28.1"),
        (("libcudnn.so.9", "--cuda", "11"), "lib/libcudnn.so.9 linux-x86_64/cuda11 9.0.0..9.10.2"),
        (("libcusparseLt.so.0", "--cuda", "12.8"), "linux-x86_64/cuda12 0.6.2..0.7.1"),
        (("libcusparseLt.so.0", "--cuda", "12.9"), "linux-x86_64/cuda12 0.6.2..0.8.1"),
        (
            ("--symbol", "ncclCommSplit", "--cuda", "12.9"),
            "2.18.1 or an earlier patch 2.32.3 linux-x86_64/cuda12",
        ),
        (("libcudnn.so.9",), "linux-x86_64/cuda12 9.1.1..9.19.0 9.20.0..9.28.0"),
        (("nvcc",), "cuda_nvcc wheels nvidia-cuda-nvcc out bin/nvcc linux-x86_64 13.0.0..13.5.0"),
        (("x86/TreeLauncherSubreaper",), "x86/TreeLauncherSubreaper linux-x86_64 13.4.2..13.5.0"),
    ],
)
def test_which_lists_releases_usable_with_cuda(run: Run, call: tuple[str, ...], line: str) -> None:
    """On the shipped data."""
    result = expect_output(run("which", *call), 0)
    lines = [" ".join(words.split()) for words in result.stdout.splitlines()]
    assert [text for text in lines if text.endswith(line)]
    assert ("usable with CUDA" in lines[0]) == ("--cuda" in call)
    majors = set(re.findall("/cuda([0-9]+)", result.stdout))
    assert "--cuda" not in call or majors == {call[-1].partition(".")[0]}


def test_which_groups_many_rows(run: Run) -> None:
    """On the shipped data."""
    groups = run("which", "--symbol", "ncclComm*").stdout.splitlines()
    rows = run("which", "--symbol", "ncclComm*", "--all").stdout.splitlines()
    assert groups[0].split()[:2] == ["symbols", "library"]
    assert groups[-1] == f"{len(rows) - 1} rows are grouped; add --all to list each symbol"
    assert sum(int(line.split()[0]) for line in groups[1:-1]) == len(rows) - 1 > 50
    assert max(map(len, groups)) < 200


@pytest.fixture
def aged(folder_with_data: Path) -> Path:
    """Copy the data folder with features of earlier rules, without files."""
    shutil.copytree(folder_with_data / "data", "aged")
    for path in Path("aged/features").rglob("*.json"):
        document = json.loads(path.read_bytes())
        document["rules"] = 1
        for package in document["packages"].values():
            for name in ("files", "missing_headers"):
                package.pop(name, None)
        path.write_text(json.dumps(document))
    return Path("aged")


def test_which_header_in_outdated_features_is_unknown(run: Run, aged: Path) -> None:
    options = ("--data-dir", aged, "--channel", "redist", "--no-shipped-data")
    result = run("which", "cublas_v2.h", *options)
    expect_output(result, 3, "the provider of cublas_v2.h is unknown: no examined archive or wheel")
    assert "no local package provides" not in result.stdout
    assert run("which", "libnothing.so", *options).exit_code == 1
    assert run("which", "libcublas.so.12", *options).exit_code == 0


def test_which_hint_about_unknown_archives_works(
    run: Run, folder_with_data: Path, aged: Path
) -> None:
    """Run the hint's command with the source of these archives."""
    options = ("--redist", "cuda", "--channel", "redist", "--no-shipped-data")
    call = ("which", "cublas_v2.h", "--data-dir", aged, *options)
    unknown = report(run(*call, "--json"))
    words = shlex.split(unknown["hint"])[1:]
    assert run(*words, "-q", "--base-url", folder_with_data / "source").exit_code == 0
    assert run(*call).exit_code == 0


# -- versions


@pytest.fixture
def upstream(server: FaultServer, run: Run) -> FaultServer:
    """Serve newer releases than the local ones."""
    server.add_manifests(
        "cuda", {label: manifest(label) for label in ("12.9.0", "12.9.1", "13.0.2")}
    )
    server.add_manifests("cudnn", {"9.10.2": manifest("9.10.2", "cudnn")})
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": manifest("12.9.1")})
    return server


def test_versions_lists_local_and_upstream_lines(upstream: FaultServer, run: Run) -> None:
    both = ("--redist", "cuda", "--redist", "cudnn")
    result = run("versions", "--base-url", upstream.url, *both)
    sentences, rows = result.stdout.splitlines()[:2], result.stdout.splitlines()[2:]
    assert sentences == [
        "cuda, archives: 3 releases, 12.9.0 to 13.0.2",
        "cudnn, archives: 1 release, 9.10.2",
    ]
    assert [line.split() for line in rows] == [
        ["redist", "kind", "line", "local", "date", "upstream", "state"],
        ["cuda", "archives", "12.9", "12.9.1", "2025-06-04", "12.9.1", "current"],
        ["cuda", "archives", "13.0", "-", "-", "13.0.2", "new"],
        ["cudnn", "archives", "9.10", "-", "-", "9.10.2", "new"],
    ]
    assert not [path for path in upstream.requests if path.endswith(".json")]


def test_versions_formats_for_bots_list_releases(upstream: FaultServer, run: Run) -> None:
    options = ("versions", "--base-url", upstream.url, "--redist", "cuda")
    document = report(run(*options, "--format", "renovate"))
    assert document["releases"] == [
        {"version": "12.9.0"},
        {"version": "12.9.1", "releaseTimestamp": "2025-06-04"},
        {"version": "13.0.2"},
    ]
    assert document["homepage"].startswith("https://")
    assert run(*options, "--format", "newest").stdout == "13.0.2\n"
    assert report(run(*options, "--json"))["releases"]["cuda"][-1] == "13.0.2"


def test_versions_offline_lists_local_releases(upstream: FaultServer, run: Run) -> None:
    result = run("versions", "--offline")
    assert result.stdout.startswith("cuda, archives: 1 release, 12.9.1 (2025-06-04)\n")
    assert [line.split() for line in result.stdout.splitlines()][2:] == [
        ["cuda", "archives", "12.9", "12.9.1", "2025-06-04", "-", "unknown"]
    ]
    assert not upstream.requests


def test_versions_lists_archives_and_wheels_of_the_folder(run: Run, upstream: FaultServer) -> None:
    name = "manifests/wheels/cuda/redistrib_12.9.1.json"
    put(Path(), {f"data/{name}": (REPOSITORY / "data" / name).read_bytes()})
    result = run("versions", "--offline")
    assert result.stderr == "using NVIDIA's archives and wheels of data\n"
    assert [line.split()[:4] for line in result.stdout.splitlines()][3:] == [
        ["cuda", "archives", "12.9", "12.9.1"],
        ["cuda", "wheels", "12.9", "12.9.1"],
    ]
    document = report(run("versions", "--offline", "--json"))
    assert (document["channel"], document["releases"]) == ("redist", {"cuda": ["12.9.1"]})
    assert document["other"]["releases"] == {"cuda": ["12.9.1"]}
    assert [line["channel"] for line in document["lines"]] == ["redist", "wheels"]
    # Only the source of one kind is asked, and --channel and --base-url select it.
    for options in (("--channel", "wheels", "--offline"), ("--base-url", upstream.url)):
        document = report(run("versions", "--redist", "cuda", *options, "--json"))
        assert document["other"] is None
        assert len({line["channel"] for line in document["lines"]}) == 1


def test_versions_without_server_exits_3(upstream: FaultServer, run: Run) -> None:
    upstream.misbehave("/compute/cuda/redist/", faults.status(503))
    call = ("versions", "--base-url", upstream.url, "--retries", 0, "--redist", "cuda")
    result = expect_output(run(*call), 3, "unknown")
    assert "503" in result.stderr
    # Local releases are not upstream releases, and an empty list would look like a withdrawal.
    for form in ("renovate", "newest"):
        result = run(*call, "--format", form)
        assert (result.exit_code, result.stdout) == (3, "")


def test_versions_reports_redists_missing_upstream(upstream: FaultServer, run: Run) -> None:
    expect_output(run("versions", "--base-url", upstream.url), 0, "not at this source: cublasmp")
    single = run("versions", "--base-url", upstream.url, "--redist", "nccl", "--format", "newest")
    assert (single.exit_code, single.stdout) == (3, "")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "nccl",
            [
                "no local package provides nccl for the platform, only for linux-sbsa, "
                "linux-x86_64",
                "nccl is a package for linux-sbsa, linux-x86_64: "
                "run `cudaredist explain package nccl`",
            ],
        ),
        (
            "libnccl.so.2",
            [
                "no local package provides libnccl.so.2 for the platform, only for linux-sbsa, "
                "linux-x86_64"
            ],
        ),
        ("cuda_nvcc.so --channel wheels", ["no local package provides cuda_nvcc.so"]),
    ],
)
def test_which_names_platforms_with_file(run: Run, name: str, lines: list[str]) -> None:
    """On the shipped data."""
    result = expect_output(run("which", *name.split(), "--platform", "windows-x86_64"), 1)
    assert result.stdout.splitlines() == lines


def test_which_names_project_of_wheel(run: Run) -> None:
    document = json.loads(run("which", "libcublas.so.13", "--json").stdout)
    projects = {(hit["channel"], hit["project"]) for hit in document["hits"]}
    assert projects == {("redist", None), ("wheels", "nvidia-cublas")}
    document = json.loads(run("which", "--symbol", "ncclAlltoAll", "--json").stdout)
    projects = {(hit["variant"], hit["project"]) for hit in document["symbols"]}
    assert projects == {("cuda12", "nvidia-nccl-cu12"), ("cuda13", "nvidia-nccl-cu13")}


def test_diff_of_labels_compares_cuda(run: Run) -> None:
    expected = run("diff", "cuda@12.9", "cuda@13.0").stdout
    assert run("diff", "12.9", "13.0").stdout == expected
    assert run("diff", "12.9", "cuda@13.0").stdout == expected
    Path("12.9").write_text("{}")
    expect_error(run("diff", "12.9", "13.0"), 5, "12.9: has no package")


def test_which_symbol_lists_the_newest_release_of_this_platform_first(
    run: Run, patch: Patch
) -> None:
    patch("cudaredist.commands.which.text.platform.system", lambda: "Linux")
    patch("cudaredist.commands.which.text.platform.machine", lambda: "x86_64")
    call = ("which", "--symbol", "cudaMalloc")
    _, first, *lines = run(*call).stdout.splitlines()
    assert first.split()[-1] == "linux-x86_64"
    assert first.startswith("cudaMalloc@@libcudart.so.13 ")
    assert "windows" not in "".join(lines)
    hidden = [line for line in lines if line.endswith("rows for other platforms: add --all")]
    everything = run(*call, "--all").stdout
    assert len(hidden) == 1
    assert "windows-x86_64" in everything
    assert run(*call, "--platform", "windows-x86_64").stdout.count("windows-x86_64") > 3


def test_which_beginning_of_many_files_has_a_line_for_each_package(run: Run) -> None:
    head, line, rest, *_ = run("which", "libnvrtc-builtins").stdout.splitlines()
    assert head == "files that begin with libnvrtc-builtins:"
    assert line.startswith("cuda_nvrtc  archives (by wheel) and wheels nvidia-cuda-nvrtc, ")
    assert rest.endswith("rows by release and platform: add --all")
    assert "linux-sbsa" in run("which", "libnvrtc-builtins", "--all").stdout
