"""Tests of validate on package sets: violated and unchecked invariants."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.running import expect_output, succeed
from support.small_sets import LABEL, make_data, make_sets

from cudaredist.jsontext import canonical_json


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder, a cache and two sets that no test changes."""
    root = tmp_path_factory.mktemp("small")
    make_data(root)
    places = ("--data-dir", root / "data", "--cache-dir", root / "cache")
    succeed("update-symbols", "-q", "--offline", "--base-url", root / "source", *places)
    make_sets(root)
    return root


def set_path(root: Path, platform: str = "linux-x86_64") -> Path:
    return root / "sets" / platform / f"cuda-{LABEL}.json"


def edited(root: Path, change: Callable[[Any], object], name: str = "edited.json") -> Path:
    """Write an edited set into the working folder."""
    document = json.loads(set_path(root).read_bytes())
    change(document)
    path = Path(name)
    path.write_bytes(canonical_json(document))
    return path


def without_address(document: Any) -> None:
    document["packages"]["libcublas"]["archive"]["url"] = "https://example.org/"


def test_valid_set_with_cache_has_no_problems(
    run: Run, example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(example)
    paths = [set_path(example), set_path(example, "linux-sbsa")]
    result = expect_output(run("validate", *paths, "--cache-dir", example / "cache"), 0)
    assert result.stdout == "".join(f"{path}: valid package-set file\n" for path in paths)


def test_unchecked_invariants_are_listed(run: Run, example: Path) -> None:
    result = expect_output(run("validate", set_path(example)), 0)
    assert result.stdout.splitlines()[1:] == [
        "    not checked: I4, I7, I9, I27: the cache lacks the files of 6 of 6 packages",
        "    not checked: I15, I19, I25: no other set of its channel is given",
        "    not checked: I28 in part: no table has the symbols of 5 libraries, such as "
        "libcublas.so.12",
    ]


def test_set_without_features_lists_unchecked_invariants(
    run: Run, example: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/manifests").symlink_to(example / "data/manifests")
    options = ("--platform", "linux-x86_64", "--allow-missing-features", "--output", "set.json")
    assert run("build", "--data-dir", tmp_path / "bare", *options).exit_code == 0
    result = expect_output(run("validate", "set.json", "--cache-dir", example / "cache"), 0)
    assert result.stdout.splitlines()[1] == (
        "    not checked: I3, I4, I6, I8, I10, I11, I29 (partially): "
        "6 of 6 packages were not examined"
    )


def test_violated_invariant_is_named(run: Run, example: Path) -> None:
    path = edited(example, without_address)
    result = expect_output(run("validate", path, "--cache-dir", example / "cache"), 1)
    first, second, *_ = result.stdout.splitlines()
    assert first == "edited.json: valid package-set file, but it violates I2"
    assert second.startswith("    I2 libcublas: https://example.org/ does not end with libcublas/")


def test_sets_are_compared_with_each_other(run: Run, example: Path) -> None:
    path = edited(example, lambda document: document["packages"].pop("mft"))
    result = run("validate", set_path(example, "linux-sbsa"), path)
    assert result.exit_code == 1
    assert "edited.json: valid package-set file, but it violates I15\n" in result.stdout
    assert "    I15 mft: has no entry, but has one in another set; build both" in result.stdout
    assert run("validate", path).exit_code == 0


def test_other_files_are_validated_without_invariants(run: Run, example: Path) -> None:
    features = example / f"data/features/cuda/feature_{LABEL}.json"
    result = run("validate", features, example / "data/manifests/cuda/redistrib_12.9.1.json")
    assert result.exit_code == 0
    assert "not checked" not in result.stdout
