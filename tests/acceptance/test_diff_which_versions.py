"""diff, which and versions as a user sees them, on small releases."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support import server as faults
from support.factory import manifest
from support.releases import put, release
from support.running import report, succeed
from support.server import FaultServer
from support.small_sets import LABEL, LINUX, library, make_data, make_sets
from typer.testing import Result

NEWER = "12.9.2"


def newer() -> dict[str, Any]:
    """A CUDA release in which headers moved, a library was renamed and a licence changed."""
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
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two releases of CUDA and two of cuDNN, all examined, and a cache."""
    root = tmp_path_factory.mktemp("made")
    make_data(root)
    files = release(NEWER, newer())
    put(root / "source/compute/cuda/redist", files)
    put(root / "data/manifests/cuda", {n: d for n, d in files.items() if "/" not in n})
    places = ("--data-dir", root / "data", "--cache-dir", root / "cache")
    succeed("process-manifests", "-q", "--base-url", root / "source", *places)
    make_sets(root)
    return root


@pytest.fixture
def ask(run: Run, made: Path) -> Run:
    """Run a command on that data folder and cache."""
    places = ("--data-dir", made / "data")
    return lambda command, *more: run(command, *places, *more)


@pytest.fixture
def cached(made: Path) -> tuple[object, ...]:
    """The options for the cache that knows every archive."""
    return ("--cache-dir", made / "cache")


# -- diff


def test_two_releases_held_with_their_features(ask: Run, cached: tuple[object, ...]) -> None:
    result = ask("diff", f"cuda@{LABEL}", f"cuda@{NEWER}", *cached)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "cuda@12.9.1 -> cuda@12.9.2"
    assert "  windows-x86_64: gone altogether" in lines
    assert "  linux-sbsa: gone altogether" not in lines
    assert "  mft 12.9.1.5 (linux-sbsa, linux-x86_64)" in lines
    assert "  cuda_headers 12.9.2.5 (linux-sbsa, linux-x86_64) from cuda_cudart" in lines
    assert "  cuda_cudart 12.9.1.5 -> 12.9.2.5 split: cuda_headers" in lines
    assert "      sonames [linux-sbsa, linux-x86_64]: -libcudart.so.12 +libcudart.so.13" in lines
    assert "      needed [linux-sbsa, linux-x86_64]: +libm.so.6" in lines
    assert lines.index("platforms:") < lines.index("gone:") < lines.index("may break:")


def test_a_split_by_content_needs_the_cache(ask: Run) -> None:
    lines = ask("diff", f"cuda@{LABEL}", f"cuda@{NEWER}").stdout.splitlines()
    assert "  cuda_headers 12.9.2.5 (linux-sbsa, linux-x86_64)" in lines


def on(platforms: tuple[str, ...], **packages: dict[str, bytes]) -> dict[str, Any]:
    return {name: dict.fromkeys(platforms, files) for name, files in packages.items()}


def test_a_file_and_a_folder_that_moved_with_and_without_other_content(run: Run) -> None:
    both = ("linux-sbsa", "linux-x86_64")
    folder = {"include/x/1.h": b"1", "include/x/2.h": b"2", "include/x/3.h": b"3"}
    old = on(
        both, big={**folder, "bin/a": b"a", "nvvm/b.bc": b"b", "c/d": b"d"}, other={"e/f": b""}
    )
    new = on(
        both,
        big={"bin/a": b"new"},
        part={**folder, "include/x/2.h": b"another", "LICENSE": b"text"},
        other={"e/f": b"", "nvvm/b.bc": b"another", "c/changed/d": b"d"},
    )
    for label, packages in ((LABEL, old), (NEWER, new)):
        files = release(label, packages)
        put(Path("source/compute/cuda/redist"), files)
        put(Path("data/manifests/cuda"), {n: d for n, d in files.items() if "/" not in n})
    assert run("process-manifests", "-q", "--base-url", "source").exit_code == 0
    lines = run("diff", f"cuda@{LABEL}", f"cuda@{NEWER}").stdout.splitlines()
    assert "  part 12.9.2.5 (linux-sbsa, linux-x86_64) from big" in lines
    assert lines[lines.index("moved:") + 1 :][:2] == [
        "  big -> other: c/d -> c/changed/d, nvvm/b.bc",
        "  big -> part: include/x/ (3 files)",
    ]
    back = report(run("diff", f"cuda@{NEWER}", f"cuda@{LABEL}", "--json"))
    assert back["moves"] == [
        {
            "old": "other",
            "new": "big",
            "equal": ["nvvm/b.bc"],
            "gone": ["c/changed/d"],
            "added": ["c/d"],
        },
        {"old": "part", "new": "big", "equal": sorted(folder), "gone": [], "added": []},
    ]


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
@pytest.mark.parametrize(
    "kind",
    [f"cuda@{LABEL}", "data/manifests/cuda/redistrib_12.9.1.json",
     "data/features/cuda/feature_12.9.1.json", "sets/linux-x86_64/cuda-12.9.1.json"],
)  # fmt: skip
def test_nothing_differs_from_itself(ask: Run, made: Path, kind: str, form: str) -> None:
    side = kind if "@" in kind else str(made / kind)
    result = ask("diff", side, side, "--format", form)
    assert result.exit_code == 0
    if form == "json":
        found = report(result)
        assert (found["packages"], found["platforms"], found["tables"]) == ([], None, [])
        assert found["equal"] > 0
    else:
        assert "0 packages differ" in result.stdout


def test_json_has_the_delta_words(ask: Run) -> None:
    found = report(ask("diff", f"cuda@{LABEL}", f"cuda@{NEWER}", "--json"))
    assert {"old", "new", "packages", "platforms", "tables", "equal"} <= found.keys()
    (cudart,) = (p for p in found["packages"] if p["package"] == "cuda_cudart")
    assert cudart["status"] == "changed"
    fields = {delta["field"]: delta for delta in cudart["deltas"]}
    assert (fields["version"]["old"], fields["version"]["new"]) == ("12.9.1.5", "12.9.2.5")
    assert fields["sonames"]["added"] == ["libcudart.so.13"]
    assert fields["sonames"]["gone"] == ["libcudart.so.12"]


def test_two_package_sets(ask: Run, made: Path) -> None:
    sets = [made / f"sets/{platform}/cuda-12.9.1.json" for platform in LINUX]
    lines = ask("diff", *sets).stdout.splitlines()
    at = lines.index("may break:")
    assert "      status: available -> unsupported" in lines[at:]


def test_archives_rebuilt_under_one_version(run: Run) -> None:
    for name, salt in (("old", ""), ("new", "rebuilt")):
        put(Path(), {f"{name}/redistrib_12.9.1.json": manifest(salt=salt)})
    sides = [f"{name}/redistrib_12.9.1.json" for name in ("old", "new")]
    text = run("diff", *sides).stdout.splitlines()
    assert text[1] == "warning: other bytes under the same version:"
    assert (
        "**Warning: other bytes under the same version**"
        in run("diff", *sides, "--format", "markdown").stdout
    )


@pytest.mark.parametrize(
    ("sides", "code", "said"),
    [
        (("cuda@12.9.1", "cuda@1.0"), 2, "no local release of cuda is called '1.0'"),
        (("cuda@12.9.1", "cudn@9.10.2"), 2, "did you mean cudnn"),
        (("cuda@12.9.1", "nowhere.json"), 2, "no such file"),
        (("cuda@12.9.1", "DATA/features/cuda/feature_12.9.1.json"), 2, "is a feature file"),
        (("DATA/manifests/lock.json", "DATA/manifests/lock.json"), 2, "no such file"),
        (("DATA/gpus.json", "DATA/gpus.json"), 5, "is not a manifest"),
    ],
)
def test_what_cannot_be_compared(
    ask: Run, made: Path, sides: tuple[str, ...], code: int, said: str
) -> None:
    shutil.copytree(made / "data", "copy")
    shutil.copy(Path(__file__).parents[2] / "data/gpus.json", "copy/gpus.json")
    result = ask("diff", *(side.replace("DATA", "copy") for side in sides))
    assert result.exit_code == code, result.output
    assert said in result.stderr


def test_a_release_held_with_a_manifest_that_lies_elsewhere(ask: Run, made: Path) -> None:
    """As one looks at a manifest before it is taken."""
    manifest_path = made / "data/manifests/cuda/redistrib_12.9.2.json"
    both = ask("diff", f"cuda@{LABEL}", f"cuda@{NEWER}", "--json")
    result = ask("diff", f"cuda@{LABEL}", manifest_path, "--json")
    assert result.exit_code == 0
    names = [package["package"] for package in report(both)["packages"]]
    assert [package["package"] for package in report(result)["packages"]] == names
    assert "-libcudart.so.12" not in ask("diff", f"cuda@{LABEL}", manifest_path).stdout


def test_two_feature_files_tell_platforms_and_other_bytes(ask: Run, made: Path) -> None:
    path = made / "data/features/cuda/feature_12.9.1.json"
    document = json.loads(path.read_bytes())
    package = document["packages"]["libcublas"]
    archives = package["archives"]
    del archives[0], package["files"], package["missing_headers"]
    archives[0]["sha256"] = "0" * 64
    Path("other.json").write_text(json.dumps(document))
    lines = ask("diff", path, "other.json").stdout.splitlines()
    assert lines[1:3] == ["warning: other bytes under the same version:", "  libcublas"]
    assert lines[3].startswith("      sha256 [linux-x86_64]: ")
    assert "      platforms: -linux-sbsa" in lines


def test_feature_files_of_other_tools_say_nothing(ask: Run, made: Path) -> None:
    shutil.copytree(made / "data", "copy")
    Path("copy/features/cuda/feature_12.9.2.json").unlink()
    Path("copy/features/cuda/redistrib_features_12.9.2.json").write_text('{"cuda_cudart": {}}')
    places = ("--data-dir", "copy")
    assert ask("diff", f"cuda@{LABEL}", f"cuda@{NEWER}", *places).exit_code == 0
    found = report(ask("which", "libcudart.so.1?", "--json", *places))
    assert {hit["release"] for hit in found["hits"]} == {LABEL}


@pytest.mark.parametrize("call", [("diff", "cuda@12.9.1", "cuda@12.9.2"), ("which", "x.h")])
@pytest.mark.parametrize(
    "path", ["manifests/cuda/redistrib_12.9.2.json", "features/cuda/feature_12.9.2.json"]
)
def test_a_broken_file_is_named(ask: Run, made: Path, call: tuple[str, ...], path: str) -> None:
    shutil.copytree(made / "data", "copy")
    Path("copy", path).write_text('{"schema_version": 1}')
    result = ask(*call, "--data-dir", "copy")
    assert result.exit_code == 5
    assert path in result.stderr


@pytest.mark.parametrize(
    "call",
    [
        ("diff", "cuda@12.9.1", "cuda@12.9.2"),
        ("which", "x.h"),
        ("build",),
        *(
            (command, "--data-dir", REPOSITORY / "data", "--check")
            for command in ("bump", "process-manifests", "update-gpus", "update-nvcc-compat")
        ),
    ],
)
def test_no_local_manifests_names_the_other_channel(run: Run, call: tuple[str, ...]) -> None:
    result = run(*call, "--channel", "redist")
    assert result.exit_code == 2
    assert "no local manifests" in result.stderr
    assert "add --channel wheels" in result.stderr


@pytest.mark.parametrize(
    ("options", "fetches"),
    [
        (("--channel", "redist"), "cudaredist download-manifests"),
        (("--channel", "wheels"), "cudaredist download-manifests --channel wheels"),
    ],
)
def test_no_local_manifests_at_all_names_the_download(
    run: Run, options: tuple[str, ...], fetches: str
) -> None:
    Path("data").mkdir()
    result = run("which", "x.h", "--data-dir", "data", "--no-shipped-data", *options)
    assert result.exit_code == 2
    assert f"run `{fetches}`" in " ".join(result.stderr.split())


def test_diff_of_different_redistributables_has_a_note(ask: Run, made: Path) -> None:
    manifests = made / "data/manifests"
    feature_files = made / "data/features"
    note = "note: different redistributables: cuda and cudnn"
    for sides in (
        ("cuda@12.9.1", "cudnn@9.10.2"),
        (manifests / "cuda/redistrib_12.9.1.json", manifests / "cudnn/redistrib_9.10.2.json"),
        (feature_files / "cuda/feature_12.9.1.json", feature_files / "cudnn/feature_9.10.2.json"),
    ):
        result = ask("diff", *sides)
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[1] == note
        assert f"Note: {note[6:]}.\n" in ask("diff", *sides, "--format", "markdown").stdout
    assert report(ask("diff", "cuda@12.9.1", "cuda@12.9.2", "--json"))["notes"] == []


def test_diff_of_two_files_says_nothing_about_the_channel(run: Run) -> None:
    """The shipped data has only the wheel channel."""
    put(Path(), {f"{name}/redistrib_12.9.1.json": manifest() for name in ("old", "new")})
    result = run("diff", "old/redistrib_12.9.1.json", "new/redistrib_12.9.1.json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "--channel wheels" in run("diff", "cuda@12.9.1", "cuda@13.0.2").stderr


# -- which


def rows(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines() if not line.startswith("of ")]


def test_a_soname_by_the_features(ask: Run) -> None:
    result = ask("which", "libcublas.so.12")
    assert rows(result) == [
        ["redist", "package", "output", "file", "platform", "releases"],
        ["cuda", "libcublas", "lib", "lib/libcublas.so.12", "linux-sbsa", "12.9.1"],
        ["cuda", "libcublas", "lib", "lib/libcublas.so.12", "linux-x86_64", "12.9.1", "12.9.2"],
        ["cuda", "libcublas", "stubs", "lib/stubs/libcublas.so", "linux-sbsa", "12.9.1"],
        ["cuda", "libcublas", "stubs", "lib/stubs/libcublas.so", "linux-x86_64", "12.9.1"],
    ]
    assert "process-manifests" not in result.stdout


@pytest.mark.parametrize(
    "name", ["cublas_v2.h", "include/cublas_v2.h", "cublas_v?.h", "*/cublas_v2.h"]
)
def test_which_header_is_found_by_the_features(ask: Run, name: str) -> None:
    result = ask("which", name, "--platform", "linux-sbsa")
    assert rows(result)[1:] == [
        ["cuda", "libcublas", "include", "include/cublas_v2.h", "linux-sbsa", "12.9.1"]
    ]


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ((), ["12.9.1", "12.9.2"]),
        (("--cuda", "12.9"), ["12.9.1", "12.9.2"]),
        (("--cuda", "12.9.2"), ["12.9.2"]),
        (("--redist", "cuda"), ["12.9.1", "12.9.2"]),
    ],
)
def test_of_some_releases(ask: Run, options: tuple[str, ...], labels: list[str]) -> None:
    found = report(
        ask("which", "lib/libcublas.so.12", "--platform", "linux-x86_64", "--json", *options)
    )
    assert [hit["release"] for hit in found["hits"]] == labels


def test_a_path_by_its_end(ask: Run) -> None:
    """As `#include <crt/host_config.h>` or `stubs/libcuda.so` name it."""
    found = report(ask("which", "stubs/libcublas.so", "--json"))
    assert {hit["path"] for hit in found["hits"]} == {"lib/stubs/libcublas.so"}


def test_other_redistributables_and_their_variants(ask: Run) -> None:
    found = report(ask("which", "libcudnn.so.*", "--json"))
    assert {(h["redist"], h["release"], h["variant"]) for h in found["hits"]} == {
        ("cudnn", "8.9.7", "cuda12"),
        ("cudnn", "9.10.2", "cuda12"),
    }


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("libnothing.so",), 1, "no local package provides libnothing.so"),
        (("ib/libcublas.so.12",), 1, "no local package provides ib/libcublas.so.12"),
        (("x", "--cuda", "11.8"), 2, "no local manifest of CUDA 11.8"),
        (("x", "--cuda", "twelve"), 2, "is not a version"),
        (("x", "--platform", "linux-x86"), 2, "did you mean linux-x86_64"),
        (("x", "--redist", "cudn"), 2, "did you mean"),
    ],
)
def test_nobody_has_it(ask: Run, options: tuple[str, ...], code: int, said: str) -> None:
    result = ask("which", *options)
    assert result.exit_code == code
    assert said in result.output


@pytest.mark.parametrize("name", ["libcuda.so.1", "lib/libcuda.so.1", "NVCUDA.dll"])
def test_which_library_of_the_driver_names_the_driver(ask: Run, name: str) -> None:
    result = ask("which", name)
    assert result.exit_code == 0
    assert f"{name} is provided by the driver: part of the driver\n" in result.stdout
    assert report(ask("which", name, "--json"))["outside"]["owner"] == "driver"


def test_which_library_of_the_system_names_its_package(ask: Run) -> None:
    result = ask("which", "libz.so.1")
    assert "libz.so.1 is provided by zlib: compression\n" in result.stdout


@pytest.mark.parametrize("name", ["libcublas", "libcublas.so", "libcublass.so.12"])
def test_which_name_without_version_suggests_sonames(run: Run, name: str) -> None:
    """On the shipped data."""
    words = run("which", name).stdout.splitlines()
    (line,) = [line for line in words if line.startswith("did you mean ")] or [""]
    if name == "libcublas.so":  # a stub has this name
        assert line == ""
    else:
        assert "libcublas.so.12" in line


@pytest.fixture
def aged(made: Path) -> Path:
    """A copy of that data folder whose features are as earlier rules made them, without files."""
    shutil.copytree(made / "data", "aged")
    for path in Path("aged/features").rglob("*.json"):
        document = json.loads(path.read_bytes())
        document["rules"] = 1
        for package in document["packages"].values():
            for name in ("files", "missing_headers"):
                package.pop(name, None)
        path.write_text(json.dumps(document))
    return Path("aged")


def test_which_header_in_features_of_earlier_rules_is_unknown(run: Run, aged: Path) -> None:
    result = run("which", "cublas_v2.h", "--data-dir", aged)
    assert result.exit_code == 3
    assert "the provider of cublas_v2.h is unknown\n" in result.stdout
    assert "no local package provides" not in result.stdout
    assert run("which", "libnothing.so", "--data-dir", aged).exit_code == 1
    assert run("which", "libcublas.so.12", "--data-dir", aged).exit_code == 0


def test_which_hint_about_unknown_archives_works(run: Run, made: Path, aged: Path) -> None:
    """The command that the hint names, with the source of these archives."""
    call = ("which", "cublas_v2.h", "--data-dir", aged, "--redist", "cuda")
    unknown = report(run(*call, "--json"))
    words = shlex.split(unknown["hint"])[1:]
    assert run(*words, "-q", "--base-url", made / "source").exit_code == 0
    assert run(*call).exit_code == 0


def test_which_header_and_program_are_found_in_the_shipped_data(run: Run) -> None:
    for name, package in {"cuda_runtime.h": "cuda_cudart", "ptxas": "cuda_nvcc"}.items():
        found = report(run("which", name, "--cuda", "13.0.2", "--json"))
        assert package in {hit["package"] for hit in found["hits"]}
        assert found["unknown"] == 0


# -- versions


@pytest.fixture
def upstream(server: FaultServer, run: Run) -> FaultServer:
    """A server with newer releases than are held."""
    server.add_manifests("cuda", {label: manifest(label) for label in ("12.9.1", "13.0.2")})
    server.add_manifests("cudnn", {"9.10.2": manifest("9.10.2", "cudnn")})
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": manifest("12.9.1")})
    return server


def test_lines_held_and_upstream(upstream: FaultServer, run: Run) -> None:
    both = ("--redist", "cuda", "--redist", "cudnn")
    result = run("versions", "--base-url", upstream.url, *both)
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["redist", "line", "local", "upstream", "state"],
        ["cuda", "12.9", "12.9.1", "12.9.1", "current"],
        ["cuda", "13.0", "-", "13.0.2", "new"],
        ["cudnn", "9.10", "-", "9.10.2", "new"],
    ]
    assert not [path for path in upstream.requests if path.endswith(".json")]


def test_what_renovate_reads(upstream: FaultServer, run: Run) -> None:
    result = run("versions", "--base-url", upstream.url, "--redist", "cuda", "--format", "renovate")
    found = report(result)
    assert found["releases"] == [{"version": "12.9.1"}, {"version": "13.0.2"}]
    assert found["homepage"].startswith("https://")


def test_what_nvchecker_reads(upstream: FaultServer, run: Run) -> None:
    options = ("versions", "--base-url", upstream.url, "--redist", "cuda")
    assert run(*options, "--format", "newest").stdout == "13.0.2\n"
    assert report(run(*options, "--json"))["releases"]["cuda"][-1] == "13.0.2"


@pytest.mark.parametrize("form", ["renovate", "newest"])
def test_bots_ask_about_one(run: Run, form: str) -> None:
    result = run("versions", "--format", form, "--offline")
    assert result.exit_code == 2
    assert "requires exactly one --redist" in result.stderr


def test_offline_is_what_is_held(upstream: FaultServer, run: Run) -> None:
    result = run("versions", "--offline")
    assert [line.split() for line in result.stdout.splitlines()][1:] == [
        ["cuda", "12.9", "12.9.1", "-", "unknown"]
    ]
    assert not upstream.requests


def test_a_server_that_is_down(upstream: FaultServer, run: Run) -> None:
    upstream.misbehave("/compute/cuda/redist/", faults.status(503))
    result = run("versions", "--base-url", upstream.url, "--retries", 0, "--redist", "cuda")
    assert result.exit_code == 3
    assert "503" in result.stderr
    assert "unknown" in result.stdout
    # What is held is not what upstream has, and no releases at all would be taken for withdrawn.
    for form in ("renovate", "newest"):
        asked = ("versions", "--base-url", upstream.url, "--retries", 0, "--redist", "cuda")
        result = run(*asked, "--format", form)
        assert (result.exit_code, result.stdout) == (3, "")


def test_what_no_source_has(upstream: FaultServer, run: Run) -> None:
    result = run("versions", "--base-url", upstream.url)
    assert result.exit_code == 0
    assert "not at this source: cublasmp" in result.stdout
    asked = run("versions", "--base-url", upstream.url, "--redist", "nccl", "--format", "newest")
    assert (asked.exit_code, asked.stdout) == (3, "")


def test_versions_of_a_truncated_listing_of_matching_length_are_not_known(
    upstream: FaultServer, run: Run
) -> None:
    upstream.misbehave("/compute/cuda/redist/", faults.truncated_with_matching_length)
    result = run("versions", "--base-url", upstream.url, "--retries", 0, "--redist", "cuda")
    assert result.exit_code == 3
    assert "the listing has no end" in result.stderr
