"""Tests of `export nixpkgs`, the former name of `nixpkgs`."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import Run
from support.checkouts import create_checkout
from support.nix_builds import needs_nix
from support.running import expect_error, expect_output, snapshot


@pytest.fixture
def checkout(run: Run) -> Path:
    """Create a small checkout of nixpkgs, a set and its data folder."""
    return create_checkout()


@needs_nix
@pytest.mark.parametrize("options", [[], ["--no-shipped-data", "--only", "compilers"]])
def test_former_diff_prints_the_same(run: Run, checkout: Path, options: list[str]) -> None:
    new = run("nixpkgs", checkout, "set.json", "--diff", *options)
    former = run("export", "nixpkgs", "set.json", "--diff", checkout, *options)
    assert new.stdout
    assert (former.exit_code, former.stdout) == (new.exit_code, new.stdout)
    report = json.loads(run("export", "nixpkgs", "--json", "--diff", checkout, *options).stdout)
    assert (report["command"], report["format"]) == ("export", "nixpkgs")


@needs_nix
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--replace"], marks=pytest.mark.slow),
        ["--allow-downgrade"],
        pytest.param(["--only", "capabilities"], marks=pytest.mark.slow),
        ["--check"],
    ],
    ids=lambda options: options[0],
)
def test_former_export_writes_the_same(run: Run, checkout: Path, options: list[str]) -> None:
    shutil.copytree(checkout, "former")
    renamed = ["--replace" if word == "--allow-downgrade" else word for word in options]
    new = run("nixpkgs", checkout, "set.json", *renamed)
    shutil.move(checkout, "new")
    shutil.move("former", checkout)
    former = run("export", "nixpkgs", "set.json", "-o", checkout, *options)
    assert (former.exit_code, former.stdout) == (new.exit_code, new.stdout)
    assert snapshot(checkout) == snapshot(Path("new"))


def test_former_export_creates_folder(run: Run, checkout: Path) -> None:
    expect_output(run("--json", "export", "--output", "made", "nixpkgs", "set.json"), 0)
    expect_output(run("nixpkgs", "made", "set.json", "--check"), 0)


@needs_nix
def test_former_export_reads_configuration_file(run: Run, checkout: Path) -> None:
    Path("data").rename("moved")
    call = ["export", "nixpkgs", "set.json", "--no-shipped-data", "--diff", checkout]
    assert run(*call).exit_code == 3
    Path("cudaredist.toml").write_text('data-dir = "moved"\n')
    assert run(*call).exit_code == 1


def test_former_export_repeats_its_name_in_hints(run: Run, checkout: Path) -> None:
    result = run("export", "nixpkgs", "--data-dir", "data", "--only", "release", "--output", "made")
    call = "cudaredist export nixpkgs --output made --only releases --data-dir data"
    expect_error(result, 2, "no table, package set or redistributable is called 'release'", call)
    result = run("export", "nixpkgs", "--output", "-", "--json")
    expect_error(result, 2, "nixpkgs writes several files")
    assert json.loads(result.stdout)["command"] == "export"


def test_former_export_is_not_in_the_help(run: Run) -> None:
    printed = run("export", "--help").stdout
    assert "nixpkgs" not in printed.replace("without nixpkgs", "").replace("that nixpkgs", "")
    assert "Usage: cudaredist export nixpkgs" in run("export", "nixpkgs", "--help").stdout
