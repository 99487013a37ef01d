"""Tests of hints: each wrong call ends with a command to type next, which works."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import SAMPLE, Run

BUILD = "build --cuda 13.0.3 --platform linux-x86_64"
DATA = "--data-dir 'my data'"

WRONG_CALLS = {
    f"buidl {BUILD.removeprefix('build ')}": f"cudaredist {BUILD}",
    f"{BUILD} --gpuu 9.0": f"cudaredist {BUILD} --gpu 9.0",
    "build 13.0.3": "cudaredist build --help",
    "build --nope": "cudaredist build --help",
    "export urls": "cudaredist export --help",
    "build --cuda 13.9 --platform linux-x86_64": "cudaredist build --cuda 13.5.0 "
    "--platform linux-x86_64",
    f"{BUILD} --redist cudnn=9.99": f"cudaredist {BUILD} --redist cudnn=9.28.1",
    f"{BUILD} --redist cudn=9.10": f"cudaredist {BUILD} --redist cudnn=9.10",
    f"{BUILD} --json --platform linux-x86-64": f"cudaredist {BUILD} --json",
    f"{BUILD} --system x86_64-linux": "cudaredist build --cuda 13.0.3 --system x86_64-linux",
    "explain gpu sm_95": "cudaredist explain gpu 9.0",
    "explain gpu 10": "cudaredist explain gpu 10.0",
    "explain gpu rtx5099": "cudaredist explain gpu 'GeForce RTX 5090'",
    "explain driver v535": "cudaredist explain driver 535",
    "explain driver 535.x": "cudaredist explain driver 535",
    "check --offline --require-gpu V100": "cudaredist audit --help",
    "check --offline --base-url /nowhere": "cudaredist check --offline --channel wheels",
    "explain cuda 13.9": "cudaredist explain cuda 13.5.0",
    "explain nvcc 99": "cudaredist explain nvcc 13.5.0",
    "explain cuda 14": "cudaredist explain cuda 13.5.0",
    "explain cuda 12.15": "cudaredist explain cuda 12.9.2",
    "explain package libcublass --channel wheels": "cudaredist explain package libcublas "
    "--channel wheels",
    "which libcublas.so.13 --cuda 99.0": "cudaredist which libcublas.so.13 --cuda 13.5.0",
    "which libcublas.so.12 --symbol cublasCreate*": "cudaredist which libcublas.so.12",
    "query": "cudaredist query --tables",
    "query 'SELECT * FROM package'": "cudaredist query --tables",
    "query 'SELECT 1' --tables": "cudaredist query 'SELECT 1'",
    "diff cuda@12.9 cuda@99.1": "cudaredist diff cuda@12.9 cuda@13.5.0",
    f"{BUILD.replace('x86_64', 'amd64')}": f"cudaredist {BUILD}",
    f"{BUILD} --data-dir nowhere": f"cudaredist {BUILD}",
    f"{BUILD} --redist cuda=13.0": "cudaredist build --platform linux-x86_64 --cuda 13.0",
    f"{BUILD} --also cudnn": f"cudaredist {BUILD} --also cudnn=9.10",
    f"{BUILD} --available-gcc x": f"cudaredist {BUILD} --available-gcc 12,13,14",
    "build --cuda 11.8.0 --json": "cudaredist build --cuda 11.8.0 --output build",
    "audit nowhere/program": "ls .",
    "check --offline --data-dir /dev/null": "cudaredist check --offline",
    "explain set 'my data'": "ls -ld 'my data'",
    "schema feature": "cudaredist schema features",
    "explain set 'my set.json'": "cudaredist build --cuda 13 --platform linux-x86_64 "
    "--output 'my set.json'",
    "explain set build/linux-sbsa/cuda-12.9.2-9.0_10.0.json": "cudaredist build --cuda 12.9.2 "
    "--platform linux-sbsa --output build/linux-sbsa/cuda-12.9.2-9.0_10.0.json --gpu 9.0 "
    "--gpu 10.0",
    "diff cuda@12.9.1 cuda@12.9.2 --symbol": "cudaredist diff cuda@12.9.1 cuda@12.9.2 --symbols",
    "which --symbols cudnnAddTensor": "cudaredist which --symbol cudnnAddTensor",
    f"drop cuda@12.9.1 {DATA}": "cudaredist drop --help",
    "export cmake 13.0": "cudaredist build --cuda 13.0 --platform linux-x86_64 --output 13.0.json",
    f"process-manifests {DATA} --base-url {SAMPLE}": f"cudaredist download-manifests {DATA} "
    f"--base-url {SAMPLE}",
    f"update-gpus {DATA} --base-url {SAMPLE}": f"cudaredist download-manifests {DATA} "
    f"--base-url {SAMPLE} --redist cuda",
    f"check --json {DATA} --base-url {SAMPLE}": f"cudaredist download-manifests {DATA} "
    f"--base-url {SAMPLE}",
}
"""Wrong calls, and the command of the hint."""


CALLS_OF_NEWCOMERS = {
    "explain gpu": "cudaredist explain gpu T4",
    "explain cudn": "cudaredist explain cudnn",
    "build --cuda v13.0 --platform linux-x86_64": "cudaredist build --cuda 13.0.3 "
    "--platform linux-x86_64",
    "build --cuda 12,9 --platform linux-x86_64": "cudaredist build --cuda 12.9.2 "
    "--platform linux-x86_64",
    "materialize set.json --channel redist --output cuda --check": "cudaredist materialize "
    "set.json --output cuda --check",
    "validate --channel redist set.json": "cudaredist validate set.json",
    "validate --channel=redist set.json": "cudaredist validate set.json",
    "export rules-ml-toolchain --channel redist": "cudaredist export rules-ml-toolchain",
    "build --cuda cu128 --platform linux-x86_64": "cudaredist build --cuda 12.8.2 "
    "--platform linux-x86_64",
    "build --cuda 13 --gpu V100 --platform linux-x86_64": "cudaredist build "
    "--platform linux-x86_64 --gpu V100 --cuda 12.9",
    "explain cuda 12.8 gcc": "cudaredist explain cuda 12.8",
    "explain 'cuda 12.8 gcc'": "cudaredist explain 'cuda 12.8'",
    "explain gpu rtx 5099": "cudaredist explain gpu 'GeForce RTX 5090'",
    "list": "cudaredist versions --offline",
    "search libcublas.so.12": "cudaredist which libcublas.so.12",
    "info cudnn": "cudaredist explain cudnn",
    "show 'GTX 1080'": "cudaredist explain 'GTX 1080'",
    "install set.json --output cuda --check": "cudaredist materialize set.json --output cuda "
    "--check",
}
"""Calls in the form of other programs, and the command of the hint."""


@pytest.mark.parametrize("call", CALLS_OF_NEWCOMERS)
def test_hint_of_newcomers_call_runs(run: Run, call: str) -> None:
    assert run(*f"{BUILD} --output set.json".split()).exit_code == 0
    result = run(*shlex.split(call))
    assert result.exit_code == 2
    command, *_ = re.findall("`([^`]*)`", result.output)
    assert command == CALLS_OF_NEWCOMERS[call]
    expected = {1} if "--check" in call else {0}
    assert run(*shlex.split(command)[1:]).exit_code in expected


def test_compiler_without_version_suggests_one_that_is_known(run: Run) -> None:
    hint = run("explain", "msvc").output.rpartition("hint: ")[2]
    assert hint == "add its version, such as 2022; run `cudaredist explain 'msvc 2022'`\n"
    assert run("explain", "msvc 2022").exit_code == 0


@pytest.mark.parametrize("call", ["explain cudnn", "build --cuda 12.8.0 --platform linux-x86_64"])
def test_name_that_exists_gets_an_answer(run: Run, call: str) -> None:
    result = run(*shlex.split(call))
    assert (result.exit_code, "did you mean" in result.output) == (0, False)


def test_unknown_library_suggests_no_other_one(run: Run) -> None:
    result = run("which", "libnvinfer.so.10")
    assert "did you mean" not in result.output
    assert "run `cudaredist explain package tensorrt`" in result.output
    assert run("explain", "package", "tensorrt").exit_code == 0


def test_build_without_features_suggests_a_set_without_them(run: Run) -> None:
    build = "build --cuda 11.7.1 --platform linux-x86_64"
    result = run(*build.split())
    (command,) = re.findall("`cudaredist ([^`]*)`", result.output)
    assert (result.exit_code, command) == (2, f"{build} --channel redist")
    result = run(*command.split())
    *_, command = re.findall("`cudaredist ([^`]*)`", result.output)
    assert (result.exit_code, command) == (3, f"{build} --channel redist --allow-missing-features")
    assert run(*command.split()).exit_code == 0


def test_check_in_an_empty_folder_does_not_name_a_policy_file(run: Run) -> None:
    assert "policy/" not in run("check", "--offline").output


def test_check_of_declared_set_without_features_names_a_setting(run: Run) -> None:
    """An option of `build` is not one of `check`."""
    Path("cudaredist.toml").write_text(
        "[[sets]]\ncuda = ['13.0.2']\nplatforms = ['linux-x86_64']\n"
    )
    assert run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda").exit_code == 0
    assert "--allow-missing-features" in run("build").output
    output = run("check", "--offline").output
    assert "--allow-missing-features" not in output
    assert "declare `allow-missing-features = true`" in output
    with Path("cudaredist.toml").open("a") as file:
        file.write("allow-missing-features = true\n")
    output = run("check", "--offline").output
    assert "have no features" not in output
    # A set without nvcc has no setting.
    assert "--allow-hollow" in run("build").output
    assert "--allow-hollow" not in output


def test_check_after_drop_of_all_releases_reads_the_shipped_data(run: Run) -> None:
    assert run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda").exit_code == 0
    assert run("drop", "cuda@13.0.2").exit_code == 0
    result = run("check", "--offline")
    assert (result.exit_code, result.stderr.count("--help")) == (0, 0)


@pytest.mark.parametrize(
    "call",
    [("validate",), ("validate", "--quiet"), ("audit",), ("explain", "set"), ("export", "nix")],
)
def test_line_break_of_a_name_begins_no_line(run: Run, call: tuple[str, ...]) -> None:
    name = "a\n::error::b\u202e"
    Path(name).write_text("x")
    result = run(*call, name)
    assert "\\n::error::b\\u202e" in result.output
    assert "\n::error" not in result.output
    assert run(*call, f"missing{name}").output.count("\n::error") == 0


@pytest.mark.slow
@pytest.mark.parametrize("call", WRONG_CALLS)
def test_hint_of_wrong_call_is_a_command_that_works(run: Run, call: str) -> None:
    Path("my data").mkdir()
    result = run(*shlex.split(call))
    assert result.exit_code != 0
    commands = re.findall("`([^`]*)`", result.output)
    assert commands[:1] == [WRONG_CALLS[call]]
    program, *words = shlex.split(commands[0])
    if program == "cudaredist":
        assert run(*words).exit_code == 0
    else:
        subprocess.run([program, *words], check=True)
