"""Tests that every long command knows its total before it starts."""

import re
from pathlib import Path

import pytest
from conftest import SAMPLE, Run
from support.headers import host_config
from support.patching import Patch
from support.ptxas import PROFILES_12_9, ptxas
from support.releases import publish, release
from support.server import FaultServer
from support.toolkits import MadeSet, Materialize

LINUX = "linux-x86_64"


@pytest.fixture(autouse=True)
def _line_for_each_event(patch: Patch) -> None:
    patch("cudaredist.cli.console._BETWEEN_LINES", 0.0)


def lines(stderr: str, title: str) -> list[str]:
    """Return the progress lines with a title, without rate and remaining time."""
    words = rf"^{title} ([0-9]+ of [^,]*(?:, [0-9.]+ k?B(?: of [0-9.]+ k?B| .total unknown.))?),"
    progress = re.findall(words, stderr, re.MULTILINE)
    assert progress, stderr
    return progress


def assert_total_is_known(stderr: str, title: str, count: int) -> None:
    """Check that the first line contains the total, and the last reaches it."""
    progress = lines(stderr, title)
    first = re.fullmatch(rf"0 of {count}, 0 B of ([0-9.]+ k?B)", progress[0])
    assert first, progress[0]
    assert progress[-1] == f"{count} of {count}, {first[1]} of {first[1]}"
    assert re.search(rf"^{title} .* k?B/s, [0-9:]+ left$", stderr, re.MULTILINE)


def publish_nvcc(server: FaultServer) -> None:
    files = {"bin/ptxas": ptxas(PROFILES_12_9), "include/crt/host_config.h": host_config()}
    for label in ("12.9.0", "12.9.1"):
        publish(server, release(label, {"cuda_nvcc": {LINUX: {**files, "label": label.encode()}}}))


def test_process_manifests_reports_total_before_first_byte(
    cuda_archives: FaultServer, process: Run
) -> None:
    result = process("--platform", LINUX)
    (count,) = re.findall(r"^([0-9]+) archives to read", result.stderr, re.MULTILINE)
    assert_total_is_known(result.stderr, "archives", int(count))


@pytest.mark.parametrize("command", ["update-gpus", "update-nvcc-compat"])
def test_table_update_reports_total_before_first_byte(
    run: Run, server: FaultServer, command: str
) -> None:
    publish_nvcc(server)
    result = run(command, "--base-url", server.url)
    assert_total_is_known(result.stderr, "archives", 2)


def test_materialize_reports_total_before_first_byte(
    made_set: MadeSet, materialize: Materialize
) -> None:
    result = materialize()
    (count,) = re.findall(r"^([0-9]+) archives;", result.stderr, re.MULTILINE)
    assert_total_is_known(result.stderr, "archives", int(count))


@pytest.mark.parametrize(
    ("command", "title"), [("download-manifests", "manifests"), ("check", "checking")]
)
def test_command_with_unknown_total_shows_count_and_bytes(
    run: Run, command: str, title: str
) -> None:
    options = ("--base-url", SAMPLE, "--redist", "cuda")
    if command == "check":
        run("download-manifests", *options)
    progress = lines(run(command, *options).stderr, title)
    assert progress[0] == "0 of 1"
    assert re.fullmatch(r"2 of 2, [0-9.]+ k?B \(total unknown\)", progress[-1])


def test_build_shows_count(run: Run) -> None:
    result = run("build", "--cuda", "13.0")
    assert lines(result.stderr, "building") == [f"{count} of 3" for count in range(4)]
    assert not Path("data").exists()
