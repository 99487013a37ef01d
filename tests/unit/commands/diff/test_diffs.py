"""Tests of differences between manifests and between any two sides."""

import json
from typing import Any

import pytest
from support.factory import manifest, name_policy
from support.package_sets import example_set

from cudaredist.commands.diff.comparable import Comparable, of_manifest, of_package_set
from cudaredist.commands.diff.compare import compare
from cudaredist.commands.diff.report import Delta
from cudaredist.commands.diff.text import diff_markdown, diff_text
from cudaredist.manifests.manifest_changes import manifest_changes
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import sri_of


def changes(old: bytes, new: bytes) -> list[str]:
    return list(manifest_changes(read_manifest(old), read_manifest(new)))


def edited(**values: Any) -> bytes:
    """Return the usual manifest with values set by dotted path."""
    document = json.loads(manifest())
    for path, value in values.items():
        *parents, last = path.split("__")
        node = document
        for step in parents:
            node = node[step.replace("_x86", "-x86")]
        node[last] = value
    return json.dumps(document).encode()


def test_formatting_is_not_a_change() -> None:
    assert changes(manifest(), json.dumps(json.loads(manifest())).encode()) == []


@pytest.mark.parametrize(
    ("new", "line"),
    [
        pytest.param(edited(release_date="2026-01-01"), "release_date: 2025-06-04 -> 2026-01-01"),
        pytest.param(edited(release_product="x"), "release_product: cuda -> x"),
        pytest.param(
            edited(cuda_cudart__version="12.9.10"), "cuda_cudart: version 12.9.1 -> 12.9.10"
        ),
        pytest.param(
            edited(cuda_cudart__license="MIT"), "cuda_cudart: license 'CUDA Toolkit' -> 'MIT'"
        ),
        pytest.param(manifest(platforms=("linux-x86_64",)), "cuda_cudart: linux-sbsa: removed"),
        pytest.param(
            manifest(platforms=("linux-x86_64", "linux-sbsa", "linux-all")),
            "cuda_cudart: linux-all: added",
        ),
        pytest.param(manifest(packages=("cuda_cudart", "cuda_nvcc")), "cuda_nvcc: added"),
        pytest.param(manifest(packages=("cuda_nvcc",)), "cuda_cudart: removed"),
        pytest.param(edited(more={"a": 1}), "unknown keys changed"),
    ],
)
def test_manifest_changes_name_change(new: bytes, line: str) -> None:
    assert line in changes(manifest(), new)


def test_rebuilt_archives_list_hashes() -> None:
    lines = changes(
        manifest(platforms=("linux-x86_64",)), manifest(platforms=("linux-x86_64",), salt="x")
    )
    assert [line.rpartition(" -> ")[0].split()[:3] for line in lines] == [
        ["cuda_cudart:", "linux-x86_64:", "sha256"],
        ["cuda_cudart:", "linux-x86_64:", "md5"],
    ]


def test_early_manifest_versions_are_compared() -> None:
    def early(*versions: str) -> bytes:
        archives = {v: {"linux-x86_64": f"a/a-{v}.tar.gz"} for v in versions}
        return json.dumps({"a": archives}).encode()

    assert changes(early("1.0", "1.1"), early("1.0", "1.2")) == [
        "a: version 1.0, 1.1 -> 1.0, 1.2",
        "a: 1.1.linux-x86_64: removed",
        "a: 1.2.linux-x86_64: added",
    ]


# -- comparisons


def side(**packages: dict[tuple[str, str], Any]) -> Comparable:
    """Return a side with a default version and platform."""
    usual: dict[tuple[str, str], Any] = {
        ("version", ""): "1.0",
        ("platforms", ""): frozenset({"linux-x86_64"}),
    }
    return Comparable("a", {name: usual | fields for name, fields in packages.items()})


def delta_of(old: Any, new: Any, *key: str) -> Delta:
    """Return the change between two sides that differ in one field."""
    report = compare(side(x={key: old}), side(x={key: new}))  # type: ignore[dict-item]
    ((delta,),) = [package.deltas for package in report.packages]
    return delta


@pytest.mark.parametrize(
    ("field", "old", "new", "line"),
    [
        ("license", "MIT", "EULA", "license: MIT -> EULA"),
        ("outputs", {"lib", "bin"}, {"lib", "dev"}, "outputs: -bin +dev"),
        ("sonames", {"a.so.9"}, {"a.so.10"}, "sonames: -a.so.9 +a.so.10"),
        ("needed", set(), {"libz.so.1"}, "needed: +libz.so.1"),
        ("architectures", {"sm_90"}, {"sm_90", "sm_100"}, "architectures: +sm_100"),
        ("status", "available", "broken", "status: available -> broken"),
    ],
)
def test_package_change_is_listed(field: str, old: Any, new: Any, line: str) -> None:
    old, new = (frozenset(v) if isinstance(v, set) else v for v in (old, new))
    report = compare(side(x={(field, ""): old}), side(x={(field, ""): new}))
    assert f"      {line}" in list(diff_text(report))


RUNFILE = {
    "name": "cuda_12.9.1_575.57.08_linux.run",
    "url": None,
    "size": 1,
    "sha256": "0" * 64,
    "sri": sri_of("0" * 64),
    "md5": "0" * 32,
    "driver": "575.57.08",
}
DRIVER = {
    "published": {"version": "575.57.08", "source": "a manifest"},
    "lowest": {"version": "525", "source": "a guide"},
}


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (
            {"driver": DRIVER},
            {"driver": DRIVER | {"published": None}},
            ["driver: 575.57.08 -> none"],
        ),
        (
            {"driver": DRIVER},
            {"driver": DRIVER | {"lowest": {"version": "580", "source": "a guide"}}},
            ["lowest driver: 525 -> 580"],
        ),
        ({}, {"driver": DRIVER}, []),  # a set of an earlier version does not state drivers
        ({}, {"runfile": RUNFILE}, [f"runfile: none -> {RUNFILE['name']} ({'0' * 64})"]),
    ],
)
def test_diff_of_package_sets_with_other_driver_or_runfile_lists_it(
    old: dict[str, Any], new: dict[str, Any], lines: list[str]
) -> None:
    left, right = (of_package_set("a", example_set(**changes)) for changes in (old, new))
    text = list(diff_text(compare(left, right)))[1:-1]
    assert text == (["CUDA release:", *(f"  {line}" for line in lines)] if lines else [])


@pytest.mark.parametrize("field", ["glibc", "size", "archive size", "sha256"])
def test_change_on_some_platforms_names_them(field: str) -> None:
    delta = delta_of("1", "2", field, "linux-sbsa")
    assert (delta.field, delta.places, delta.old, delta.new) == (field, ("linux-sbsa",), "1", "2")


def test_equal_changes_on_several_platforms_are_merged() -> None:
    old = {("glibc", p): "2.17" for p in ("linux-sbsa", "linux-x86_64")}
    new = {("glibc", p): "2.28" for p in ("linux-sbsa", "linux-x86_64")}
    lines = list(diff_text(compare(side(x=old), side(x=new))))
    assert "      glibc [linux-sbsa, linux-x86_64]: 2.17 -> 2.28" in lines
    assert "may break:" in lines


def test_sizes_and_hashes_of_other_versions_are_not_compared() -> None:
    def x(version: str, sha256: str) -> dict[tuple[str, str], Any]:
        values = {"version": version}
        return {(k, ""): v for k, v in values.items()} | {
            (field, "linux-x86_64"): sha256 for field in ("sha256", "size", "archive size")
        }

    report = compare(side(x=x("1.0", "100")), side(x=x("1.1", "101")))
    assert [d.field for p in report.packages for d in p.deltas] == ["version"]


def test_other_bytes_under_same_version_are_a_warning() -> None:
    old = side(a={}, x={("sha256", "linux-x86_64"): "1" * 64})
    report = compare(old, side(x={("sha256", "linux-x86_64"): "2" * 64}))
    assert list(diff_text(report))[1:4] == [
        "warning: other bytes under the same version:",
        "  x",
        "      sha256 [linux-x86_64]: 111111111111… -> 222222222222…",
    ]
    assert "**Warning: other bytes under the same version**" in list(diff_markdown(report))


@pytest.mark.parametrize(
    ("field", "old", "new", "breaks"),
    [
        ("status", "available", "broken", True),
        ("status", "unsupported", "available", False),
        ("status", "broken", "unsupported", False),
        ("license", "CUDA Toolkit", "MIT", True),
        ("license", "NVIDIA Proprietary Software", "LicenseRef-NVIDIA-Proprietary", False),
        ("license", "Apache 2.0", "Apache-2.0", False),
        ("license", "", "NVIDIA Driver", False),
        ("glibc", "2.17", "2.28", True),
        ("glibc", "2.28", "2.17", False),
        ("needed", frozenset("x"), frozenset("xy"), True),
        ("needed", frozenset("xy"), frozenset("x"), False),
    ],
)
def test_harmless_change_is_listed_as_changed(
    field: str, old: Any, new: Any, *, breaks: bool
) -> None:
    lines = list(diff_text(compare(side(x={(field, ""): old}), side(x={(field, ""): new}))))
    assert lines[1] == ("may break:" if breaks else "changed:")
    if field != "needed":
        assert lines[3] == f"      {field}: {old or 'none'} -> {new}"


def test_unknown_hash_is_not_a_difference() -> None:
    places = {"a": {"1.0": {"linux-x86_64": "a/linux-x86_64/a-1.0.tar.gz"}}}
    early = of_manifest("a", read_manifest(json.dumps(places).encode()))
    later = of_manifest("b", read_manifest(manifest(packages=("a",), platforms=("linux-x86_64",))))
    later.packages["a"][("version", "")] = "1.0"
    for old, new in ((early, later), (later, early)):
        assert "sha256" not in "\n".join(diff_text(compare(old, new)))


@pytest.mark.parametrize(("sign", "is_back"), [("+", False), ("-", True)])
def test_nested_platforms_are_not_gone(sign: str, *, is_back: bool) -> None:
    flat = side(x={PLATFORMS: frozenset({"linux-sbsa", "linux-x86_64"})})
    nested = side(x={PLATFORMS: frozenset({"linux-sbsa/cuda13", "linux-x86_64/cuda13"})})
    report = compare(nested, flat) if is_back else compare(flat, nested)
    assert report.platforms is None
    assert list(diff_text(report))[1:] == [
        "changed:",
        "  x",
        f"      variants [linux-sbsa, linux-x86_64]: {sign}cuda13",
        "1 package differs, 0 are equal",
    ]


def test_removed_platform_next_to_nested_platform_is_gone() -> None:
    flat = side(x={PLATFORMS: frozenset({"linux-ppc64le", "linux-x86_64"})})
    report = compare(flat, side(x={PLATFORMS: frozenset({"linux-x86_64/cuda13"})}))
    assert report.platforms == Delta(field="platforms", places=(), gone=("linux-ppc64le",))


PLATFORMS = ("platforms", "")


def test_platform_lost_by_many_packages_is_listed_once() -> None:
    both, one = frozenset({"linux-x86_64", "linux-sbsa"}), frozenset({"linux-x86_64"})
    names = [f"p{n}" for n in range(5)]
    old = side(**{name: {PLATFORMS: both} for name in [*names, "still"]})
    new = side(**{name: {PLATFORMS: one} for name in names}, still={PLATFORMS: both})
    report = compare(old, new)
    assert list(diff_text(report))[1:] == [
        "platforms:",
        "  linux-sbsa: gone from 5 packages",
        "5 packages differ, 1 is equal",
    ]
    assert len([d for p in report.packages for d in p.deltas]) == 5, (
        "the data includes every package"
    )


def test_platform_lost_by_all_packages_is_listed_first() -> None:
    old = side(x={PLATFORMS: frozenset({"linux-x86_64", "linux-sbsa"})}, y={})
    report = compare(old, side(x={}))
    assert list(diff_text(report))[1:4] == [
        "platforms:",
        "  linux-sbsa: gone altogether (from x)",
        "gone:",
    ]
    assert report.platforms is not None
    assert report.platforms.gone == ("linux-sbsa",)
    assert "  linux-sbsa: new (in x)" in list(diff_text(compare(side(x={}), old)))


def test_long_lists_are_cut_and_counted() -> None:
    sonames = {("sonames", ""): frozenset(f"{n}.so" for n in range(30))}
    new = side(**{f"p{n:02}": {} for n in range(70)}, x=sonames)
    lines = list(diff_text(compare(side(x={}), new)))
    assert "  and 10 more" in lines
    assert any(line.endswith("+11.so (+18 more)") for line in lines)
    assert "- and 10 more" in list(diff_markdown(compare(side(x={}), new)))
    commit = "\n".join(diff_text(compare(side(x={}), new), is_commit=True))
    assert " more" not in commit
    assert "+29.so" in commit


def test_tables_of_both_sides_are_compared() -> None:
    old, new = side(x={}), side(x={})
    gcc = ("gcc accepted", "")
    old.tables = {"compilers": {gcc: "6 to 14"}, "gpus": {("supported", ""): frozenset("9")}}
    new.tables = {"compilers": {gcc: "6 to 15"}}
    assert list(diff_text(compare(old, new)))[1:] == [
        "CUDA release:",
        "  gcc accepted: 6 to 14 -> 6 to 15",
        "0 packages differ, 1 is equal",
    ]


# -- renamed and split


NAMES = name_policy()


def test_rename_by_policy_is_one_line() -> None:
    new = side(cccl={("version", ""): "1.1"})
    assert list(diff_text(compare(side(cuda_cccl={}), new, NAMES)))[1:3] == [
        "renamed:",
        "  cuda_cccl 1.0 -> cccl 1.1",
    ]


def test_split_by_policy_names_parts() -> None:
    report = compare(side(cuda_nvcc={}), side(cuda_nvcc={}, cuda_crt={}, libnvvm={}), NAMES)
    lines = list(diff_text(report))
    assert "  cuda_nvcc split: cuda_crt, libnvvm" in lines
    assert "  cuda_crt 1.0 (linux-x86_64) from cuda_nvcc" in lines
    back = compare(side(cuda_nvcc={}, cuda_crt={}, libnvvm={}), side(cuda_nvcc={}), NAMES)
    assert "  cuda_crt 1.0 (linux-x86_64) now in cuda_nvcc" in list(diff_text(back))


def test_package_replaced_by_its_parts_is_a_split() -> None:
    report = compare(side(cuda_nvcc={}), side(cuda_crt={}, libnvvm={}), NAMES)
    assert "  cuda_nvcc 1.0 (linux-x86_64) split: cuda_crt, libnvvm" in list(diff_text(report))


def with_files(**files: str) -> Comparable:
    """Return a side with packages and their files."""
    comparable = side(**{name: {} for name in files})
    comparable.files = {name: frozenset(paths.split()) for name, paths in files.items()}
    return comparable


def test_split_by_content_names_parts() -> None:
    old = with_files(big="lib/a include/b/1.h include/b/2.h bin/c x/d")
    new = with_files(
        big="lib/a", part="include/b/1.h include/b/2.h include/new.h", other="bin/c y/d"
    )
    report = compare(old, new)
    lines = list(diff_text(report))
    assert "  big split: other, part" in lines
    assert "  part 1.0 (linux-x86_64) from big" in lines
    assert lines[lines.index("moved:") + 1 :][:2] == [
        "  big -> other: bin/c, x/d -> y/d",
        "  big -> part: include/b/ (2 files)",
    ]
    assert "- `big` → `other`" not in "\n".join(diff_markdown(report))
    assert "- `big` -> `other`: `bin/c`, `x/d` -> `y/d`" in list(diff_markdown(report))
    back = compare(new, old)
    assert "  part 1.0 (linux-x86_64) now in big" in list(diff_text(back))
    assert "  other -> big: bin/c, y/d -> x/d" in list(diff_text(back))


def test_files_moved_between_packages_are_reported() -> None:
    report = compare(with_files(a="x/1 x/2 x/3", b="y/1"), with_files(a="x/1", b="x/2 x/3 y/1"))
    (move,) = report.moves
    assert (move.old, move.new, move.equal, move.gone) == ("a", "b", ("x/2", "x/3"), ())
    # Both packages exist on both sides, so neither is a part of the other.
    assert report.packages == ()


def test_files_of_renamed_package_are_not_listed_as_moved() -> None:
    report = compare(with_files(cuda_cccl="include/a"), with_files(cccl="include/a"), NAMES)
    assert report.moves
    assert "moved:" not in list(diff_text(report))


def test_rename_by_content_is_one_line() -> None:
    lines = list(diff_text(compare(with_files(x="a/1 a/2"), with_files(y="a/1 a/3"))))
    assert lines[1:3] == ["renamed:", "  x 1.0 -> y 1.0"]


def test_many_moved_files_are_counted() -> None:
    files = " ".join(f"{n}/a{n}.h" for n in range(20))
    lines = list(diff_text(compare(with_files(a=f"{files} b/c"), with_files(a="b/c", z=files))))
    (moved_line,) = (line for line in lines if line.startswith("  a -> z: "))
    assert moved_line.startswith("  a -> z: 0/a0.h, 1/a1.h, 2/a2.h, ")
    assert moved_line.endswith(", 11/a11.h, and 8 more")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(with_files(a="x/1"), with_files(a="x/1", b="x/1"), id="a copy"),
        pytest.param(with_files(a="x/1"), with_files(a="y/1"), id="within a package"),
        pytest.param(with_files(a="x/1 y/1"), with_files(a="", b="z/1"), id="ambiguous name"),
        pytest.param(
            with_files(a="x/1"), with_files(a="", b="z/1", c="w/1"), id="ambiguous package"
        ),
        pytest.param(with_files(a="x/1"), with_files(b="y/2"), id="something else"),
    ],
)
def test_unrelated_files_are_not_a_move(old: Comparable, new: Comparable) -> None:
    assert compare(old, new).moves == ()
    assert compare(new, old).moves == ()


def test_one_file_of_three_is_not_a_split() -> None:
    report = compare(with_files(a="x/1 x/2"), with_files(a="x/1", b="x/2 x/3 x/4"))
    assert [package.origin for package in report.packages] == [None]
    assert [(move.old, move.new) for move in report.moves] == [("a", "b")]


def test_package_with_unknown_files_has_no_moves() -> None:
    new = with_files(a="", b="x/1")
    del new.files["a"]
    assert compare(with_files(a="x/1"), new).moves == ()


@pytest.mark.parametrize(
    ("old", "new", "is_listed"),
    [("100", "109", False), ("109", "100", False), ("100", "111", True), ("111", "100", True)],
)
def test_large_size_changes_of_other_versions_are_listed(
    old: str, new: str, *, is_listed: bool
) -> None:
    def sized(version: str, size: str) -> Comparable:
        return side(a={("version", ""): version, ("archive size", "linux-x86_64"): size})

    lines = list(diff_text(compare(sized("1", old), sized("2", new))))
    line = f"      archive size [linux-x86_64]: {old} bytes -> {new} bytes"
    assert (line in lines) is is_listed
    assert f"      archive size [linux-x86_64]: {old} bytes -> {new} bytes" in list(
        diff_text(compare(sized("1", old), sized("1", new)))
    )


def test_sizes_of_commit_have_a_line_for_each_platform() -> None:
    def sized(version: str, **sizes: str) -> dict[tuple[str, str], str]:
        return {
            ("version", ""): version,
            **{(f.replace("_", " "), "linux-x86_64"): v for f, v in sizes.items()},
        }

    old = side(
        a=sized("1", archive_size="100"),
        b=sized("1", size="100", archive_size="10"),
        c=sized("1", size="100"),
    )
    new = side(
        a=sized("2", archive_size="50"),
        b=sized("2", size="200", archive_size="90"),
        c=sized("1", size="101"),
    )
    assert list(diff_text(compare(old, new), is_commit=True))[1:] == [
        "changed:",
        "  a 1 -> 2",
        "  b 1 -> 2",
        "  c",
        "      size [linux-x86_64]: 100 bytes -> 101 bytes",
        "sizes:",
        "  linux-x86_64: a -50%, b +100%",
        "3 packages differ, 0 are equal",
    ]
