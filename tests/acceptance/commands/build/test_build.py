"""Tests of the build command on a small data folder."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from conftest import REPOSITORY, Run
from support.running import expect_output
from support.set_inputs import (
    JETSON,
    LINUX,
    SBSA,
    WINDOWS,
    Release,
    elf,
    features_of,
    library,
    put_data,
    put_policy,
    rule,
)
from typer.testing import Result

from cudaredist.formats.packageset import Status
from cudaredist.formats.reason import ReasonCode
from cudaredist.primitives import sha256_of

FEATURES = {
    "cuda_nvcc": features_of({"bin/nvcc": elf(None, "libc.so.6")}),
    "cuda_cudart": library("libcudart.so.12", "libc.so.6"),
    "cuda_cccl": features_of({"include/cub.h": None}),
    "libnvvm": features_of({"nvvm/bin/cicc": elf(None, "libc.so.6")}),
    "libx": library("libx.so.1", "libcudart.so.12"),
    "cudnn": library("libcudnn.so.9", "libx.so.1"),
}


def release(label: str, *platforms: str) -> Release:
    names = [name for name in FEATURES if name not in {"cudnn", "libnvvm"}]
    if label.startswith("13"):
        names.append("libnvvm")
    return Release("cuda", label, dict.fromkeys(names, platforms), FEATURES)


def cudnn(label: str, *platforms: str) -> Release:
    return Release("cudnn", label, {"cudnn": [f"{p}/cuda12" for p in platforms]}, FEATURES)


RELEASES = (
    release("12.6.0", LINUX, SBSA, JETSON),
    release("12.6.3", LINUX, SBSA, JETSON),
    release("12.9.1", LINUX, SBSA, WINDOWS),
    release("13.0.2", LINUX, SBSA),
    cudnn("8.9.7", LINUX),
    cudnn("9.1.0", LINUX, SBSA),
    cudnn("9.2.0", LINUX),
)
ONE = ("--cuda", "12.9.1", "--platform", LINUX)


@pytest.fixture
def build(run: Run) -> Run:
    """Return a function that builds from a small data folder."""
    put_data(Path("data"), *RELEASES)
    return lambda *arguments: run("build", *arguments)


def read(path: Path | str) -> Any:
    return json.loads(Path(path).read_bytes())


def files_below(folder: Path | str) -> dict[str, bytes]:
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def error(result: Result) -> str:
    assert result.exit_code != 0
    return " ".join(result.stderr.split())


# -- output files


def test_build_without_options_writes_every_newest_patch_and_index(build: Run, run: Run) -> None:
    result = expect_output(build(), 0)
    assert sorted(files_below("build")) == [
        "index.json",
        f"{JETSON}/cuda-12.6.3.json",
        f"{SBSA}/cuda-12.6.3.json",
        f"{SBSA}/cuda-12.9.1.json",
        f"{SBSA}/cuda-13.0.2.json",
        f"{LINUX}/cuda-12.6.3.json",
        f"{LINUX}/cuda-12.9.1.json",
        f"{LINUX}/cuda-13.0.2.json",
        f"{WINDOWS}/cuda-12.9.1.json",
    ]
    index = read("build/index.json")
    first = [(entry["cuda"], entry["platform"]) for entry in index["sets"][:3]]
    assert first == [("12.6.3", platform) for platform in (JETSON, SBSA, LINUX)]
    for entry in index["sets"]:
        assert entry["sha256"] == sha256_of(Path("build", entry["path"]).read_bytes())
    assert index["skipped"] == []
    assert result.stdout.endswith("package sets: 8 written; in build\n")
    assert run("validate", *sorted(Path("build").rglob("*.json"))).exit_code == 0


def pair(cuda: str, target: str = SBSA) -> tuple[str, ...]:
    return ("--cuda", cuda, "--platform", LINUX, "--target", target)


@pytest.mark.parametrize(("cuda", "target"), [("13.0.2", SBSA), ("12.6.3", JETSON)])
def test_build_with_target_writes_pair_that_names_its_platforms(
    build: Run, run: Run, cuda: str, target: str
) -> None:
    expect_output(build(*pair(cuda, target)), 0, "2 written")
    for platform, path in (
        (LINUX, f"build/{LINUX}/cuda-{cuda}-to-{target}.json"),
        (target, f"build/{target}/cuda-{cuda}-from-{LINUX}.json"),
    ):
        document = read(path)
        assert document.pop("cross") == {"host": LINUX, "target": target}
        assert build("--cuda", cuda, "--platform", platform).exit_code == 0
        assert document == read(f"build/{platform}/cuda-{cuda}.json")
        assert run("validate", path).exit_code == 0
    assert len(read("build/index.json")["sets"]) == 4


def test_build_of_pair_applies_capability_to_target(build: Run) -> None:
    expect_output(build(*pair("12.6.3", JETSON), "--gpu", "8.7"), 0, "2 written")
    host = read(f"build/{LINUX}/cuda-12.6.3-to-{JETSON}.json")
    target = read(f"build/{JETSON}/cuda-12.6.3-8.7-from-{LINUX}.json")
    assert host["capabilities"]["requested"] == []
    assert target["capabilities"]["requested"] == ["8.7"]


@pytest.mark.parametrize(
    ("platform", "target", "words"),
    [
        (LINUX, LINUX, f"no compilers for {LINUX} on {LINUX}"),
        (LINUX, WINDOWS, f"no compilers for {WINDOWS} on {LINUX}"),
        (SBSA, LINUX, "exchange --platform and --target"),
    ],
)
def test_build_of_impossible_pair_is_refused(
    build: Run, platform: str, target: str, words: str
) -> None:
    result = build("--cuda", "12.9.1", "--platform", platform, "--target", target)
    assert (result.exit_code, words in error(result)) == (2, True)
    assert not Path("build").exists()


def test_build_of_pair_writes_no_host_without_target(build: Run) -> None:
    result = build(*pair("13.0.2", JETSON))
    expect_output(result, 2, "13.0.2 is not published for linux-aarch64")
    assert f"--target {LINUX}" not in result.output
    assert not Path(f"build/{LINUX}").exists()
    expect_output(build("--platform", LINUX, "--target", JETSON), 0, "2 written")


@pytest.mark.parametrize("data", ["small", pytest.param("shipped", marks=pytest.mark.slow)])
def test_build_of_all_capabilities_indexes_sets_by_architecture(run: Run, data: str) -> None:
    if data == "small":
        put_data(Path("data"), *RELEASES)
    result = run("build", "--cuda", "13.0", "--system", "x86_64-linux", "--gpu", "all")
    assert result.exit_code == 0, result.output
    paths = {e["architecture"]: Path("build", e["path"]) for e in read("build/index.json")["sets"]}
    assert set(paths) >= {"sm_75", "sm_90", "sm_90a", "sm_100f", "sm_121f"}
    assert not set(paths) & {"sm_70", "sm_87", "sm_110"}
    for architecture, path in paths.items():
        flags = read(path)["capabilities"]
        assert flags["arches"] == [architecture]
        assert f"    requested: {flags['requested'][0]}" in result.stdout.splitlines()
    assert run("validate", "build/index.json", *paths.values()).exit_code == 0


def test_set_records_its_sources_and_no_machine_path(build: Run) -> None:
    build(*ONE)
    document = Path(f"build/{LINUX}/cuda-12.9.1.json").read_bytes()
    assert str(Path.cwd()).encode() not in document
    found = json.loads(document)
    assert found["schema"] == "cudaredist.package-set/1"
    manifest = next(i for i in found["inputs"] if i["kind"] == "manifest" and i["name"] == "cudnn")
    manifest_file = Path("data/manifests/cudnn/redistrib_9.2.0.json").read_bytes()
    assert (manifest["label"], manifest["sha256"]) == ("9.2.0", sha256_of(manifest_file))
    assert found["packages"]["cudnn"]["status"] == "available"
    assert found["diagnostics"] == []
    assert document == (json.dumps(found, indent=2, ensure_ascii=False) + "\n").encode()


def test_second_build_changes_no_file(build: Run) -> None:
    build()
    before = {path: path.stat().st_mtime_ns for path in Path("build").rglob("*.json")}
    result = expect_output(build(), 0)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert "8 unchanged" in result.stdout
    assert build("--check").exit_code == 0


def test_check_writes_nothing(build: Run) -> None:
    result = expect_output(build("--check"), 1)
    assert not Path("build").exists()
    assert "8 would-write; would-write index.json" in result.stdout
    build()
    Path(f"build/{LINUX}/cuda-12.9.1.json").write_text("{}")
    before = files_below("build")
    expect_output(build("--check"), 1, "1 would-write")
    assert files_below("build") == before


def test_check_reports_missing_index(build: Run) -> None:
    build()
    Path("build/index.json").unlink()
    result = build("--check", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["exit_code"], report["index"]) == (1, 1, "would-write")
    assert {outcome["status"] for outcome in report["sets"]} == {"unchanged"}


def test_build_json_prints_one_set(build: Run) -> None:
    result = expect_output(build(*ONE, "--json"), 0)
    assert not Path("build").exists()
    build(*ONE, "-o", "one.json")
    assert result.stdout == Path("one.json").read_text()
    assert result.stderr == "using --channel redist of data\n"


def test_build_output_file_writes_one_file(build: Run) -> None:
    expect_output(build(*ONE, "-o", "sets/one.json"), 0)
    assert list(files_below("sets")) == ["one.json"], "one file has no index"
    assert build(*ONE, "-o", "sets/one.json", "--check").exit_code == 0


def test_index_includes_sets_of_other_runs(build: Run) -> None:
    build(*ONE, "-o", "out")
    build("--cuda", "12.6", "--platform", LINUX, "-o", "out", "--gpu", "9.0a")
    index = read("out/index.json")
    assert [(e["path"], e["capabilities"]) for e in index["sets"]] == [
        (f"{LINUX}/cuda-12.6.3-9.0a.json", ["9.0a"]),
        (f"{LINUX}/cuda-12.9.1.json", []),
    ]
    assert index["sets"][1]["attribute"] == "cudaPackages_12_9"
    Path(f"out/{LINUX}/cuda-12.9.1.json").unlink()
    build("--cuda", "12.6", "--platform", LINUX, "-o", "out", "--gpu", "9.0a")
    assert len(read("out/index.json")["sets"]) == 1, "the index drops removed files"


def test_build_removes_temporary_files_of_killed_run(build: Run) -> None:
    names = (".index.json.0123456789ab.tmp", f"{LINUX}/.cuda-12.9.1.json.0123456789ab.tmp")
    temporary_files = [Path("build", name) for name in names]
    for path in temporary_files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    build(*ONE)
    assert not any(path.exists() for path in temporary_files)


def test_build_json_report_lists_written_sets(build: Run) -> None:
    report = json.loads(build(*ONE, "-o", "out", "--json").stdout)
    (outcome,) = report["sets"]
    assert (report["command"], report["index"], report["exit_code"]) == ("build", "written", 0)
    assert outcome["path"] == f"out/{LINUX}/cuda-12.9.1.json"
    assert outcome["counts"]["available"] == 5
    assert outcome["size"] == Path(outcome["path"]).stat().st_size


# -- selection of sets


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--cuda", "12.6"], [("12.6.3", p) for p in (JETSON, SBSA, LINUX)]),
        (["--cuda", "12.6.0", "--platform", LINUX], [("12.6.0", LINUX)]),
        (
            [*(f"--cuda={x}" for x in ("12.6", "12.6.0", "12.6.3")), "--platform", LINUX],
            [("12.6.3", LINUX), ("12.6.0", LINUX)],
        ),
        (["--platform", JETSON], [("12.6.3", JETSON)]),
        (["--platform", WINDOWS], [("12.9.1", WINDOWS)]),
        (["--cuda", "12.6", "--system", "aarch64-linux"], [("12.6.3", SBSA)]),
        (
            ["--system", "aarch64-linux", "--gpu", "8.7"],
            [("12.6.3", JETSON), ("13.0.2", SBSA)],
        ),
        (["--system", "x86_64-windows"], [("12.9.1", WINDOWS)]),
    ],
)
def test_build_options_select_sets(
    build: Run, options: Sequence[str], expected: list[tuple[str, str]]
) -> None:
    report = json.loads(build(*options, "--json", "-o", "out").stdout)
    assert [(o["cuda"], o["platform"]) for o in report["sets"]] == expected
    assert report["exit_code"] == 0


def test_file_name_contains_capabilities(build: Run) -> None:
    options = ("--cuda", "12.6", "--system", "aarch64-linux", "--gpu", "Jetson Orin")
    build(*options)
    document = read(f"build/{JETSON}/cuda-12.6.3-8.7.json")
    assert document["platform"]["nix_system"] == "aarch64-linux"
    assert document["capabilities"]["arches"] == ["sm_87", "compute_87"]
    build(*ONE, "--gpu", "H100", "--gpu", "8.0", "--no-forward-compat")
    document = read(f"build/{LINUX}/cuda-12.9.1-9.0_8.0-no-forward-compat.json")
    assert document["capabilities"]["cmake_cuda_architectures"] == "90;80"
    assert document["capabilities"]["arches"] == ["sm_90", "sm_80"]


def printed(result: Result) -> Any:
    return json.loads(expect_output(result, 0).stdout)


MAP = ("--redist-map", "map.json")


@pytest.mark.parametrize(
    ("options", "cuda", "cudnn", "mode"),
    [
        (ONE, "12.9.1", "9.2.0", "auto"),
        ((*ONE, "--redist", "auto"), "12.9.1", "9.2.0", "auto"),
        ((*ONE, "--redist", "auto", "--redist", "cudnn=9.1.0"), "12.9.1", "9.1.0", "pinned"),
        (("--platform", LINUX, *MAP), "12.6.0", "8.9.7", "pinned"),
        (("--platform", LINUX, *MAP, "--cuda", "12.6.0"), "12.6.0", "8.9.7", "pinned"),
        (("--platform", LINUX, *MAP, "--redist", "cudnn=9.1.0"), "12.6.0", "9.1.0", "pinned"),
    ],
)
def test_redist_options_select_and_pin_releases(
    build: Run, options: Sequence[str], cuda: str, cudnn: str, mode: str
) -> None:
    Path("map.json").write_text('{"cuda": "12.6.0", "cudnn": "8.9.7"}')
    redists = printed(build(*options, "--json"))["redists"]
    assert (redists["cuda"]["release"], redists["cudnn"]["release"]) == (cuda, cudnn)
    assert redists["cudnn"]["mode"] == mode


def test_redist_map_of_other_cuda_release_is_refused(build: Run) -> None:
    Path("map.json").write_text('{"cuda": "12.6.0"}')
    result = build("--cuda", "12.6.3", *MAP, "--platform", LINUX, "--json")
    assert "--cuda does not match the cuda release" in error(result)


def test_options_add_second_version_and_select_host_compiler(build: Run) -> None:
    options = (*ONE, "--json", "--also", "cudnn=8.9.7", "--default-gcc", "15", "--available-gcc")
    document = printed(build(*options, "12,13"))
    assert document["packages"]["cudnn_8_9"]["status"] == "available"
    assert document["packages"]["cudnn"]["release"] == "9.2.0"
    assert document["host_compiler"]["gcc"]["selected"] == 13
    message = "accepts GCC 6 to 14, but the available versions are 15, 16"
    assert message in error(build(*options, "16"))


def test_overlay_applies_fixup(build: Run) -> None:
    fixup = rule(package="libx", broken="not with us", reason="ours")
    put_policy(Path("mine"), "fixups", fixups=[fixup])
    expect_output(build(*ONE, "--overlay", "mine"), 0, "warning: libx: not with us")
    document = read(f"build/{LINUX}/cuda-12.9.1.json")["packages"]
    assert document["libx"]["overlay"] == ["fixup: ours"]
    assert document["cudnn"]["status"] == "broken", "it needs a library of it"
    expect_output(build(*ONE, "--overlay", "mine", "--strict"), 3)
    result = build(*ONE, "--overlay", "mine", "--strict", "--json")
    assert (result.exit_code, json.loads(result.stdout)["exit_code"]) == (3, 3)


def test_build_of_wheel_channel_uses_wheel_base(build: Run) -> None:
    wheels = Path("data/manifests/wheels/cuda")
    wheels.mkdir(parents=True)
    (wheels / "redistrib_12.9.1.json").write_bytes(release("12.9.1", LINUX).manifest)
    options = (*ONE, "--channel", "wheels", "--allow-missing-features", "--json")
    assert printed(build(*options))["packages"]["cuda_nvcc"]["archive"]["url"] is None
    document = printed(build(*options, "--wheel-base", "https://pypi.example"))
    url = document["packages"]["cuda_nvcc"]["archive"]["url"]
    assert url.startswith("https://pypi.example/cuda_nvcc/")
    assert document["channel"] == "wheels"
    assert "requires --channel wheels" in error(build(*ONE, "--wheel-base", "https://x"))


# -- errors and exit codes

TWICE = ("--redist", "cudnn=9.2.0", "--redist", "cudnn=9.1.0")


def test_refused_set_in_one_file_reports_platform(build: Run) -> None:
    result = build("--cuda", "12.9.1", "--platform", JETSON, "-o", "sets/one.json", "--json")
    (outcome,) = json.loads(result.stdout)["sets"]
    assert (outcome["cuda"], outcome["platform"]) == ("12.9.1", JETSON)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--platform", "linux-ppc64le"], 2, "CUDA 13.0.2 is not published for linux-ppc64le"),
        ([*ONE, "--redist", "cudn=9.2.0"], 2, "did you mean cudnn"),
        ([*ONE, "--redist", "cudnn"], 2, "--redist cudnn: expected NAME=LABEL"),
        ([*ONE, "--redist", "cuda=12.6.3"], 2, "--redist cannot pin cuda"),
        ([*ONE, *TWICE], 2, "--redist pins cudnn to 9.2.0 and 9.1.0"),
        ([*ONE, "--redist-map", "nowhere.json"], 3, "cannot read nowhere.json"),
        ([*ONE, "--also", "cudnn"], 2, "--also cudnn: expected NAME=LABEL"),
        ([*ONE, "--available-gcc", "12,x"], 2, "--available-gcc 12,x: expected major versions"),
        ([*ONE, "--overlay", "nowhere"], 2, "nowhere: no such folder"),
        ([*ONE, "--overlay", "n" * 300], 2, "no such folder"),
        (["--json"], 2, "--json needs exactly one set, but 8 match"),
        (["-o", "one.json"], 2, "one.json needs exactly one set, but 8 match"),
        (["--data-dir", "elsewhere"], 2, ""),
    ],
)
def test_invalid_options_are_rejected(
    build: Run, options: Sequence[str], code: int, message: str
) -> None:
    result = expect_output(build(*options), code)
    assert message in error(result)
    if "--json" in options:
        assert message in json.loads(result.stdout)["error"]["message"]
    else:
        assert result.stdout == ""
    assert not Path("build").exists()


@pytest.mark.parametrize("name", ["9.9", "sm_99", "13.0"])
def test_unknown_capability_is_one_error_for_all_sets(build: Run, name: str) -> None:
    result = build("--cuda", "all", "--gpu", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("is not in the data") == 1
    assert not Path("build").exists()


def test_sets_with_and_without_forward_compat_have_their_own_files(build: Run) -> None:
    for options in ([], ["--gpu", "9.0"]):
        build(*ONE, *options)
        build(*ONE, *options, "--no-forward-compat")
    assert [path.name for path in sorted(Path("build", LINUX).iterdir())] == [
        "cuda-12.9.1-9.0-no-forward-compat.json",
        "cuda-12.9.1-9.0.json",
        "cuda-12.9.1-no-forward-compat.json",
        "cuda-12.9.1.json",
    ]
    assert len(read("build/index.json")["sets"]) == 4


def test_failed_set_does_not_block_other_sets(build: Run) -> None:
    result = build("--cuda", "12.6", "--cuda", "13.0", "--platform", JETSON)
    assert result.exit_code == 2
    assert "CUDA 13.0.2 is not published for linux-aarch64" in result.stdout
    assert "package sets: 1 failed, 1 written" in result.stdout
    index = read("build/index.json")
    labels = {key: [entry["cuda"] for entry in index[key]] for key in ("sets", "skipped")}
    assert labels == {"sets": ["12.6.3"], "skipped": ["13.0.2"]}


def test_hollow_set_requires_allow_hollow(build: Run) -> None:
    put_data(Path("data"), Release("cuda", "12.8.1", {"cuda_cudart": [LINUX]}, FEATURES))
    options = ("--cuda", "12.8", "--platform", LINUX)
    result = expect_output(build(*options, "--json"), 2)
    assert "the set would be without cuda_nvcc" in error(result)
    assert "use --allow-hollow to create the set anyway" in error(result)
    assert build(*options, "--allow-hollow").exit_code == 0


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("manifests/cuda/redistrib_12.9.1.json", "{", "manifests/cuda/redistrib_12.9.1.json"),
        ("manifests/cudnn/redistrib_9.2.0.json", "{}", "cudnn/redistrib_9.2.0.json: has no pack"),
        ("features/cudnn/feature_9.2.0.json", "[]", "features/cudnn/feature_9.2.0.json"),
        ("features/cudnn/feature_9.2.0.json", '{"schema_version": 1}', "json: 'redist' is a req"),
        ("policy/withheld.json", "{}", "policy/withheld.json: 'schema_version' is a required"),
        ("policy/withheld.json", "[]", "policy file (withheld)"),
        ("gpus.json", "{}", "gpus.json"),
        ("nvcc_compat.json", "nothing", "nvcc_compat.json"),
    ],
)
def test_broken_file_is_named_in_error(build: Run, path: str, content: str, message: str) -> None:
    place = Path("data", path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    result = expect_output(build(*ONE, "--json"), 5)
    assert message in error(result)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("[1]", 2, "expected an object with a label for each name"),
        ("{", 5, "map of releases (map.json)"),
        ('{"cudnn": 9}', 2, "expected an object"),
    ],
)
def test_broken_redist_map_is_rejected(build: Run, content: str, code: int, message: str) -> None:
    Path("map.json").write_text(content)
    result = expect_output(build(*ONE, "--redist-map", "map.json"), code)
    assert message in error(result)


def test_foreign_index_is_not_overwritten(build: Run) -> None:
    Path("out").mkdir()
    Path("out/index.json").write_text('{"mine": 1}')
    result = expect_output(build(*ONE, "-o", "out"), 5)
    assert "(out/index.json)" in error(result)
    assert Path("out/index.json").read_text() == '{"mine": 1}'


def test_unwritable_output_exits_3(build: Run) -> None:
    Path("out").write_text("a file")
    result = build(*ONE, "-o", "out")
    assert result.exit_code == 3
    assert f"cannot write out/{LINUX}/cuda-12.9.1.json: Not a directory" in result.stdout
    assert "hint: select another folder, or change its permissions: `ls -ld out`" in result.stdout
    assert Path("out").read_text() == "a file"
    expect_output(build(*ONE, "-o", "out/one.json"), 3)


# -- reproducibility and documentation


def test_build_is_reproducible_across_environments(build: Run, tmp_path: Path) -> None:
    build("--also", "cudnn=8.9.7", "-o", "first")
    expected = files_below("first")
    # The same files, made in another order.
    put_data(tmp_path / "again", *RELEASES[::-1])
    out = tmp_path / "out"
    options = ["--data-dir", str(tmp_path / "again"), "--also", "cudnn=8.9.7", "-o", str(out)]
    conditions = {"PYTHONHASHSEED": "4242", "LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati"}
    subprocess.run(
        [sys.executable, "-m", "cudaredist", "build", *options],
        check=True,
        env=os.environ | conditions,
        capture_output=True,
    )
    assert files_below(out) == expected


def test_help_examples_succeed(build: Run, run: Run) -> None:
    text = run("build", "--help").stdout
    lines = [line.strip(" │") for line in text.splitlines()]
    calls = [line.split()[2:] for line in lines if line.startswith("cudaredist build ")]
    assert len(calls) == 3
    put_data(Path("data"), cudnn("9.13.0", SBSA))
    for call in calls:
        assert build(*call).exit_code == 0, call


def test_documented_overlay_is_valid(build: Run, run: Run) -> None:
    page = (REPOSITORY / "docs" / "own-changes.md").read_text()
    blocks = [block.partition("```")[0] for block in page.split("```json\n")[1:]]
    policy = Path("mine/policy")
    policy.mkdir(parents=True)
    for subject, block in zip(("fixups", "withheld"), blocks, strict=True):
        (policy / f"{subject}.json").write_text(block)
    expect_output(run("validate", *sorted(policy.iterdir())), 0)
    expect_output(build("--cuda", "12.9", "--platform", SBSA, "--overlay", "mine"), 0)
    packages = read(f"build/{SBSA}/cuda-12.9.1.json")["packages"]
    assert packages["cuda_documentation"]["status"] == "withheld"
    assert packages["libcufile"]["overlay"] == ["fixup: ticket 123"]


def test_every_status_and_reason_is_documented() -> None:
    page = (REPOSITORY / "docs" / "set-statuses.md").read_text()
    for name in (*get_args(Status), *get_args(ReasonCode)):
        assert f"| `{name}` |" in page
