"""Tests of differences between manifests and between any two sides."""

import json
from typing import Any

import pytest
from support.factory import blank, manifest, name_policy
from support.package_sets import example_set

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.commands.diff.compare import compare
from cudaredist.commands.diff.read_sides import of_manifest, of_package_set
from cudaredist.commands.diff.report import Delta
from cudaredist.commands.diff.text import diff_markdown, diff_text
from cudaredist.formats.runfile_records import Runfile
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
        (edited(release_date="2026-01-01"), "release_date: 2025-06-04 -> 2026-01-01"),
        (edited(release_product="x"), "release_product: cuda -> x"),
        (edited(cuda_cudart__version="12.9.10"), "cuda_cudart: version 12.9.1 -> 12.9.10"),
        (edited(cuda_cudart__license="MIT"), "cuda_cudart: license 'CUDA Toolkit' -> 'MIT'"),
        (manifest(platforms=("linux-x86_64",)), "cuda_cudart: linux-sbsa: removed"),
        (
            manifest(platforms=("linux-x86_64", "linux-sbsa", "linux-all")),
            "cuda_cudart: linux-all: added",
        ),
        (manifest(packages=("cuda_cudart", "cuda_nvcc")), "cuda_nvcc: added"),
        (manifest(packages=("cuda_nvcc",)), "cuda_cudart: removed"),
        (edited(more={"a": 1}), "unknown keys changed"),
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

NAMES = name_policy()
PLATFORMS = ("platforms", "")
SBSA, X86 = "linux-sbsa", "linux-x86_64"


def side(**packages: dict[tuple[str, str], Any]) -> Comparable:
    """Return a side with a default version and platform."""
    usual: dict[tuple[str, str], Any] = {("version", ""): "1.0", PLATFORMS: frozenset({X86})}
    return Comparable("a", {name: usual | fields for name, fields in packages.items()})


def x(*places: str, version: str = "1.0", **fields: Any) -> dict[tuple[str, str], Any]:
    """Return the fields of a package, with equal values for all places."""
    values = {
        (name.replace("_", " "), place): frozenset(value) if isinstance(value, set) else value
        for name, value in fields.items()
        for place in places or ("",)
    }
    return {("version", ""): version, **values}


def on(*platforms: str) -> dict[tuple[str, str], Any]:
    return {PLATFORMS: frozenset(platforms)}


def with_files(**files: str) -> Comparable:
    """Return a side with packages and their files."""
    comparable = side(**{name: {} for name in files})
    comparable.files = {name: frozenset(paths.split()) for name, paths in files.items()}
    return comparable


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (x(license="MIT"), x(license="EULA"), "license: MIT -> EULA"),
        (x(outputs={"lib", "bin"}), x(outputs={"lib", "dev"}), "outputs: -bin +dev"),
        (x(sonames={"a.so.9"}), x(sonames={"a.so.10"}), "sonames: -a.so.9 +a.so.10"),
        (x(needed=set()), x(needed={"libz.so.1"}), "needed: +libz.so.1"),
        (x(architectures=set()), x(architectures={"sm_100"}), "architectures: +sm_100"),
        (x(status="available"), x(status="broken"), "status: available -> broken"),
        (x(SBSA, glibc="1"), x(SBSA, glibc="2"), "glibc [linux-sbsa]: 1 -> 2"),
        (x(SBSA, size="1"), x(SBSA, size="2"), "size [linux-sbsa]: 1 bytes -> 2 bytes"),
        (x(SBSA, X86, glibc="1"), x(SBSA, X86, glibc="2"), f"glibc [{SBSA}, {X86}]: 1 -> 2"),
    ],
)
def test_package_change_is_listed(old: Any, new: Any, expected: str) -> None:
    assert f"      {expected}" in list(diff_text(compare(side(x=old), side(x=new))))


P = [f"p{number}" for number in range(5)]
NESTED = on(f"{SBSA}/cuda13", f"{X86}/cuda13")
SPLIT = side(cuda_nvcc={}, cuda_crt={}, libnvvm={})
SECTIONS = {
    "other bytes": (
        side(a={}, x=x(X86, sha256="1" * 64)),
        side(x=x(X86, sha256="2" * 64)),
        "warning: other bytes under the same version:|x|"
        "sha256 [linux-x86_64]: 111111111111… -> 222222222222…|gone:",
    ),
    "sizes and hashes of other versions": (
        side(x=x(X86, sha256="100", size="100", archive_size="100")),
        side(x=x(X86, sha256="101", size="101", archive_size="101", version="1.1")),
        "changed:|x 1.0 -> 1.1|1 package differs, 0 are equal",
    ),
    "nested platforms": (
        side(x=on(SBSA, X86)),
        side(x=NESTED),
        f"changed:|x|variants [{SBSA}, {X86}]: +cuda13|1 package differs",
    ),
    "flat platforms": (
        side(x=NESTED),
        side(x=on(SBSA, X86)),
        f"changed:|x|variants [{SBSA}, {X86}]: -cuda13|1 package differs",
    ),
    "platform gone next to a nested one": (
        side(x=on("linux-ppc64le", X86)),
        side(x=on(f"{X86}/cuda13")),
        "platforms:|linux-ppc64le: no archives any more (of x)|changed:|x|variants",
    ),
    "platform lost by many packages": (
        side(**dict.fromkeys([*P, "still"], on(X86, SBSA))),
        side(**dict.fromkeys(P, on(X86)), still=on(X86, SBSA)),
        "platforms:|linux-sbsa: gone from 5 packages|5 packages differ, 1 is equal",
    ),
    "platform lost by all packages": (
        side(x=on(X86, SBSA), y={}),
        side(x={}),
        "platforms:|linux-sbsa: no archives any more (of x)|gone:|y",
    ),
    "new platform": (side(x={}), side(x=on(X86, SBSA)), "platforms:|linux-sbsa: new (in x)|1"),
    "rename by policy": (
        side(cuda_cccl={}),
        side(cccl=x(version="1.1")),
        "renamed:|cuda_cccl 1.0 -> cccl 1.1|2 packages differ",
    ),
    "split by policy": (
        side(cuda_nvcc={}),
        SPLIT,
        "may break:|cuda_nvcc split: cuda_crt, libnvvm|added:|"
        "cuda_crt 1.0 (linux-x86_64) from cuda_nvcc|libnvvm",
    ),
    "merger by policy": (
        SPLIT,
        side(cuda_nvcc={}),
        "gone:|cuda_crt 1.0 (linux-x86_64) now in cuda_nvcc|libnvvm",
    ),
    "replaced by its parts": (
        side(cuda_nvcc={}),
        side(cuda_crt={}, libnvvm={}),
        "gone:|cuda_nvcc 1.0 (linux-x86_64) split: cuda_crt, libnvvm|added:",
    ),
    "rename by content": (
        with_files(x="a/1 a/2"),
        with_files(y="a/1 a/3"),
        "renamed:|x 1.0 -> y 1.0|2 packages differ",
    ),
    "files of a renamed package": (
        with_files(cuda_cccl="include/a"),
        with_files(cccl="include/a"),
        "renamed:|cuda_cccl 1.0 -> cccl 1.0|2 packages differ",
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), SECTIONS.values(), ids=SECTIONS)
def test_changes_are_in_sections(old: Comparable, new: Comparable, expected: str) -> None:
    lines = list(diff_text(compare(old, new, NAMES)))[1:]
    assert "|".join(line.strip() for line in lines).startswith(expected)


def test_changes_of_platforms_and_bytes_are_in_report_and_markdown() -> None:
    old, new, _ = SECTIONS["platform gone next to a nested one"]
    gone = Delta(field="platforms", places=(), gone=("linux-ppc64le",))
    assert compare(old, new).platforms == gone
    assert compare(*SECTIONS["nested platforms"][:2]).platforms is None
    many = compare(*SECTIONS["platform lost by many packages"][:2])
    assert len([delta for package in many.packages for delta in package.deltas]) == 5
    markdown = list(diff_markdown(compare(*SECTIONS["other bytes"][:2])))
    assert "**Warning: other bytes under the same version**" in markdown
    assert compare(*SECTIONS["files of a renamed package"][:2], NAMES).moves


HASHES = {"sha256": "0" * 64, "sri": sri_of("0" * 64), "md5": "0" * 32}
RUNFILE = blank(Runfile, name="cuda_12.9.1_linux.run", driver="575.57.08", size=1, **HASHES)
NEWER = {"version": "580", "source": "a guide"}
DRIVER = {
    "published": {"version": "575.57.08", "source": "a manifest"},
    "lowest": {"version": "525", "source": "a guide"},
}
UNPUBLISHED = DRIVER | {"published": None}


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (
            {"driver": DRIVER},
            {"driver": DRIVER | {"published": None}},
            ["driver: 575.57.08 -> none"],
        ),
        ({"driver": DRIVER}, {"driver": DRIVER | {"lowest": NEWER}}, ["lowest driver: 525 -> 580"]),
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
    places = {"a": {"1.0": {X86: "a/linux-x86_64/a-1.0.tar.gz"}}}
    early = of_manifest("a", read_manifest(json.dumps(places).encode()))
    with_hash = manifest(packages=("a",), platforms=(X86,), versions={"a": "1.0"})
    later = of_manifest("b", read_manifest(with_hash))
    for old, new in ((early, later), (later, early)):
        assert "sha256" not in "\n".join(diff_text(compare(old, new)))


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
    old, new = with_files(a="x/1 x/2"), with_files(a="x/1", b="x/2 x/3 x/4")
    report = compare(old, new)
    assert [package.origin for package in report.packages] == [None]
    assert [(move.old, move.new) for move in report.moves] == [("a", "b")]
    # A package with unknown files has no moves.
    del new.files["a"]
    assert compare(old, new).moves == ()


@pytest.mark.parametrize(
    ("old", "new", "is_listed"),
    [("100", "109", False), ("109", "100", False), ("100", "111", True), ("111", "100", True)],
)
def test_large_size_changes_of_other_versions_are_listed(
    old: str, new: str, *, is_listed: bool
) -> None:
    before = side(x=x(X86, archive_size=old))
    line = f"      archive size [linux-x86_64]: {old} bytes -> {new} bytes"
    for version, expected in (("2.0", is_listed), ("1.0", True)):
        after = side(x=x(X86, archive_size=new, version=version))
        assert (line in list(diff_text(compare(before, after)))) is expected


def test_sizes_of_commit_have_a_line_for_each_platform() -> None:
    old = side(
        a=x(X86, archive_size="100"),
        b=x(X86, size="100", archive_size="10"),
        c=x(X86, size="100"),
    )
    new = side(
        a=x(X86, archive_size="50", version="2"),
        b=x(X86, size="200", archive_size="90", version="2"),
        c=x(X86, size="101"),
    )
    assert list(diff_text(compare(old, new), is_commit=True))[1:] == [
        "changed:",
        "  a 1.0 -> 2",
        "  b 1.0 -> 2",
        "  c",
        "      size [linux-x86_64]: 100 bytes -> 101 bytes",
        "sizes:",
        "  linux-x86_64: a -50%, b +100%",
        "3 packages differ, 0 are equal",
    ]
