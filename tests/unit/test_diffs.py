"""What changed, as a reviewer reads it: between two manifests, and between any two sides."""

import json
from typing import Any

import pytest
from support.manifests import manifest

from cudaredist.diffs import Comparable, compare, manifest_changes, moved_files
from cudaredist.manifests import read_manifest
from cudaredist.render_changes import diff_markdown, diff_text
from cudaredist.reports import Delta
from cudaredist.schema import NamePolicy


def changes(old: bytes, new: bytes) -> list[str]:
    return list(manifest_changes(read_manifest(old), read_manifest(new)))


def edited(**values: Any) -> bytes:
    """The usual manifest with values set by dotted path."""
    document = json.loads(manifest())
    for path, value in values.items():
        *parents, last = path.split("__")
        place = document
        for step in parents:
            place = place[step.replace("_x86", "-x86")]
        place[last] = value
    return json.dumps(document).encode()


def test_nothing_changed() -> None:
    assert changes(manifest(), manifest()) == []


def test_formatting_is_no_change() -> None:
    assert changes(manifest(), json.dumps(json.loads(manifest())).encode()) == []


@pytest.mark.parametrize(
    ("new", "line"),
    [
        pytest.param(edited(release_date="2026-01-01"), "release_date: 2025-06-04 -> 2026-01-01"),
        pytest.param(edited(release_product="x"), "release_product: cuda -> x"),
        pytest.param(
            edited(cuda_cudart__version="12.9.2"), "cuda_cudart: version 12.9.1 -> 12.9.2"
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
        pytest.param(edited(more={"a": 1}), "keys that are not understood changed"),
    ],
)
def test_names_the_change(new: bytes, line: str) -> None:
    assert line in changes(manifest(), new)


def test_rebuilt_archives_show_their_hashes() -> None:
    lines = changes(
        manifest(platforms=("linux-x86_64",)), manifest(platforms=("linux-x86_64",), salt="x")
    )
    assert [line.rpartition(" -> ")[0].split()[:3] for line in lines] == [
        ["cuda_cudart:", "linux-x86_64:", "sha256"],
        ["cuda_cudart:", "linux-x86_64:", "md5"],
    ]


def test_early_versions_are_told_apart() -> None:
    def early(*versions: str) -> bytes:
        places = {v: {"linux-x86_64": f"a/a-{v}.tar.gz"} for v in versions}
        return json.dumps({"a": places}).encode()

    assert changes(early("1.0", "1.1"), early("1.0", "1.2")) == [
        "a: version 1.0, 1.1 -> 1.0, 1.2",
        "a: 1.1.linux-x86_64: removed",
        "a: 1.2.linux-x86_64: added",
    ]


# -- comparisons


def side(**packages: dict[tuple[str, str], Any]) -> Comparable:
    """One side, with a version and a platform where a package states none."""
    usual: dict[tuple[str, str], Any] = {
        ("version", ""): "1.0",
        ("platforms", ""): frozenset({"linux-x86_64"}),
    }
    return Comparable("a", {name: usual | fields for name, fields in packages.items()})


def delta_of(old: Any, new: Any, *key: str) -> Delta:
    """The one change of the one package of two sides that differ in one field."""
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
def test_a_change_of_a_package(field: str, old: Any, new: Any, line: str) -> None:
    old, new = (frozenset(v) if isinstance(v, set) else v for v in (old, new))
    report = compare(side(x={(field, ""): old}), side(x={(field, ""): new}))
    assert f"      {line}" in list(diff_text(report))


@pytest.mark.parametrize("field", ["glibc", "size", "archive size", "sha256"])
def test_a_change_in_some_places_is_told_with_them(field: str) -> None:
    delta = delta_of("1", "2", field, "linux-sbsa")
    assert (delta.field, delta.places, delta.old, delta.new) == (field, ("linux-sbsa",), "1", "2")


def test_equal_changes_in_several_places_are_one() -> None:
    old = {("glibc", p): "2.17" for p in ("linux-sbsa", "linux-x86_64")}
    new = {("glibc", p): "2.28" for p in ("linux-sbsa", "linux-x86_64")}
    lines = list(diff_text(compare(side(x=old), side(x=new))))
    assert "      glibc [linux-sbsa, linux-x86_64]: 2.17 -> 2.28" in lines
    assert "lost something:" in lines


def test_sizes_and_hashes_say_nothing_where_the_version_changed() -> None:
    def x(version: str, sha256: str) -> dict[tuple[str, str], Any]:
        values = {"version": version}
        return {(k, ""): v for k, v in values.items()} | {
            (field, "linux-x86_64"): sha256 for field in ("sha256", "size", "archive size")
        }

    report = compare(side(x=x("1.0", "1")), side(x=x("1.1", "2")))
    assert [d.field for p in report.packages for d in p.deltas] == ["version"]


def test_other_bytes_under_the_same_version_come_first_and_as_a_warning() -> None:
    old = side(a={}, x={("sha256", "linux-x86_64"): "1" * 64})
    report = compare(old, side(x={("sha256", "linux-x86_64"): "2" * 64}))
    assert list(diff_text(report))[1:4] == [
        "warning: other bytes under the same version:",
        "  x",
        "      sha256 [linux-x86_64]: 111111111111… -> 222222222222…",
    ]
    assert "**Warning: other bytes under the same version**" in list(diff_markdown(report))


PLATFORMS = ("platforms", "")


def test_a_platform_that_many_lost_is_said_once() -> None:
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
    assert len([d for p in report.packages for d in p.deltas]) == 5, "the data keeps all"


def test_a_platform_that_is_gone_altogether_comes_first() -> None:
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


def test_tables_are_compared_where_both_sides_are_known() -> None:
    old, new = side(x={}), side(x={})
    old.tables = {"compilers": {"gcc accepted": "6 to 14"}, "gpus": {"supported": frozenset("9")}}
    new.tables = {"compilers": {"gcc accepted": "6 to 15"}}
    assert list(diff_text(compare(old, new)))[1:] == [
        "compilers and GPUs:",
        "  gcc accepted: 6 to 14 -> 6 to 15",
        "0 packages differ, 1 is equal",
    ]


# -- renamed and split


REASON = {"reason": "for tests", "reference": "none"}
NAMES = NamePolicy.model_validate(
    {
        "schema_version": 1,
        "sets": {"default": "12", "majors": {}, **REASON},
        "aliases": {},
        "renames": {"cuda_cccl": {"to": "cccl", "since": "13.3", **REASON}},
        "splits": {"cuda_nvcc": {"into": ("cuda_crt", "libnvvm"), "since": "13.0", **REASON}},
    },
    strict=False,
)


def test_a_rename_by_policy_is_one_line() -> None:
    new = side(cccl={("version", ""): "1.1"})
    assert list(diff_text(compare(side(cuda_cccl={}), new, NAMES)))[1:3] == [
        "renamed:",
        "  cuda_cccl -> cccl 1.0 -> 1.1",
    ]


def test_a_split_by_policy_names_the_parts_on_both_sides() -> None:
    report = compare(side(cuda_nvcc={}), side(cuda_nvcc={}, cuda_crt={}, libnvvm={}), NAMES)
    lines = list(diff_text(report))
    assert "  cuda_nvcc split: cuda_crt, libnvvm" in lines
    assert "  cuda_crt 1.0 (linux-x86_64) from cuda_nvcc" in lines
    back = compare(side(cuda_nvcc={}, cuda_crt={}, libnvvm={}), side(cuda_nvcc={}), NAMES)
    assert "  cuda_crt 1.0 (linux-x86_64) now in cuda_nvcc" in list(diff_text(back))


def test_a_package_that_is_wholly_replaced_by_its_parts() -> None:
    report = compare(side(cuda_nvcc={}), side(cuda_crt={}, libnvvm={}), NAMES)
    assert "  cuda_nvcc 1.0 (linux-x86_64) split: cuda_crt, libnvvm" in list(diff_text(report))


def test_a_split_by_content() -> None:
    old = {"big": frozenset({"lib/a", "lib/b", "lib/c"})}
    new = {"big": frozenset({"lib/a"}), "part": frozenset({"lib/b", "lib/c"})}
    moves = moved_files(old, new)
    assert moves == {"part": {"big": 2}}
    report = compare(side(big={}), side(big={}, part={}), None, moves)
    assert "  part 1.0 (linux-x86_64) from big" in list(diff_text(report))
    assert "  big split: part" in list(diff_text(report))


@pytest.mark.parametrize(
    "new",
    [
        pytest.param({"big": frozenset({"a"}), "x": frozenset({"a"})}, id="a copy is no move"),
        pytest.param(
            {"big": frozenset[str](), "x": frozenset({"a", "b", "c"})}, id="one file of three"
        ),
    ],
)
def test_what_is_no_split(new: dict[str, frozenset[str]]) -> None:
    assert moved_files({"big": frozenset({"a"})}, new) == {}
