"""Tests of materialize --check: packages and sizes without downloads."""

import shutil
from pathlib import Path

import pytest
from conftest import Run
from support.running import expect_error, expect_output, report, snapshot
from support.server import FaultServer
from support.toolkits import Materialize


@pytest.mark.usefixtures("made_set")
def test_check_reports_packages_and_sizes_without_requests(
    materialize: Materialize, server: FaultServer
) -> None:
    server.add_folder(Path("source"))
    before = snapshot(Path())
    result = materialize("--check", "--json", base=server.url)
    document = report(result)
    assert (result.exit_code, document["status"]) == (1, "would-write")
    assert set(document["sizes"]) == set(document["packages"])
    assert document["size"] == sum(size["unpacked"] for size in document["sizes"].values()) > 0
    assert not server.requests
    assert snapshot(Path()) == before
    shown = expect_output(materialize("--check"), 1, "root: would-write; CUDA 13.0.2 for linux-")
    assert shown.stdout.splitlines()[1].split() == ["package", "unpacked", "download"]


@pytest.mark.usefixtures("made_set")
def test_check_of_current_root_is_unchanged(materialize: Materialize) -> None:
    materialize()
    expect_output(materialize("--check"), 0, "root: unchanged")
    expect_output(materialize("--check", "--no-static"), 1, "root: would-write")
    shutil.rmtree("root/include")
    expect_output(materialize("--check"), 1, "root: would-write")


@pytest.mark.usefixtures("made_set")
def test_check_of_unknown_package_is_refused(materialize: Materialize) -> None:
    expect_error(materialize("--check", "--component", "cufftt"), 2, "cufftt")


def test_check_cannot_be_combined_with_verify(run: Run) -> None:
    expect_error(run("materialize", "--output", "root", "--verify", "--check"), 2, "--check cannot")


def test_check_of_wheels_has_unpacked_sizes(run: Run) -> None:
    """On the shipped data."""
    call = ("build", "--cuda", "12.9", "--platform", "linux-x86_64", "--output", "set.json")
    assert run(*call).exit_code == 0
    words = ("--output", "root", "--component", "libcublas", "--check")
    result = expect_output(run("materialize", "set.json", *words), 1)
    first, *rows = result.stdout.splitlines()
    assert first == (
        "root: would-write; CUDA 12.9.2 for linux-x86_64, 6 packages, 1,205.6 MB unpacked, "
        "an unknown size to download"
    )
    assert rows[1].split() == ["libcublas", "855.8", "MB", "unknown"]
