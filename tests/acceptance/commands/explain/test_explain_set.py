"""Tests of `explain set`: contents, sizes, missing packages and invalid files."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.golden import Golden
from support.package_sets import document
from support.running import expect_error, expect_output


def without_files() -> dict[str, Any]:
    package_set = document()
    for package in package_set["packages"].values():
        package["contents"] = {}
    return package_set


@pytest.fixture
def path() -> Path:
    """Write a set with two packages with files, one of them a split library."""
    path = Path("cuda-13.3.1.json")
    package_set = without_files()
    packages = package_set["packages"]
    size = {"lib": 2_000_000, "dev": 100_000, "static": 3_900_000}
    packages["libcublas"]["contents"] = {
        output: {"files": 3, "bytes": number} for output, number in size.items()
    }
    packages["cuda_nvcc"]["contents"] = {"bin": {"files": 1200, "bytes": 1_500_000}}
    path.write_text(json.dumps(package_set))
    return path


def test_explain_set_lists_contents_and_missing_packages(
    run: Run, path: Path, golden: Golden
) -> None:
    result = expect_output(run("explain", "set", path), 0)
    golden.check("explain-set.txt", "a package set", result.stdout.rstrip("\n"))


def test_explain_set_counts_split_sizes_of_libraries_only(run: Run, path: Path) -> None:
    summary = json.loads(run("explain", "set", path, "--json").stdout)
    assert (summary["library_lib_bytes"], summary["library_bytes"]) == (2_000_000, 6_000_000)
    totals = {total["output"]: total["size"] for total in summary["totals"]}
    assert list(totals) == ["bin", "lib", "dev", "static"]
    assert sum(totals.values()) == 7_500_000
    available = {package["package"] for package in summary["packages"]}
    lacking = {package["package"] for package in summary["missing"]}
    aliases = {name for name, entry in document()["packages"].items() if entry.get("alias_of")}
    assert available | lacking | aliases == set(document()["packages"])
    assert not available & lacking
    assert aliases
    assert all(package["reason"] for package in summary["missing"])


def test_sets_of_an_index_are_named(run: Run) -> None:
    run("build", "--cuda", "13.0", "--platform", "linux-x86_64")
    result = expect_error(run("explain", "set", "build/index.json"), 2, "is an index of package")
    call = "cudaredist explain set build/linux-x86_64/cuda-13.0.3.json"
    assert result.stderr.rstrip().endswith(f"run `{call}`")


def test_explain_set_without_sizes_prints_no_totals(run: Run) -> None:
    Path("bare.json").write_text(json.dumps(without_files()))
    text = run("explain", "set", "bare.json").stdout
    assert "splitting" not in text
    assert "output " not in text


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, 2, "no such file"),
        ("{", 5, "set.json"),
        ('{"schema_version": 1}', 5, "set.json"),
        ('{"schema_version": true}', 5, "schema_version"),
    ],
)
def test_explain_set_of_invalid_file_is_rejected(
    run: Run, content: str | None, code: int, message: str
) -> None:
    if content is not None:
        Path("set.json").write_text(content)
    result = expect_output(run("explain", "set", "set.json"), code)
    assert message in result.stderr.lower()
