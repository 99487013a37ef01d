"""Tests of commands with standard streams that are closed or on a full disk."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import SAMPLE
from support.optional_programs import needs
from support.pages import COMMANDS
from support.running import completed

if TYPE_CHECKING:
    import subprocess

FULL = "/dev/full"
CALLS = {
    "audit": "audit /bin/sh --data-dir nowhere",
    "build": "build --cuda 99.9",
    "bump": "bump --check --offline",
    "check": "check --offline --data-dir nowhere",
    "config": "config",
    "diff": "diff cuda@12.8.1 cuda@12.9.1",
    "download-manifests": "download-manifests --base-url nowhere",
    "drop": "drop cuda@13.0.2",
    "explain": "explain gpu 9.0",
    "export": "export nix nothing.json -o nix",
    "manifest": "manifest add nothing 1.2.3",
    "materialize": "materialize nothing.json --root toolkit",
    "mirror": "mirror verify nowhere",
    "nixpkgs": "nixpkgs nothing.nix --diff",
    "process-manifests": "process-manifests --data-dir nowhere",
    "query": "query --tables",
    "runfile": "runfile add nothing.run",
    "schema": "schema lock",
    "site": "site --data-dir nowhere -o site",
    "update-api": "update-api --offline --data-dir nowhere",
    "update-gpus": "update-gpus --offline --data-dir nowhere",
    "update-nvcc-compat": "update-nvcc-compat --offline --data-dir nowhere",
    "update-advisories": "update-advisories --source nowhere",
    "update-symbols": "update-symbols --offline --data-dir nowhere",
    "validate": "validate nothing.json",
    "versions": "versions --offline --redist cuda",
    "which": "which libcudart.so.13",
}
"""A call of every command. Most of them print a message."""


def program(words: str, redirection: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command line with redirected streams."""
    command = f"{sys.executable} -m cudaredist {words} {redirection}"
    return completed("sh", "-c", command, cwd=folder)


def test_every_command_has_a_call() -> None:
    assert CALLS.keys() == set(COMMANDS)


@needs("sh")
@pytest.mark.slow
@pytest.mark.parametrize("words", CALLS.values(), ids=CALLS)
def test_lost_message_changes_neither_result_nor_exit_code(tmp_path: Path, words: str) -> None:
    usual = program(words, "", tmp_path)
    assert usual.returncode != 70
    for redirection in (f"2> {FULL}", "2>&-"):
        result = program(words, redirection, tmp_path)
        assert (result.returncode, result.stdout) == (usual.returncode, usual.stdout)


@needs("sh")
@pytest.mark.parametrize("redirection", [f"2> {FULL}", "2>&-", f"2> {FULL} -v", "2>&- <&-"])
def test_lost_message_of_a_wrong_call_keeps_its_exit_code(tmp_path: Path, redirection: str) -> None:
    assert program("build --nope", redirection, tmp_path).returncode == 2


@needs("sh")
@pytest.mark.parametrize(
    ("words", "redirection"),
    [
        ("schema lock", f"> {FULL}"),
        ("--version", ">&-"),
        ("build --help", f"> {FULL}"),
        ("", ">&-"),
        ("--help", f"> {FULL}"),
        # The same texts with the other redirection.
        pytest.param("schema lock", ">&-", marks=pytest.mark.slow),
        pytest.param("--version", f"> {FULL}", marks=pytest.mark.slow),
        pytest.param("build --help", ">&-", marks=pytest.mark.slow),
        pytest.param("", f"> {FULL}", marks=pytest.mark.slow),
        pytest.param("--help", ">&-", marks=pytest.mark.slow),
    ],
)
def test_output_that_cannot_be_written_exits_3(
    tmp_path: Path, words: str, redirection: str
) -> None:
    result = program(words, redirection, tmp_path)
    assert result.returncode == 3
    assert result.stderr.startswith("error: cannot write standard output: ")
    assert "Traceback" not in result.stderr
    assert program(words, f"{redirection} 2>&-", tmp_path).returncode == 3


@needs("sh")
@pytest.mark.parametrize(
    "words",
    [
        "validate -",
        pytest.param("export nix - -o n", marks=pytest.mark.slow),
        pytest.param("audit . --error -", marks=pytest.mark.slow),
    ],
)
def test_closed_standard_input_exits_3(tmp_path: Path, words: str) -> None:
    result = program(words, "<&-", tmp_path)
    assert result.returncode == 3
    assert "cannot read standard input" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr


@needs("sh")
def test_file_in_place_of_a_closed_stream_gets_no_messages(tmp_path: Path) -> None:
    """The first opened file would have the number of standard error."""
    words = f"download-manifests --redist cuda --base-url {SAMPLE}"
    assert program(words, "2>&- >&- <&-", tmp_path).returncode == 3
    name = "manifests/cuda/redistrib_13.0.2.json"
    published = SAMPLE / "compute/cuda/redist/redistrib_13.0.2.json"
    assert (tmp_path / "data" / name).read_bytes() == published.read_bytes()


@needs("sh")
@pytest.mark.parametrize("variable", ["COLUMNS", "TERMINAL_WIDTH"])
@pytest.mark.parametrize("width", ["1000000000", "0", "-5", "wide"])
def test_help_is_printed_for_any_width(tmp_path: Path, variable: str, width: str) -> None:
    words = f"{sys.executable} -m cudaredist build --help"
    result = completed("env", f"{variable}={width}", "sh", "-c", words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "--json" in result.stdout
    assert len(result.stdout) < 200_000


@needs("sh")
@pytest.mark.parametrize("words", ["build --help", "--help", "--version", "schema lock"])
def test_reader_that_closes_the_pipe_gets_no_traceback(tmp_path: Path, words: str) -> None:
    # The reader is gone before the first byte.
    call = f"(sleep 0.5; {sys.executable} -m cudaredist {words}; echo code $? >&2) | true"
    result = completed("env", "COLUMNS=1000", "sh", "-c", f"{call}; sleep 2", cwd=tmp_path)
    assert "Traceback" not in result.stderr
    assert result.stderr in {"", "code 0\n"}
