"""Tests of toolkit plans: selection, package trees and the merged tree."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support import binaries
from support.cost import calls
from support.toolkits import MadeSet

from cudaredist.archives.members import MemberKind
from cudaredist.commands.materialize.merge import Content, Plan, make_plan
from cudaredist.commands.materialize.options import TreeName
from cudaredist.errors import (
    ConflictError,
    ContentError,
    InvalidArchiveError,
    UnsafePathError,
    UsageError,
)
from cudaredist.features.facts import Entry
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.formats.toolkit_record import ComponentSet
from cudaredist.primitives import Platform
from cudaredist.sets.components import select
from cudaredist.sets.package_tree import PackageTree, make_tree, with_origins
from cudaredist.sets.pkgconfig import relocatable
from cudaredist.sets.request_options import ComponentOptions

LINUX, WINDOWS = Platform("linux-x86_64"), Platform("windows-x86_64")
ONE_FILE = {"x": {0: Content(Path("1"), "1", 1)}}
SHARED = binaries.read(binaries.elf(soname="libx.so.1"))
PROGRAM = binaries.read(binaries.elf(kind="program", needed=("libc.so.6",)))
OPTIONS = ComponentOptions("--component", "--exclude")
SETS = {
    "compiler": ComponentSet(
        packages=("nvcc", "crt"), programs=("nvcc",), reason="to compile", reference="a test"
    )
}


def entry(name: str, target: str | None = None, kind: MemberKind = "file", **more: Any) -> Entry:
    if target is not None:
        kind = "symlink"
    return Entry(name=f"top/{name}" if name else "top", kind=kind, target=target, **more)


def members(*names: str, links: Mapping[str, str] | None = None) -> list[Entry]:
    files = [entry(name, binary=SHARED if ".so" in name else None) for name in names]
    return [*files, *(entry(name, target) for name, target in (links or {}).items())]


def package(attr: str = "x", outputs: Sequence[str] = ("out",), *changes: Any) -> SetPackage:
    made_set = MadeSet()
    made_set.add(attr, {"LICENSE": b"x"}, normalise=changes, outputs=list(outputs))
    return PackageSet.model_validate_json(json.dumps(made_set.document())).packages[attr]


def tree_of(
    entries: list[Entry], *changes: Any, split: bool = False, outputs: Sequence[str] = ("out",)
) -> PackageTree:
    return make_tree(
        "an archive", with_origins(entries), package("x", outputs, *changes), is_split=split
    )


def lift(
    source: str, to: str | None, op: str = "lift", *, split_only: bool = False
) -> dict[str, object]:
    return {"op": op, "from": source, "to": to, "split_only": split_only}


# -- package trees


def test_lib_folder_of_cuda_release_replaces_lib() -> None:
    entries = members(
        *("lib/11/libx.so.1", "lib/12/libx.so.1", "lib/12/stubs/liby.so", "lib/cmake/x.cmake"),
        links={
            "lib/12/libx.so": "libx.so.1",
            "lib/11/libx.so": "libx.so.1",
            "lib/libx.so": "12/libx.so.1",
            "lib/latest": "12",
            "bin/old": "../lib/11/libx.so.1",
        },
    )
    for split in (False, True):
        tree = tree_of(entries, lift("lib/12", "lib"), split=split)
        assert set(tree.files) == {"lib/libx.so.1", "lib/stubs/liby.so"}
        assert tree.links == {"lib/libx.so": "lib/libx.so.1"}


def test_top_level_files_are_moved_to_own_folder() -> None:
    entries = members("LICENSE", "EULA.txt", "README", ".metadata/x", "lib/libx.so.1")
    tree = tree_of([*entries, entry("lib64", "lib"), entry("LICENCE", "LICENSE")])
    assert set(tree.files) == {
        "share/licenses/x/LICENSE",
        "share/licenses/x/EULA.txt",
        "share/doc/x/README",
        "share/doc/x/.metadata/x",
        "lib/libx.so.1",
    }
    assert tree.links == {"lib64": "lib", "share/licenses/x/LICENCE": "share/licenses/x/LICENSE"}


def test_split_only_changes_are_skipped_in_merged_layout() -> None:
    entries = members("nvvm/bin/cicc", "include/cccl/nv/a.h", "include/nv/a.h", "include/b.h")
    entries += [entry("include/old", "cccl/nv"), entry("include/all", "cccl")]
    changes = (lift("nvvm", ".", split_only=True), lift("include/cccl", "include", split_only=True))
    merged = tree_of(entries, *changes)
    assert "nvvm/bin/cicc" in merged.files
    assert merged.links == {"include/old": "include/cccl/nv", "include/all": "include/cccl"}
    split = tree_of(entries, *changes, split=True)
    assert set(split.files) == {"bin/cicc", "include/nv/a.h", "include/b.h"}
    # A lifted folder replaces the existing one, and links to it lead to the new folder.
    assert split.files["include/nv/a.h"].name == "top/include/cccl/nv/a.h"
    assert split.links == {"include/old": "include/nv", "include/all": "include"}


def test_dropped_files_remove_links_to_them() -> None:
    entries = members("lib/x_win.so", "lib/stubs/libx.so", "lib/libx.so", "share/a")
    entries += [entry("lib/y.so", "x_win.so"), entry("lib/z.so", "libx.so")]
    tree = tree_of(
        entries,
        {"op": "drop", "from": "lib/*_win*"},
        {"op": "drop", "from": "lib/stubs"},
        lift("share/a", "share/b", "symlink"),
        split=True,
    )
    assert set(tree.files) == {"lib/libx.so", "share/a"}
    assert tree.links == {"lib/z.so": "lib/libx.so", "share/b": "share/a"}


def test_pattern_lifts_contents_of_matching_folders() -> None:
    entries = members("targets/a-linux/lib/liba.so", "targets/b-linux/lib/libb.so", "targets/c")
    tree = tree_of(entries, lift("targets/*", "."), split=True)
    assert set(tree.files) == {"lib/liba.so", "lib/libb.so", "targets/c"}
    tree = tree_of(members("nvvm/lib64/a.so"), lift("nvvm/lib64", "nvvm/lib", "rename"), split=True)
    assert set(tree.files) == {"nvvm/lib/a.so"}


def test_general_changes_apply_to_both_layouts() -> None:
    entries = members("include/a.h", "bin/x", "x86/lib.so")
    for changes, split, expected in (
        ([lift("include", "x/include", "rename")], False, {"x/include/a.h", "bin/x", "x86/lib.so"}),
        ([lift("include", "x/include", "rename")], True, {"x/include/a.h", "bin/x", "x86/lib.so"}),
        ([lift("x86", None, "drop")], False, {"include/a.h", "bin/x"}),
        ([lift("include", ".", split_only=True)], False, {"include/a.h", "bin/x", "x86/lib.so"}),
    ):
        assert set(tree_of(entries, *changes, split=split).files) == expected


def test_pkg_config_files_have_links_without_version() -> None:
    entries = members("pkg-config/x-12.9.pc", "pkg-config/x-12.10.pc", "pkgconfig/y-1.pc")
    entries += members("lib/pkgconfig/z.pc", "lib/pkgconfig/w-beta.pc", "v-1.pc")
    tree = tree_of(entries, split=True, outputs=("out", "dev"))
    assert tree.links == {
        "share/pkgconfig/x.pc": "share/pkgconfig/x-12.10.pc",
        "share/pkgconfig/y.pc": "share/pkgconfig/y-1.pc",
        "share/doc/x/v.pc": "share/doc/x/v-1.pc",
    }
    assert tree.outputs["share/pkgconfig/x.pc"] == "dev"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("../../x"), "unsafe name"),
        (Entry(name="/etc/passwd", kind="file"), "unsafe name"),
        (entry("a\\b"), "unsafe name"),
        (entry("lib/x", "../../../etc"), "link leaves the archive"),
        (entry("lib/x", "/etc/passwd"), "link leaves the archive"),
        (entry("lib/x", "y"), None),
        (entry("dev", kind="other"), "neither file"),
        (entry("bin/x", mode=0o4755), "set-id bit"),
        (entry("bin/x", mode=0o2755), "set-id bit"),
    ],
)
def test_archive_with_unsafe_member_is_refused(bad: Entry, reason: str | None) -> None:
    entries = [*members("include/a.h"), bad]
    if reason is None:
        assert tree_of(entries).links == {}
        return
    with pytest.raises(InvalidArchiveError, match=f"an archive: cannot be installed: {reason}"):
        tree_of(entries)


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "nvidia/x/../../../y", "nvidia/../../y"])
def test_unsafe_name_in_wheel_is_refused_despite_prefix(name: str) -> None:
    names = ["x-1.dist-info/WHEEL", "nvidia/x/include/a.h", name]
    entries = [Entry(name=name, kind="file") for name in names]
    with pytest.raises(InvalidArchiveError, match="unsafe name"):
        tree_of(entries)


def test_programs_are_recognized_by_mode_or_content() -> None:
    entries = [
        entry("bin/a", mode=0o755),
        entry("bin/b", binary=PROGRAM),
        entry("lib/c.o", binary=PROGRAM),
        entry("lib/libd.so", binary=SHARED),
        entry("bin/e.profile", mode=0o644),
    ]
    plan = plan_of({"x": entries})
    assert [path for path, file in plan.files.items() if file.executable] == ["bin/a", "bin/b"]


# -- merged trees


def plan_of(
    packages: Mapping[str, list[Entry]],
    hashes: Mapping[str, Sequence[str]] | None = None,
    *,
    layout: TreeName = "merged",
    static: bool = True,
    outputs: Sequence[str] = ("out",),
    platform: Platform = LINUX,
) -> Plan:
    is_split = layout == "split"
    trees = {
        attr: make_tree(attr, with_origins(entries), package(attr, outputs), is_split=is_split)
        for attr, entries in packages.items()
    }
    contents = {
        attr: contents_of((hashes or {}).get(attr, [e.name for e in entries]))
        for attr, entries in packages.items()
    }
    return make_plan(trees, contents, layout=layout, with_static=static, platform=platform)


def contents_of(hashes: Sequence[str]) -> dict[int, Content]:
    return {position: Content(Path(sha256), sha256, 1) for position, sha256 in enumerate(hashes)}


def test_same_file_in_two_packages_is_merged() -> None:
    entries = members("LICENSE", "include/a.h")
    program = [entry("LICENSE"), entry("include/a.h", mode=0o755)]
    plan = plan_of({"x": entries, "y": program}, {"x": ["1", "2"], "y": ["3", "2"]})
    assert {path: file.package for path, file in plan.files.items()} == {
        "share/licenses/x/LICENSE": "x",
        "include/a.h": "x",
        "share/licenses/y/LICENSE": "y",
    }
    assert plan.files["include/a.h"].executable


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        (members("include/a.h"), members("include/a.h"), "include/a.h"),
        (members("include/a.h"), members("b", links={"include/a.h": "../b"}), "include/a.h"),
        (members("b/c", links={"include/a.h": "../b/c"}), members("include/a.h"), "include/a.h"),
        (
            members("b/c", "b/d", links={"lib/a": "../b/c"}),
            members("e/f", links={"lib/a": "../e/f"}),
            "lib/a",
        ),
        (members("include/a"), members("include/a/b.h"), "include/a"),
        (members("include/a/b.h"), members("c/d", links={"include/a": "../c"}), "include/a"),
        (members("lib/a.so"), members("lib64/a.so"), "lib/a.so"),
    ],
)
def test_conflicting_files_name_both_packages(
    first: list[Entry], second: list[Entry], path: str
) -> None:
    hashes = {"one": [f"1-{n}" for n in range(9)], "two": [f"2-{n}" for n in range(9)]}
    with pytest.raises(
        ConflictError, match=f"{path} differs between (one|two) and (one|two)"
    ) as raised:
        plan_of({"one": first, "two": second}, hashes)
    assert raised.value.exit_code == 5
    assert "--exclude" in (raised.value.hint or "")
    assert len(plan_of({"one": first, "two": second}, hashes, layout="split").files) > 1


def targets(plan: Plan) -> dict[str, str]:
    return {path: link.target for path, link in plan.links.items()}


def test_linux_libraries_are_in_lib_and_lib64_is_a_link() -> None:
    entries = {
        "one": members("lib64/liba.so.1", links={"lib64/liba.so": "liba.so.1", "lib": "lib64"}),
        "two": members("lib/libb.so.1", "nvvm/lib/libnvvm.so", links={"lib64": "lib"}),
    }
    plan = plan_of(entries)
    assert set(plan.files) == {"lib/liba.so.1", "lib/libb.so.1", "nvvm/lib/libnvvm.so"}
    assert targets(plan) == {"lib/liba.so": "liba.so.1", "lib64": "lib", "nvvm/lib64": "lib"}
    assert plan.links["nvvm/lib64"].package == "two"
    only_64 = plan_of({"one": members("nvvm/lib64/libnvvm.so")})
    assert not only_64.links
    assert "lib64" not in plan_of({"two": members("lib/x64/b.lib")}, platform=WINDOWS).links


@pytest.mark.parametrize(("own", "other"), [("lib", "lib64"), ("lib64", "lib")])
def test_link_to_same_path_in_other_library_folder_is_left_out(own: str, other: str) -> None:
    """Both folders are `lib` in the merged layout, so the link would be one to itself."""
    links = {f"{other}/liba.so.1": f"../{own}/liba.so.1", f"{other}/stubs": f"../{own}/stubs"}
    entries = members(f"{own}/liba.so.1", f"{own}/stubs/liba.so", links=links)
    plan = plan_of({"x": entries})
    assert set(plan.files) == {"lib/liba.so.1", "lib/stubs/liba.so"}
    assert targets(plan) == {"lib64": "lib"}
    split = plan_of({"x": entries}, layout="split")
    assert {f"x/out/{link}" for link in links} == set(split.links)


def test_libnvvm_of_wheel_has_link_in_folder_of_nvlink() -> None:
    library = members("lib/libnvvm.so.4", links={"lib/libnvvm.so": "libnvvm.so.4"})
    other = members("lib/libb.so.1")
    plan = plan_of({"libnvvm": [*library, *members("nvvm/bin/cicc")], "two": other})
    end = "../../lib/libnvvm.so.4"
    assert targets(plan) == {
        "lib/libnvvm.so": "libnvvm.so.4",
        "lib64": "lib",
        "nvvm/lib64/libnvvm.so": end,
        "nvvm/lib64/libnvvm.so.4": end,
    }
    # A root without the compiler has no such folder.
    assert "nvvm/lib64/libnvvm.so" not in plan_of({"libnvvm": library}).links
    archive = members("nvvm/lib64/libnvvm.so.4", links={"nvvm/lib64/libnvvm.so": "libnvvm.so.4"})
    assert targets(plan_of({"libnvvm": archive})) == {"nvvm/lib64/libnvvm.so": "libnvvm.so.4"}


def test_no_static_removes_static_libraries_and_links() -> None:
    entries = members("lib/liba.so", "lib/liba_static.a", links={"lib/b.a": "liba_static.a"})
    outputs = ("out", "lib", "static")
    assert "lib/b.a" in plan_of({"x": entries}, outputs=outputs).links
    plan = plan_of({"x": entries}, outputs=outputs, static=False)
    assert set(plan.files) == {"lib/liba.so"}
    assert targets(plan) == {"lib64": "lib"}
    # A collapsed package keeps its static libraries.
    assert "lib/liba_static.a" in plan_of({"x": entries}, static=False).files


def test_links_between_outputs_are_relative() -> None:
    entries = members(
        "lib/liba.so.1",
        "lib/liba_static.a",
        "bin/a",
        links={"lib64": "lib", "bin/liba.so": "../lib/liba.so.1", "lib/alib": "liba_static.a"},
    )
    plan = plan_of({"x": entries}, layout="split", outputs=("out", "bin", "lib", "static"))
    assert targets(plan) == {
        "x/lib/lib64": "lib",
        "x/lib/bin/liba.so": "../lib/liba.so.1",
        "x/static/lib/alib": "liba_static.a",
    }


@pytest.mark.parametrize(
    "path",
    [
        *("../x", "a/../../b", "/a", "a//b", "a\nb", ".", "C:a", "C:/a", "version.json"),
        *(".cudaredist.json/x", "version.json/x"),
    ],
)
def test_path_outside_root_or_of_own_file_is_refused(path: str) -> None:
    tree = PackageTree({path: entry("x", origin=0)}, {}, {path: "out"})
    with pytest.raises(ContentError):
        make_plan({"x": tree}, ONE_FILE, layout="merged", with_static=True, platform=LINUX)


# -- pkg-config

PC = b"""cudaroot=/usr/local/cuda-13.0
libdir=${cudaroot}/targets/x86_64-linux/lib/stubs
includedir = ${cudaroot}/targets/x86_64-linux/include\r

Name: cuda
Libs: -L${libdir} -lcuda
"""


@pytest.mark.parametrize(
    ("path", "package", "files", "lib", "include"),
    [
        ("share/pkgconfig/x.pc", None, "", "lib", "include"),
        (
            *("x/dev/share/pkgconfig/x.pc", "x", "x/lib/lib/a.so x/dev/include/a.h x/out/b"),
            *("../../x/lib/lib", "../../x/dev/include"),
        ),
        ("x/out/share/pkgconfig/x.pc", "x", "", "../../x/out/lib", "../../x/out/include"),
    ],
)
def test_pkg_config_paths_are_relocatable(
    path: str, package: str | None, files: str, lib: str, include: str
) -> None:
    root = "${pcfiledir}/../.."
    assert relocatable(PC, path, package, files.split()).decode() == (
        f"cudaroot={root}\nlibdir={root}/{lib}/stubs\nincludedir = {root}/{include}\r\n\n"
        "Name: cuda\nLibs: -L${libdir} -lcuda\n"
    )


# -- selection


@pytest.fixture
def made_set() -> MadeSet:
    made_set = MadeSet()
    made_set.add("nvcc", {"bin/nvcc": b"x"}, depends=["cart"])
    made_set.add("cart", {"lib/a.so": b"x"}, depends=["nvcc", "cccl"])
    made_set.add("cccl_13", {"include/a.h": b"x"})
    made_set.alias("cccl", "cccl_13")
    made_set.add("cublas", {"lib/a.so": b"x"})
    made_set.add("cublas_12", {"lib/a.so": b"x"}, pname="cublas")
    made_set.refuse("driver", "not published for this platform")
    made_set.refuse("crt", "marked so", status="broken")
    return made_set


def selection(made_set: MadeSet, *components: str, exclude: Sequence[str] = ()) -> list[str]:
    package_set = PackageSet.model_validate_json(json.dumps(made_set.document()))
    return list(select(package_set, components, exclude, SETS, OPTIONS).packages)


def test_selection_includes_dependencies(made_set: MadeSet) -> None:
    assert selection(made_set) == ["cart", "cccl_13", "cublas", "nvcc"]
    assert selection(made_set, "all", "cublas_12") == [
        *selection(made_set)[:3],
        "cublas_12",
        "nvcc",
    ]
    assert selection(made_set, "cccl") == ["cccl_13"]
    assert selection(made_set, "compiler") == ["cart", "cccl_13", "nvcc"]
    assert selection(made_set, "compiler", exclude=["cccl", "crt"]) == ["cart", "nvcc"]
    assert selection(made_set, "cart", exclude=["nvcc"]) == ["cart", "cccl_13"]


def test_component_requires_its_programs_unless_excluded(made_set: MadeSet) -> None:
    package_set = PackageSet.model_validate_json(json.dumps(made_set.document()))
    chosen = select(package_set, ["compiler", "compiler"], (), SETS, OPTIONS)
    assert chosen.required == (SETS["compiler"],)
    assert chosen.warnings[0] == "compiler will not include crt, which is broken: marked so"
    assert select(package_set, ["compiler", "cublas"], ["nvcc"], SETS, OPTIONS).required == ()


@pytest.mark.parametrize(
    ("components", "exclude", "words"),
    [
        (["cublass"], [], "no component is called 'cublass'"),
        (["nvcc"], ["cublass"], "no package is called 'cublass'"),
        (["driver"], [], "driver is unsupported: not published for this platform"),
        (["crt"], [], "crt is broken: marked so"),
        (["cublas"], ["cublas"], "no packages selected"),
    ],
)
def test_invalid_selection_is_refused(
    made_set: MadeSet, components: list[str], exclude: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        selection(made_set, *components, exclude=exclude)
    if "called" in words:
        assert "cublas" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depends": [{"attr": "driver", "output": "lib", "kind": "runtime"}]}, "not published"),
        ({"depends": [{"attr": "gone", "output": "lib", "kind": "runtime"}]}, "not in the set"),
    ],
)
def test_set_with_missing_dependency_is_refused(made_set: MadeSet, change: Any, words: str) -> None:
    made_set.packages["cublas"] |= change
    with pytest.raises(UsageError, match=f"cublas requires .*, which is not available: .*{words}"):
        selection(made_set, "cublas")


def test_component_without_packages_is_refused(made_set: MadeSet) -> None:
    made_set.refuse("nvcc", "no wheel")
    with pytest.raises(UsageError, match="no package of component compiler") as raised:
        selection(made_set, "compiler")
    assert "nvcc, crt" in (raised.value.hint or "")


def test_links_to_folders_take_linear_work() -> None:
    def work(count: int) -> int:
        entries = [
            *(entry(f"share/folder{n}/file") for n in range(count)),
            *(entry(f"share/link{n}", f"folder{n}") for n in range(count)),
            *(entry(f"share/through{n}", f"link{n}") for n in range(count)),
        ]

        def create() -> None:
            tree = tree_of(entries)
            assert len(tree.links) == 2 * count
            contents = {"x": contents_of(["hash"] * len(entries))}
            make_plan({"x": tree}, contents, layout="split", with_static=True, platform=LINUX)

        return calls(create)

    assert work(1000) < 11 * work(100)


def test_link_to_folder_has_output_of_first_path() -> None:
    entries = members(
        "include/z.h", "lib/libx.so", links={"a": "include", "m/l": "../lib/libx.so", "n": "m"}
    )
    tree = tree_of(entries, outputs=("out", "dev", "lib", "include"))
    assert tree.outputs["a"] == "include"
    assert tree.outputs["n"] == "lib"


def test_tree_change_to_absolute_path_is_refused() -> None:
    with pytest.raises(ValidationError, match="normalise"):
        tree_of(members("lib/libx.so.1"), {"op": "rename", "from": "lib", "to": "/etc"})


def test_tree_change_to_unprintable_path_is_refused() -> None:
    change = {"op": "rename", "from": "lib", "to": "lib\u2028"}
    tree = tree_of(members("lib/libx.so.1", links={"lib/libx.so": "libx.so.1"}), change)
    contents = {"x": contents_of(["1"] * 2)}
    with pytest.raises(UnsafePathError):
        make_plan({"x": tree}, contents, layout="merged", with_static=True, platform=LINUX)
