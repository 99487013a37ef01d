"""Tests of diff: files that vanish, move or are new, and run paths."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from conftest import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.commands.diff.compare import compare
from cudaredist.commands.diff.file_changes import (
    file_changes,
    kind_of,
    match_files,
    run_path_changes,
)
from cudaredist.commands.diff.read_sides import of_features
from cudaredist.commands.diff.text import diff_text
from cudaredist.formats.features import Features
from cudaredist.primitives import natural_order
from cudaredist.store.examined_archives import examined_archives

X86, ARM = "linux-x86_64", "linux-sbsa"
Files = Mapping[str, Sequence[str]]


def side(files: Files, *places: str, name: str = "a") -> Comparable:
    paths = {package: frozenset(of_package) for package, of_package in files.items()}
    return Comparable(name, paths=dict.fromkeys(places or (X86,), paths))


def changes(old: Files, new: Files) -> list[tuple[str, str, str | None, str | None, int]]:
    found = file_changes(side(old), side(new))
    return [(each.status, each.package, each.old, each.new, each.files) for each in found]


HEADERS = ["include/cub/a.cuh", "include/cub/b.cuh", "include/cub/x/a.cuh"]
MOVED = ["include/cccl/cub/a.cuh", "include/cccl/cub/b.cuh", "include/cccl/cub/x/a.cuh"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"p": ["lib/x.so"]}, {"p": ["lib/x.so"]}, []),
        (
            {"p": HEADERS},
            {"p": MOVED},
            [("moved", "p", "include/cub/**", "include/cccl/cub/**", 3)],
        ),
        (
            {"p": ["bin/x64_13.dll"]},
            {"p": ["bin/x64/x64_13.dll"]},
            [("moved", "p", "bin/x64_13.dll", "bin/x64/x64_13.dll", 1)],
        ),
        (
            {"p": ["lib/libx.so.12"]},
            {"p": ["lib/libx.so.13"]},
            [("renamed", "p", "lib/libx.so.12", "lib/libx.so.13", 1)],
        ),
        (
            {"p": ["bin/cusparseLt.dll", "bin/k.exe"]},
            {"p": ["bin/cusparseLt_13.dll", "bin/k_2.exe"]},
            [
                ("added", "p", None, "bin/k_2.exe", 1),
                ("gone", "p", "bin/k.exe", None, 1),
                ("renamed", "p", "bin/cusparseLt.dll", "bin/cusparseLt_13.dll", 1),
            ],
        ),
        (
            {"p": ["bin/x64_12.dll"]},
            {"p": ["bin/x64/x64_13.dll"]},
            [("moved", "p", "bin/x64_12.dll", "bin/x64/x64_13.dll", 1)],
        ),
        (
            {"p": ["lib/libx_static.a", "lib/k"]},
            {"p": ["lib/k"]},
            [("gone", "p", "lib/libx_static.a", None, 1)],
        ),
        (
            {"p": ["share/doc/a", "share/doc/b", "share/doc/c/d", "lib/k"]},
            {"p": ["lib/k"]},
            [("gone", "p", "share/**", None, 3)],
        ),
        (
            {"p": ["lib/k"]},
            {"p": ["lib/k", "include/x.h"]},
            [("added", "p", None, "include/x.h", 1)],
        ),
        # A package that only one side has needs no list.
        ({"p": ["lib/k"]}, {"q": ["lib/m"]}, []),
        # The same name in another package is another file.
        (
            {"p": ["include/version.h"], "q": ["lib/k"]},
            {"p": ["lib/m"], "q": ["lib/k", "other/version.h"]},
            [
                ("added", "p", None, "lib/m", 1),
                ("gone", "p", "include/version.h", None, 1),
                ("added", "q", None, "other/version.h", 1),
            ],
        ),
    ],
)
def test_changes_are_combined_by_folder(
    old: Files, new: Files, expected: list[tuple[str, str, str | None, str | None, int]]
) -> None:
    assert changes(old, new) == expected


def test_file_that_moves_to_another_package_names_it() -> None:
    (change,) = file_changes(side({"p": ["lib/a.a"], "q": []}), side({"p": [], "q": ["lib/a.a"]}))
    assert (change.status, change.package, change.new_package) == ("moved", "p", "q")


def test_equal_changes_of_platforms_are_one() -> None:
    old, new = side({"p": ["a/x", "a/k"]}, X86, ARM), side({"p": ["a/k"]}, X86, ARM)
    (change,) = file_changes(old, new)
    assert change.places == (ARM, X86)
    # A platform that only one side has is not compared.
    (change,) = file_changes(side({"p": ["a/x", "a/k"]}, X86, ARM), side({"p": ["a/k"]}))
    assert change.places == (X86,)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("lib/libx.so.12", "shared libraries"),
        ("bin/x64/x.dll", "shared libraries"),
        ("lib/libx.so", "development libraries"),
        ("lib/x64/x.lib", "development libraries"),
        ("lib/libx_static.a", "static libraries"),
        ("include/x", "headers"),
        ("nvvm/x.h", "headers"),
        ("bin/nvcc", "programs"),
        ("pkg-config/x.pc", "pkg-config files"),
        ("lib/cmake/x.cmake", "CMake files"),
        ("share/doc/x.txt", "other files"),
    ],
)
def test_kind_of_a_file(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_run_path_of_a_renamed_library_is_compared() -> None:
    old, new = Comparable("a"), Comparable("b")
    old.run_paths = {X86: {"p": {"lib/x.so.12": ("$ORIGIN",), "lib/y.so": ("$ORIGIN",)}}}
    new.run_paths = {X86: {"p": {"lib/x.so.13": (), "lib/y.so": ("$ORIGIN",)}}}
    (change,) = run_path_changes(old, new)
    assert (change.package, change.old, change.new) == ("p", ("$ORIGIN",), ())
    assert (change.files, change.places) == (("lib/x.so.13",), (X86,))
    assert "  $ORIGIN -> none: 1 file of p" in list(diff_text(compare(old, new)))


paths = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "x.12", "x.13", "lib"]), min_size=1, max_size=4),
    max_size=12,
).map(lambda parts: ["/".join(each) for each in parts])
packages = st.dictionaries(st.sampled_from(["p", "q", "r"]), paths, max_size=3)


@given(old=packages, new=packages)
def test_each_file_is_matched_once(old: Files, new: Files) -> None:
    pairs = match_files(old, new)
    for files, position in ((old, 0), (new, 1)):
        matched = [pair[position] for pair in pairs if pair[position] is not None]
        expected = {(package, path) for package, of in files.items() for path in of}
        assert len(matched) == len(set(matched))
        assert set(matched) == expected


def shipped(redist: str) -> list[Path]:
    files = (REPOSITORY / f"data/features/wheels/{redist}").glob("feature_*.json")
    return sorted(files, key=lambda path: natural_order(path.stem))


def read(path: Path) -> Features:
    return Features.model_validate_json(path.read_bytes())


def label(name: str) -> Path:
    return REPOSITORY / f"data/features/wheels/cuda/feature_{name}.json"


PAIRS = [
    (label("12.8.2"), label("12.9.2")),
    (label("12.9.2"), label("13.0.3")),
    (label("13.0.3"), label("13.5.0")),
    tuple(shipped("cudnn")[-2:]),
    tuple(shipped("cutensor")[-2:]),
]


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " ".join(path.stem for path in pair))
def test_every_file_of_shipped_releases_is_accounted_for(pair: tuple[Path, Path]) -> None:
    sides = [of_features(path.stem, read(path)) for path in pair]
    old, new = sides
    for place in old.paths.keys() & new.paths.keys():
        pairs = match_files(old.paths[place], new.paths[place])
        for one, position in ((old, 0), (new, 1)):
            files = {(package, p) for package, of in one.paths[place].items() for p in of}
            assert sorted(filter(None, (each[position] for each in pairs))) == sorted(files)
        # The combined form has the same numbers, except for packages that only one side has.
        found = [each for each in file_changes(old, new) if place in each.places]
        for status, mine, theirs in (("gone", 0, new), ("added", 1, old)):
            alone = [
                each[mine]
                for each in pairs
                if each[1 - mine] is None and each[mine].package in theirs.paths[place]  # type: ignore[union-attr] # one is not None
            ]
            assert sum(each.files for each in found if each.status == status) == len(alone)
        moved = [each for each in pairs if None not in each and each[0] != each[1]]
        statuses = ("moved", "renamed")
        assert sum(each.files for each in found if each.status in statuses) == len(moved)


def test_examined_archives_have_files() -> None:
    """A release whose files are unknown has no changes, instead of all of them."""
    features = read(label("13.0.3"))
    found = of_features("a", features)
    archives = list(examined_archives(features))
    assert sum(len(packages) for packages in found.paths.values()) == len(archives)
