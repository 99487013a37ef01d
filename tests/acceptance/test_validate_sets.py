"""validate on package sets: which invariants hold, and which could not be checked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.running import succeed
from support.small_sets import LABEL, make_data, make_sets

from cudaredist.jsontext import canonical_json


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with its cache and two sets, which no test changes."""
    root = tmp_path_factory.mktemp("small")
    make_data(root)
    places = ("--data-dir", root / "data", "--cache-dir", root / "cache")
    succeed("update-symbols", "-q", "--offline", "--base-url", root / "source", *places)
    make_sets(root)
    return root


def place(root: Path, platform: str = "linux-x86_64") -> Path:
    return root / "sets" / platform / f"cuda-{LABEL}.json"


def edited(root: Path, change: Callable[[Any], object], name: str = "edited.json") -> Path:
    """Write a set that was edited into the working folder."""
    document = json.loads(place(root).read_bytes())
    change(document)
    path = Path(name)
    path.write_bytes(canonical_json(document))
    return path


def without_address(document: Any) -> None:
    document["packages"]["libcublas"]["archive"]["url"] = "https://example.org/"


def test_a_good_set_with_all_that_is_known_of_it(
    run: Run, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    paths = [place(made), place(made, "linux-sbsa")]
    result = run("validate", *paths, "--cache-dir", made / "cache")
    assert result.exit_code == 0
    assert result.stdout == "".join(f"{path}: valid package-set file\n" for path in paths)


def test_what_could_not_be_checked_is_said(run: Run, made: Path) -> None:
    result = run("validate", place(made))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == [
        "    not checked: I4, I7, I9, I27: the cache lacks the files of 6 of 6 packages",
        "    not checked: I15, I19, I25: no other set of its channel is given",
        "    not checked: I28 in part: no table has the symbols of 5 libraries, such as "
        "libcublas.so.12",
    ]


def test_a_set_without_features(run: Run, made: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/manifests").symlink_to(made / "data/manifests")
    options = ("--platform", "linux-x86_64", "--allow-missing-features", "--output", "set.json")
    assert run("build", "--data-dir", tmp_path / "bare", *options).exit_code == 0
    result = run("validate", "set.json", "--cache-dir", made / "cache")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1] == (
        "    not checked: I3, I4, I6, I8, I10, I11 (partially): 6 of 6 packages were not examined"
    )


def test_what_is_broken_is_named(run: Run, made: Path) -> None:
    path = edited(made, without_address)
    result = run("validate", path, "--cache-dir", made / "cache")
    assert result.exit_code == 1
    first, second, *_ = result.stdout.splitlines()
    assert first == "edited.json: valid package-set file, but it violates I2"
    assert second.startswith("    I2 libcublas: https://example.org/ does not end with libcublas/")


def test_the_same_as_json(run: Run, made: Path) -> None:
    result = run("validate", edited(made, without_address), "--json")
    (verdict,) = json.loads(result.stdout)["files"]
    assert (verdict["valid"], verdict["exit_code"]) == (True, 1)
    assert [problem[:12] for problem in verdict["problems"]] == ["I2 libcublas"]
    assert [names.partition(":")[0] for names in verdict["unchecked"]] == [
        "I4, I7, I9, I27",
        "I15, I19, I25",
        "I28 in part",
    ]


def test_other_files_than_the_archives_have(run: Run, made: Path) -> None:
    def change(document: Any) -> None:
        document["packages"]["libcublas"]["contents"]["lib"]["files"] = 3

    result = run("validate", edited(made, change), "--cache-dir", made / "cache")
    assert result.exit_code == 1
    assert "I4 libcublas: lib has " in result.stdout
    assert "bytes, but 3 files of " in result.stdout


def test_sets_are_held_against_each_other(run: Run, made: Path) -> None:
    path = edited(made, lambda document: document["packages"].pop("mft"))
    result = run("validate", place(made, "linux-sbsa"), path)
    assert result.exit_code == 1
    assert "edited.json: valid package-set file, but it violates I15\n" in result.stdout
    assert "    I15 mft: has no entry, but has one in another set\n" in result.stdout
    assert run("validate", path).exit_code == 0


def test_a_flood_of_violations_is_cut(run: Run, made: Path) -> None:
    def change(document: Any) -> None:
        for number in range(500):
            name = f"libcublas_{number}"
            document["packages"][name] = document["packages"]["libcublas"]

    result = run("validate", edited(made, change))
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) < 110


def test_other_files_of_ours_are_judged_as_before(run: Run, made: Path) -> None:
    features = made / f"data/features/cuda/feature_{LABEL}.json"
    result = run("validate", features, made / "data/manifests/cuda/redistrib_12.9.1.json")
    assert result.exit_code == 0
    assert "not checked" not in result.stdout
