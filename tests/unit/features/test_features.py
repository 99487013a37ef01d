"""Tests of features derived from facts: trees, outputs, libraries and device code."""

import io
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import archives
from support.cost import bounded_cost, calls
from support.facts import gathered

from cudaredist.archives.open_archive import open_archive
from cudaredist.binaries.file_facts import Binary, CodeSection, DeviceImages
from cudaredist.features.archive_tree import build_tree
from cudaredist.features.derive import derive
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.features.placement import place_all
from cudaredist.formats.features import ArchiveFeatures, FileCode

SHARED = Binary(kind="elf", machine="x86_64", is_shared=True, soname="libx.so.1")
PROGRAM = Binary(kind="elf", machine="x86_64", needed=("libc.so.6",))
DLL = Binary(kind="pe", machine="x86_64", is_shared=True, soname="x.dll")
STATIC = Binary(kind="ar", machine="x86_64", objects=3)
IMPORTS = Binary(kind="ar", machine="x86_64", objects=31, imports=28)
SCRIPT = Binary(kind="script", needed=("libx.so.1",))


def file(name: str, binary: Binary | None = None, **more: Any) -> Entry:
    more.setdefault("size", len(name))
    return Entry(name=f"top/{name}", kind="file", binary=binary, **more)


def link(name: str, target: str) -> Entry:
    return Entry(name=f"top/{name}", kind="symlink", target=target)


def features(*members: Entry) -> ArchiveFeatures:
    return derive(Facts(schema=FACTS_SCHEMA, members=members))


def outputs(*members: Entry) -> set[str]:
    return {name for name, size in features(*members).outputs.items() if size.files}


# -- trees


def test_drive_below_top_directory_is_skipped_with_note() -> None:
    tree = build_tree([file("LICENSE"), file("C:x"), file("std::x")])
    assert set(tree.files) == {"LICENSE", "std::x"}
    assert tree.unsafe == ["unsafe name: 'top/C:x'"]


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("top/../../x", "unsafe name: 'top/../../x'"),
        ("/etc/passwd", "unsafe name: '/etc/passwd'"),
        ("top/a\\b", r"unsafe name: 'top/a\\b'"),
        ("C:/x", "unsafe name: 'C:/x'"),
        ("top/a\nb", r"unsafe name: 'top/a\nb'"),
        ("top/" + "d/" * 64 + "x", "unsafe name: "),
        (f"top/{'x' * 2000}", "unsafe name: "),
    ],
)
def test_unsafe_names_are_skipped_with_note(name: str, note: str) -> None:
    tree = build_tree([file("LICENSE"), Entry(name=name, kind="file", size=1)])
    assert set(tree.files) == {"LICENSE"}
    assert len(tree.notes) == 1
    assert tree.notes[0].startswith(note)


DETOUR = "x/../" * 150


def chains(length: int) -> list[Entry]:
    """Return 400 links in chains of a given length."""
    targets = ["../file" if n % length == 0 else f"link{n - 1}" for n in range(400)]
    links = [link(f"d/link{n}", DETOUR + target) for n, target in enumerate(targets)]
    return [file("file"), *links]


def test_chained_links_cost_no_more_than_direct_ones() -> None:
    direct = calls(partial(build_tree, chains(1)))
    for members in (chains(39), chains(400), chains(400)[::-1]):
        assert calls(partial(build_tree, members)) < 1.5 * direct


@pytest.mark.parametrize("order", [1, -1])
def test_number_of_links_in_one_path_is_limited(order: int) -> None:
    tree = build_tree(chains(400)[::order])
    assert tree.links == dict.fromkeys([f"d/link{n}" for n in range(39)], "file")
    assert len(tree.unsafe) == 361
    # Each link follows all links of the previous one twice.
    doubling = [link(f"link{n}", f"link{n - 1}/../link{n - 1}") for n in range(1, 9)]
    tree = build_tree([file("d/file"), link("link0", "d"), *doubling][::order])
    assert set(tree.links) == {f"link{n}" for n in range(5)}
    assert len(tree.unsafe) == 4


def test_circular_links_take_linear_work() -> None:
    def work(count: int) -> int:
        links = [link(f"link{n}", f"link{(n + 1) % count}") for n in range(count)]
        return calls(lambda: build_tree(links))

    assert work(4000) < 11 * work(400)


LEAVES = "link leaves the archive or is circular: "


def members_of(text: str) -> list[Entry]:
    """Parse `a b->c d=e`: a file, a link to c, and a hard link to the member e."""
    entries = []
    for word in text.split():
        name, link_sign, target = word.partition("->")
        path, hard_sign, member = name.partition("=")
        if hard_sign:
            entries.append(Entry(name=f"top/{path}", kind="hardlink", target=member))
        else:
            entries.append(link(name, target) if link_sign else file(name))
    return entries


@pytest.mark.parametrize(
    ("members", "links", "notes"),
    [
        ("lib/x.1.2 lib/x.1->x.1.2", {"lib/x.1": "lib/x.1.2"}, []),
        (
            "lib/x.1 lib/b->a lib/a->../lib/x.1",  # two steps
            {"lib/a": "lib/x.1", "lib/b": "lib/x.1"},
            [],
        ),
        ("lib/x lib64->lib y->lib64/x", {"lib64": "lib", "y": "lib/x"}, []),
        ("a->b b->a", {}, [f"{LEAVES}a", f"{LEAVES}b"]),
        ("LICENSE x->/etc/passwd", {}, [f"{LEAVES}x"]),
        ("LICENSE x->../../x", {}, [f"{LEAVES}x"]),
        ("LICENSE x->../y", {}, [f"{LEAVES}x"]),
        ("LICENSE x->missing", {}, ["dangling link: x"]),
        (
            " ".join(["a", *(f"l{n}->l{n + 1}" for n in range(30)), "l30->a"]),
            {f"l{n}": "a" for n in range(31)},
            [],
        ),
        ("a b=top/c", {}, ["dangling link: b"]),
        ("lib/a b=top/lib", {}, ["dangling link: b"]),  # only a file has hard links
        ("a b=/etc/passwd", {}, [f"{LEAVES}b"]),
    ],
)
def test_links_are_resolved_or_noted(members: str, links: dict[str, str], notes: list[str]) -> None:
    tree = build_tree(members_of(members))
    assert (tree.links, tree.notes) == (links, notes)


def test_hard_link_is_a_second_name_of_file() -> None:
    first, last = members_of("lib/first=top/lib/libx.a bin/tool=./top/lib/libx.a")
    tree = build_tree([first, file("lib/libx.a", STATIC), last])
    same = {path: (entry.size, entry.binary) for path, entry in tree.files.items()}
    assert same == dict.fromkeys(("lib/first", "lib/libx.a", "bin/tool"), (10, STATIC))
    assert not tree.notes


@pytest.mark.parametrize("name", ["share/man/man3/Foo::Bar.3", "doc/a:b.html", "doc/grün"])
def test_unusual_names_are_kept(name: str) -> None:
    assert set(build_tree([file(name)]).files) == {name}


def test_names_that_are_not_utf_8_are_escaped() -> None:
    facts = gathered(
        open_archive("x.tar", io.BytesIO(archives.tar_of(archives.tar_member(b"top/\xe9"))))
    )
    assert [entry.name for entry in facts.members] == ["top/%E9"]


@pytest.mark.parametrize(
    ("members", "paths", "notes"),
    [
        ("targets/t/lib/x.so targets/t/samples/x.c lib->targets/t/lib", "lib/x.so samples/x.c", 0),
        ("targets/a/lib/x targets/b/lib/x", "targets/a/lib/x targets/b/lib/x", 0),
        # A link selects one of two targets.
        ("targets/a/lib/x targets/b/lib/x lib->targets/b/lib", "lib/x targets/a/lib/x", 0),
        ("targets/a/lib/x lib/x", "lib/x targets/a/lib/x", 1),
        ("extras/CUPTI/lib64/x.so lib64->extras/CUPTI/lib64", "lib64/x.so", 0),
        ("lib/x.so lib64->lib", "lib/x.so", 0),
        ("a/targets/t/lib/x", "a/targets/t/lib/x", 0),
    ],
)
def test_target_folders_are_lifted_to_top(members: str, paths: str, notes: int) -> None:
    tree = build_tree(members_of(members))
    assert (sorted(tree.files), len(tree.notes)) == (paths.split(), notes)


def test_links_follow_lifted_folders() -> None:
    derived = features(
        file("targets/t/lib/libx.so.1", SHARED),
        link("targets/t/lib/libx.so", "libx.so.1"),
        link("lib", "targets/t/lib"),
    )
    assert derived.libraries[0].links == ("lib/libx.so",)


@pytest.mark.slow
def test_deep_and_wide_trees_are_read_within_cost_limit() -> None:
    deep = [file("d/" * 60 + f"{n}/x") for n in range(5000)]
    versions = [file(f"lib/{n}.{m}/x") for n in range(1, 60) for m in range(10)]
    with bounded_cost():
        derived = features(*deep, *versions)
    newest = [f"{n}.{m}" for n in range(56, 60) for m in range(10)][-32:]
    assert list(derived.cuda_versions_in_lib) == sorted(derived.unnested) == newest
    assert "lib has folders of 590 versions; only 32 were examined" in derived.notes
    assert not features(*versions[:32]).notes


@pytest.mark.parametrize(
    ("members", "paths", "notes"),
    [
        (
            members_of("a evil->/tmp evil/x"),
            {"a"},
            "is below a path that is not a folder: top/evil/x",
        ),
        ([file("bin/su", mode=0o4755)], {"bin/su"}, "set-id bit: bin/su"),
        ([Entry(name="top/dev", kind="other")], set(), "neither file, folder nor link: dev"),
        ([file("a"), file("a", size=99)], {"a"}, "duplicate name: top/a"),
    ],
)
def test_unusual_members_are_noted(members: list[Entry], paths: set[str], notes: str) -> None:
    tree = build_tree(members)
    assert (set(tree.files), notes in tree.notes) == (paths, True), tree.notes
    assert "duplicate" not in notes or tree.files["a"].size == 99, "the last one is used"


@pytest.mark.parametrize(
    ("names", "paths", "notes"),
    [
        ("top/lib/x top/a", "lib/x a", 0),
        ("./top/lib/x top//a", "lib/x a", 0),
        ("one/x two/x", "one/x two/x", 1),
        ("lib/x", "lib/x", 0),
        ("lib/x LICENSE", "lib/x LICENSE", 0),
        ("x", "x", 0),
        ("", "", 0),
    ],
)
def test_single_top_directory_is_stripped(names: str, paths: str, notes: int) -> None:
    tree = build_tree([Entry(name=name, kind="file") for name in names.split()])
    assert (list(tree.files), len(tree.notes)) == (paths.split(), notes)


def test_number_of_notes_is_limited() -> None:
    notes = features(*(Entry(name=f"/{n}", kind="file") for n in range(150))).notes
    assert len(notes) == 101
    assert notes[-1] == "and 50 more"


# -- outputs


OUTPUTS: tuple[tuple[str, Binary | None, int, str], ...] = (
    ("include", None, 0o644, "include/a.h include/b.cuh include/c.inl include/extensionless"),
    ("dev", None, 0o644, "lib/pkgconfig/x.pc share/pkgconfig/x.pc pkg-config/x-12.9.pc"),
    ("dev", None, 0o644, "lib/cmake/x/x-config.cmake share/aclocal/x.m4"),
    ("doc", None, 0o644, "share/doc/x/README share/gtk-doc/x share/devhelp/x doc/README"),
    ("doc", None, 0o644, "docs/index.html"),
    ("lib", SHARED, 0o644, "lib/libx.so.1 lib64/libx.so.1 lib/plugins/odd-name"),
    ("lib", SCRIPT, 0o644, "lib/libx.so"),
    ("lib", IMPORTS, 0o644, "lib/x64/x.lib"),
    ("static", STATIC, 0o644, "lib/x86_64/libx.a lib/x64/x.lib"),
    ("static", None, 0o644, "lib/libx.a lib/x64/x.lib"),
    ("static", replace(IMPORTS, objects=32), 0o644, "lib/x64/x.lib"),
    ("bin", DLL, 0, "bin/x64/x.dll"),
    ("bin", PROGRAM, 0o755, "bin/tool"),
    ("bin", None, 0o755, "bin/script"),
    ("bin", None, 0, "bin/x.dll bin/tool.exe bin/tool.bat bin/tool.cmd bin/tool.ps1 bin/tool.com"),
    ("stubs", SHARED, 0o644, "lib/stubs/libcuda.so stubs/libcuda.so lib64/stubs/libcuda.so"),
    ("stubs", STATIC, 0o644, "lib/stubs/x.a"),
    ("lib", SHARED, 0o644, "targets/x86_64-linux/lib/libx.so.1"),
    ("include", None, 0o644, "targets/x86_64-linux/include/x.h"),
    ("bin", PROGRAM, 0o755, "targets/x86_64-linux/bin/x"),
    ("lib", SHARED, 0o755, "targets/x86_64-linux/lib64/x.so"),
    ("stubs", SHARED, 0o755, "targets/x86_64-linux/stubs/x.so"),
    ("python", None, 0o644, "python/x-1.0-py3-none-any.whl"),
    ("samples", None, 0o644, "samples/x/main.cu"),
    ("out", None, 0o644, "share/info/x share/man/man1/x.1 bin/README.txt lib/README.txt"),
    ("out", None, 0o644, "LICENSE x.a src/x.c"),
    ("out", SHARED, 0o644, "nvvm/lib64/libnvvm.so"),
)


@pytest.mark.parametrize(
    ("path", "binary", "mode", "output"),
    [(path, binary, mode, out) for out, binary, mode, all_ in OUTPUTS for path in all_.split()],
)
def test_output_of_single_file_is_selected(
    path: str, binary: Binary | None, mode: int, output: str
) -> None:
    assert outputs(file(path, binary, mode=mode)) == {output}


@pytest.mark.parametrize(
    ("path", "with_others"),
    [
        ("share/man/man1/x.1", "bin"),
        ("share/info/x", "bin"),
        ("bin/README.txt", "bin"),
        ("lib/README.txt", "lib"),
        ("lib/x.cmake", "lib"),
    ],
)
def test_output_of_file_depends_on_declared_outputs(path: str, with_others: str) -> None:
    tree = {
        "bin/tool": file("bin/tool", PROGRAM, mode=0o755),
        "lib/libx.so.1": file("lib/libx.so.1", SHARED),
        path: file(path),
    }
    assert place_all(tree)[path].output == with_others


def test_config_file_in_lib_without_libraries_is_in_dev() -> None:
    assert outputs(file("lib/x.cmake"), file("lib/x.a", STATIC)) == {"dev", "static"}


def test_counts_and_bytes_exclude_links() -> None:
    derived = features(
        file("lib/libx.so.1.0", SHARED), link("lib/libx.so", "libx.so.1.0"), file("LICENSE")
    ).outputs
    assert {name: (size.files, size.bytes) for name, size in derived.items()} == {
        "lib": (1, 15),
        "out": (1, 7),
    }


names = (
    "bin lib lib64 include stubs share doc 12 cmake python x.a x.so x.so.1 x.h x.pc x.cmake x.whl "
    "x.lib x.dll LICENSE"
)
paths = st.lists(st.sampled_from(names.split()), min_size=1, max_size=4).map("/".join)
trees = st.dictionaries(
    paths, st.sampled_from([None, SHARED, PROGRAM, STATIC, IMPORTS, DLL, SCRIPT]), max_size=12
)


@given(trees)
def test_every_file_is_placed_in_one_output(files: Mapping[str, Binary | None]) -> None:
    tree = {path: file(path, binary) for path, binary in files.items()}
    placements = place_all(tree)
    assert placements.keys() == tree.keys()
    for path, (entry, output) in placements.items():
        assert entry is tree[path]
        alone = {p: e for p, e in tree.items() if placements[p].output != output}
        assert output == "out" or output not in {x.output for x in place_all(alone).values()}


# -- libraries, device code, and the rest


def test_libraries_list_links_and_mark_stubs() -> None:
    derived = features(
        file("lib/libx.so.1.2", SHARED),
        link("lib/libx.so.1", "libx.so.1.2"),
        link("lib/libx.so", "libx.so.1"),
        file("lib/stubs/libcuda.so", replace(SHARED, soname="libcuda.so.1")),
        file("share/stubs/liby.so", SHARED),
        file("bin/tool", PROGRAM, mode=0o755),
        file("bin/static", replace(PROGRAM, needed=()), mode=0o755),
    )
    assert [(x.path, x.output, x.soname, x.links, x.stub) for x in derived.libraries] == [
        ("lib/libx.so.1.2", "lib", "libx.so.1", ("lib/libx.so", "lib/libx.so.1"), False),
        ("lib/stubs/libcuda.so", "stubs", "libcuda.so.1", (), True),
        ("share/stubs/liby.so", "out", "libx.so.1", (), False),
    ]
    assert [(x.path, x.output, x.needed) for x in derived.programs] == [
        ("bin/tool", "bin", ("libc.so.6",))
    ]
    assert derived.machine == "x86_64"


def test_unread_fields_are_listed_per_binary() -> None:
    derived = features(
        file("lib/a.so", replace(SHARED, unread=("needed",))),
        file("lib/b.so", SHARED),
        file("bin/x", replace(PROGRAM, needed=(), unread=("needed", "glibc"))),
    )
    assert [library.unread for library in derived.libraries] == [("needed",), ()]
    assert [program.unread for program in derived.programs] == [("needed", "glibc")]
    assert "unread" not in derived.libraries[1].model_dump()


def test_binaries_for_several_machines_are_noted() -> None:
    derived = features(
        file("lib/a.so", SHARED), file("target/b.so", replace(SHARED, machine="aarch64"))
    )
    assert derived.machine is None
    assert derived.notes == ("binaries for several machines: aarch64 (1), x86_64 (1)",)


def test_notes_of_binaries_name_file() -> None:
    derived = features(file("lib/a.so", replace(SHARED, notes=("odd",))))
    assert derived.notes == ("lib/a.so: odd",)


def test_device_code_is_grouped_by_folder_and_kind() -> None:
    code = (
        CodeSection(
            section=".nv_fatbin",
            is_declared=True,
            counts={"sm_100": 1, "sm_75": 2, "sm_90a": 1, "sm_90": 1, "compute_120": 1},
        ),
        CodeSection(section=".data", is_declared=False, counts={"lto_75": 1, "sm_100f": 3}),
    )
    derived = features(file("lib/libx.so", replace(SHARED, device_code=code))).device_code
    assert list(derived) == ["lib"]
    assert derived["lib"].declared.sass == ("sm_75", "sm_90", "sm_90a", "sm_100")
    assert derived["lib"].declared.ptx == ("compute_120",)
    assert derived["lib"].embedded.sass == ("sm_100f",)
    assert derived["lib"].embedded.lto == ("lto_75",)


def test_device_code_is_listed_by_file_and_output() -> None:
    code = (
        CodeSection(section=".nv_fatbin", is_declared=True, counts={"sm_90": 3, "sm_100f": 1}),
        CodeSection(section=".data", is_declared=False, counts={"sm_90": 1}),
    )
    images = DeviceImages(
        sizes={"sm_90": (40, 400), "sm_100f": (0, 20)}, modules={"sm_90 sm_100f": 1, "sm_90": 3}
    )
    whole = replace(SHARED, device_code=code, images=images)
    derived = features(
        file("lib/libx.so", whole),
        file("lib/libx.a", replace(STATIC, device_code=code, images=images)),
        file("lib/liby.so", SHARED),
    )
    assert derived.code_by_file is not None
    assert {path: code.output for path, code in derived.code_by_file.items()} == {
        "lib/libx.a": "static",
        "lib/libx.so": "lib",
    }
    assert derived.code_by_file["lib/libx.so"] == FileCode(
        output="lib",
        bytes={"sm_90": 40, "sm_100f": 0},
        unpacked={"sm_90": 400, "sm_100f": 20},
        modules={"sm_90": 3, "sm_90 sm_100f": 1},
    )
    assert features(file("lib/liby.so", SHARED)).code_by_file == {}


def test_cuda_versions_in_lib_are_unnested() -> None:
    derived = features(
        file("lib/11/libx.so.1", SHARED),
        file("lib/10.2/libx.so.1", SHARED),
        file("lib64/13/libx.so.1", SHARED),
        file("lib/012/libx.so.1", SHARED),
        file("lib/12/libx.so.1", SHARED),
        file("lib/12/libx_static.a", STATIC),
        file("include/x.h"),
        file("LICENSE"),
    )
    assert derived.cuda_versions_in_lib == ("10.2", "11", "12")
    assert [x.path for x in derived.libraries] == [
        "lib/012/libx.so.1",
        "lib/10.2/libx.so.1",
        "lib/11/libx.so.1",
        "lib/12/libx.so.1",
        "lib64/13/libx.so.1",
    ]
    assert set(derived.unnested["12"]) == {"include", "lib", "out", "static"}
    assert set(derived.unnested["11"]) == {"include", "lib", "out"}
    assert derived.unnested["12"]["lib"].files == 2


def test_python_modules_and_wheels_are_listed() -> None:
    derived = features(
        file("python/x-1.0-cp312-linux_x86_64.whl"),
        file("python/y/__init__.py"),
        file("python/y/sub/__init__.py"),
        file("lib/python3.10/site-packages/z.py"),
        file("lib/python3.11/site-packages/z.so"),
        file("share/not_a_module.py"),
    )
    assert derived.python == (
        "lib/python3.10/site-packages/z.py",
        "lib/python3.11/site-packages/z.so",
        "python/x-1.0-cp312-linux_x86_64.whl",
        "python/y",
    )


# -- facts as bytes


def test_facts_round_trip_through_bytes() -> None:
    code = (CodeSection(section="", is_declared=True, counts={"sm_90": 2}),)
    facts = Facts(
        schema=FACTS_SCHEMA,
        members=(file("lib/x.so", replace(SHARED, device_code=code)), link("a", "b")),
    )
    assert facts_from_bytes(facts_to_bytes(facts)) == facts


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"[]", b"\xff"),
        b'{"schema": 0, "members": []}',
        b'{"schema": 1, "members": [], "more": 1}',
        b'{"schema": 1, "members": [{"name": "x", "kind": "file", "size": "5"}]}',
        b'{"schema": 1, "members": [{"name": "x", "kind": "file", "size": -5}]}',
    ],
)
def test_broken_facts_are_not_read(data: bytes) -> None:
    assert facts_from_bytes(data) is None


@pytest.mark.slow
def test_memory_for_many_members_is_limited() -> None:
    count = 10_000
    headers = [archives.tar_header(f"top/share/file{n}") for n in range(count)]
    file = io.BytesIO(archives.tar_of(*headers))
    tracemalloc.start()
    try:
        facts = gathered(open_archive("x.tar", file))
        after = tracemalloc.get_traced_memory()[1]
        derive(facts)
        derived = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert after / count < 300
    assert derived / count < 600
