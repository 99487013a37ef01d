"""ELF files: names, versions, sections, and what can be wrong with them."""

import shutil
import struct
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support.binaries import elf, fatbin, patched

from cudaredist.binaries.elf import ElfReader
from cudaredist.binaries.examine_file import examine
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.range_buffer import Range, Window, blocks

FULL: dict[str, Any] = {
    "soname": "libx.so.1",
    "needed": ("libb.so.2", "liba.so.1", "libb.so.2"),
    "runpath": "$ORIGIN:/opt/x",
    "glibc": ("2.9", "2.17", "2.2.5"),
    "libstdcxx": ("3.4.9", "3.4.21"),
}
LIBRARIES = [
    Path("/usr/lib", folder, name)
    for folder in ("x86_64-linux-gnu", "aarch64-linux-gnu", "")
    for name in ("libz.so.1", "libstdc++.so.6", "libc.so.6")
]


def read(data: bytes) -> Binary:
    binary = examine([data])
    assert binary is not None
    assert binary.kind == "elf"
    return binary


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("strings", ["front", "before", "behind"])
@pytest.mark.parametrize("gap", [0, 900_000])
def test_everything_is_read(bits: int, order: str, strings: str, gap: int) -> None:
    found = read(elf(**FULL, bits=bits, order=order, strings=strings, gap=gap))
    assert found == Binary(
        kind="elf",
        machine="x86_64",
        is_shared=True,
        soname="libx.so.1",
        needed=("libb.so.2", "liba.so.1", "libb.so.2"),
        runpath=("$ORIGIN", "/opt/x"),
        glibc="2.17",
        libstdcxx="3.4.21",
        # Named only by the versions that are needed of them.
        opens=("libc.so.6", "libstdc++.so.6"),
    )


@pytest.mark.parametrize(
    ("machine", "order", "expected"),
    [
        ("x86", "<", "x86"),
        ("arm", "<", "arm"),
        ("aarch64", "<", "aarch64"),
        ("ppc64le", "<", "ppc64le"),
        ("ppc64le", ">", "elf-21"),
        (8, ">", "elf-8"),
        (190, "<", None),
        (247, "<", None),
    ],
)
def test_machines(machine: str | int, order: str, expected: str | None) -> None:
    assert read(elf(machine=machine, order=order)).machine == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"kind": "shared"}, True),
        ({"kind": "pie"}, False),
        ({"kind": "pie", "soname": "x"}, False),
        ({"kind": "program"}, False),
        ({"kind": "object"}, False),
        ({"kind": "shared", "tags": [(0x6FFFFFFB, 0x08000000)]}, False),
    ],
    ids=str,
)
def test_what_is_a_shared_object(options: dict[str, Any], expected: bool) -> None:  # noqa: FBT001 - a column
    assert read(elf(**options)).is_shared is expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rpath": "/a:/b"}, ("/a", "/b")),
        ({"rpath": "/a", "runpath": "/b"}, ("/b",)),
        ({"rpath": "/a", "runpath": ""}, ()),
        ({"runpath": "::/a:"}, ("/a",)),
    ],
    ids=str,
)
def test_search_paths(options: dict[str, str], expected: tuple[str, ...]) -> None:
    assert read(elf(**options)).runpath == expected  # type: ignore[arg-type]


def test_private_versions_are_no_floor() -> None:
    found = read(elf(glibc=("PRIVATE", "ABI_DT_RELR"), libstdcxx="3.4"))
    assert (found.glibc, found.libstdcxx) == (None, "3.4")


@pytest.mark.parametrize("kind", ["shared", "program", "object"])
def test_device_code_by_section(kind: str) -> None:
    data = elf(
        kind=kind,
        sections={
            ".text": bytes(100),
            ".nv_fatbin": fatbin([("sm", 90, "a")]) * 2,
            "__nv_relfatbin": fatbin([("lto", 75, "")]),
            ".data": fatbin([("sm", 75, "")]),
        },
    )
    found = [(s.section, s.is_declared, s.counts) for s in read(data).device_code]
    assert found == [
        (".data", False, {"sm_75": 1}),
        (".nv_fatbin", True, {"sm_90a": 2}),
        ("__nv_relfatbin", True, {"lto_75": 1}),
    ]


def test_device_code_without_section_headers() -> None:
    found = read(elf(sections={".nv_fatbin": fatbin()}, has_section_headers=False))
    assert [(s.section, s.is_declared) for s in found.device_code] == [("", False)]
    assert found.notes == ("section of device code unknown: the section headers are not read",)


def test_device_code_behind_the_last_section() -> None:
    found = read(elf(soname="x") + fatbin())
    assert [(s.section, s.is_declared) for s in found.device_code] == [("", False)]


def everything(found: Binary) -> dict[str, Any]:
    """Return what was read, in the words of `FULL`."""
    return {
        "soname": found.soname,
        "needed": found.needed,
        "runpath": ":".join(found.runpath),
        "glibc": found.glibc,
        "libstdcxx": found.libstdcxx,
    }


NEWEST = FULL | {"glibc": "2.17", "libstdcxx": "3.4.21"}
NOTHING = {"soname": None, "needed": (), "runpath": "", "glibc": None, "libstdcxx": None}
NAMES = ("needed", "runpath", "soname")
VERSIONS = ("glibc", "libstdcxx")


@pytest.mark.parametrize("strings", ["front", "before", "behind"])
@pytest.mark.parametrize(
    ("text", "gap", "lost"),
    [
        (0, 11 << 20, ()),
        # Names lie behind the table of versions, and so near enough.
        (10 << 20, 20 << 20, ()),
        (13 << 20, 4 << 20, ()),
        (13 << 20, 6 << 20, ()),
        (30 << 20, 12 << 20, VERSIONS),
    ],
)
def test_tables_that_passed_long_before(
    strings: str, text: int, gap: int, lost: tuple[str, ...]
) -> None:
    data = elf(**FULL, strings=strings, gap=gap, sections={".text": bytes(text)})
    found = read(data)
    if lost and strings == "before":
        lost = (*VERSIONS, *NAMES)
    assert found.unread == tuple(sorted(lost))
    assert everything(found) == {k: NOTHING[k] if k in lost else v for k, v in NEWEST.items()}
    assert bool(found.notes) is bool(lost)
    assert all(note.endswith("it passed before its position was known") for note in found.notes)


def headers_at_the_end(data: bytes) -> bytes:
    """Let the program headers stand behind everything, as tools do that lay libraries out anew."""
    count = struct.unpack_from("<H", data, 56)[0]
    headers = data[PROGRAM : PROGRAM + 56 * count]
    moved = data[:PROGRAM] + bytes(len(headers)) + data[PROGRAM + len(headers) :]
    return patched(moved, 32, "<Q", len(moved)) + headers


@pytest.mark.parametrize("strings", ["front", "before", "behind"])
def test_a_second_pass_reads_what_the_first_missed(strings: str) -> None:
    data = headers_at_the_end(elf(**FULL, strings=strings, gap=20 << 20))
    held: list[Range] = []
    passes = []
    for _ in range(4):
        missed: list[Range] = []
        found = examine([data], held, missed)
        assert found is not None
        passes.append(found)
        if not missed:
            break
        held += missed
    assert "soname" in passes[0].unread
    assert 2 <= len(passes) <= 4
    assert passes[-1].unread == ()
    assert everything(passes[-1]) == NEWEST


def test_no_more_is_held_than_a_limit() -> None:
    window = Window()
    window.hold([(start << 20, (start + 1) << 20) for start in range(100)])
    window.feed(bytes(64 << 10))
    for _ in range(1000):
        window.feed(bytes(64 << 10))
    assert sum(map(len, window._blocks)) <= 18 << 20


def first_segment(data: bytes, size: int) -> bytes:
    """Let the first segment end early, and another begin where it ends."""
    (start, address, length) = struct.unpack_from("<QQ8xQ", data, PROGRAM + 8)
    other = struct.pack(
        "<IIQQQQQQ", 1, 6, start + size, *[address + size] * 2, *[length - size] * 2, 16
    )
    data = patched(data, PROGRAM + 32, "<Q", size)
    count = struct.unpack_from("<H", data, 56)[0]
    at = PROGRAM + 56 * count
    return patched(data, 56, "<H", count + 1)[:at] + other + data[at + 56 :]


def test_what_lies_at_the_back_of_the_first_segment() -> None:
    # So does a file whose table of names was moved to its end: the versions stayed behind the gap.
    data = elf(**FULL, strings="behind", sections={".text": bytes(25 << 20)}, gap=20 << 20)
    assert read(data).unread == VERSIONS
    apart = first_segment(data, 28 << 20)
    assert everything(read(apart)) == NEWEST
    assert read(apart).unread == ()


def with_late_headers(data: bytes) -> bytes:
    """Move the program headers behind everything, where an optimiser of linked files puts them."""
    return patched(data, 32, "<Q", len(data)) + data[PROGRAM : PROGRAM + 2 * 56]


def test_program_headers_behind_everything() -> None:
    options: dict[str, Any] = {"sections": {".text": bytes(10 << 20)}, "strings": "front"}
    near = read(with_late_headers(elf(**FULL, **options, gap=6 << 20)))
    assert (everything(near), near.unread) == (NEWEST, ())
    far = read(with_late_headers(elf(**FULL, **options, gap=8 << 20)))
    assert (everything(far), far.unread) == (NOTHING, tuple(sorted((*NAMES, *VERSIONS, "symbols"))))


def test_no_more_is_kept_than_has_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    feed = ElfReader.feed

    def feeding(self: ElfReader, block: bytes) -> None:
        feed(self, block)
        held.append(sum(map(len, self.window._blocks)) + sum(map(len, self.window._tail)))

    monkeypatch.setattr(ElfReader, "feed", feeding)
    both: tuple[dict[str, Any], ...] = ({"gap": 50 << 20}, {"sections": {".x": bytes(50 << 20)}})
    for options in both:
        data = elf(**FULL, **options) + bytes(3 << 20)
        examine(data[at : at + 200_000] for at in range(0, len(data), 200_000))
        assert 14 << 20 < max(held) < 27 << 20
        # The front, and what passed last.
        assert held[-1] < 3 << 20
        held.clear()
    examine([elf(kind="object", sections={".text": bytes(20 << 20)})])
    assert max(held) < 3 << 20


def test_a_part_is_not_given_for_the_whole() -> None:
    far = 1 << 40
    one_far = dynamic(PLAIN, 1, far)
    assert (read(one_far).needed, read(one_far).unread) == ((), ("needed",))
    assert read(one_far).soname == FULL["soname"]
    path_far = read(dynamic(PLAIN, 29, far))
    assert (path_far.runpath, path_far.unread) == ((), ("runpath",))
    old = elf(rpath="/a", runpath="/b")
    assert (read(dynamic(old, 15, far)).runpath, read(dynamic(old, 15, far)).unread) == (
        ("/b",),
        (),
    )


def test_files_of_debug_information_have_no_facts(tmp_path: Path) -> None:
    objcopy = shutil.which("objcopy")
    library = next((path for path in LIBRARIES if path.is_file()), None)
    if objcopy is None or library is None:
        pytest.skip("there is no objcopy, or no library")
    debug = tmp_path / "x.debug"
    subprocess.run([objcopy, "--only-keep-debug", library, debug], check=True)
    found = read(debug.read_bytes())
    assert (found.is_shared, found.unread) == (False, ())
    assert everything(found) == NOTHING


def test_a_dynamic_section_that_is_elsewhere() -> None:
    # Other programs leave the program headers as they were, and only the section says so.
    (headers,) = struct.unpack_from("<Q", PLAIN, 40)
    (address,) = struct.unpack_from("<Q", PLAIN, DYNAMIC + 16)
    at = headers
    while struct.unpack_from("<Q", PLAIN, at + 16)[0] != address:
        at += 64
    found = read(patched(PLAIN, at + 4, "<I", 8))
    assert (found.is_shared, everything(found), found.unread) == (False, NOTHING, ())
    assert not read(patched(PLAIN, DYNAMIC + 32, "<Q", 0)).is_shared


def test_names_of_sections_are_bounded() -> None:
    sections = {"x" * 256: fatbin(), "y" * 257: fatbin()}
    assert {s.section for s in read(elf(sections=sections)).device_code} == {"x" * 256, ""}


def test_thousands_of_sections_with_one_long_name_cost_little() -> None:
    tracemalloc.start()
    data = elf(kind="object", sections={"a" * 1_000_000: bytes(64)})
    (headers,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    section = data[headers + 64 : headers + 128]
    data = patched(patched(data, 60, "<H", 16_000), 62, "<H", names)
    data += section * (16_000 - count)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    assert read(data).notes == ()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - before < 40 << 20


PLAIN = elf(**FULL, sections={".nv_fatbin": fatbin()})
PROGRAM = 64
DYNAMIC = 64 + 56


def dynamic(data: bytes, tag: int, value: int) -> bytes:
    (start,) = struct.unpack_from("<Q", data, DYNAMIC + 8)
    while struct.unpack_from("<Q", data, start)[0] != tag:
        start += 16
    return patched(data, start + 8, "<Q", value)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (PLAIN[:10], "header not read: it is outside the file"),
        (PLAIN[:40], "header not read: it is outside the file"),
        (patched(PLAIN, 4, "<B", 7), "header not read: neither 32 nor 64 bits"),
        (patched(PLAIN, 5, "<B", 0), "header not read: neither 32 nor 64 bits"),
        (patched(PLAIN, 54, "<H", 3), "program headers not read: their size"),
        (patched(PLAIN, 58, "<H", 3), "section headers not read: their size"),
        (patched(PLAIN, 32, "<Q", 1 << 60), "program headers not read: it is outside"),
        (patched(PLAIN, 40, "<Q", 1 << 60), "section headers not read: it is outside"),
        (patched(PLAIN, 56, "<H", 65535), "program headers not read: larger than"),
        (patched(PLAIN, 60, "<H", 65535), "section headers not read: larger than"),
        (patched(PLAIN, 62, "<H", 5000), "section names not read: their section"),
        (patched(PLAIN, DYNAMIC + 8, "<Q", 1 << 60), "dynamic section not read: it is outside"),
        (patched(PLAIN, DYNAMIC + 32, "<Q", 1 << 60), "dynamic section not read: larger"),
        (dynamic(PLAIN, 5, 1), "names not read: their table is not in any segment"),
        (dynamic(PLAIN, 10, 0), "soname not read: it is outside its table"),
        (dynamic(PLAIN, 10, 5), "needed library not read: it has no end"),
        (dynamic(PLAIN, 14, 1 << 40), "soname not read: it is outside its table"),
        (dynamic(PLAIN, 0x6FFFFFFE, 1), "needed versions not read: their table is not in any"),
        (dynamic(PLAIN, 0x6FFFFFFF, 1 << 60), ""),
        (elf(soname="a\x01b"), "soname not read: it is not text"),
        (elf(soname="a\udcff".encode(errors="surrogateescape").decode("latin-1") + "x"), ""),
        (elf(needed=["a" * 5000]), "needed library not read: it has no end"),
        (elf(needed=["a"] * 1025), "needed libraries not read: more than 1,024"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_broken_is_left_out(data: bytes, note: str) -> None:
    found = read(data)
    assert any(text.startswith(note) for text in (*found.notes, ""))
    assert bool(found.notes) is bool(note)
    assert all(not getattr(found, field) for field in found.unread)
    assert bool(found.unread) is (bool(note) and not note.startswith("section"))


def test_a_dynamic_section_without_end_and_versions_without_end() -> None:
    (start, size) = struct.unpack_from("<Q16xQ", PLAIN, DYNAMIC + 8)
    cut = patched(PLAIN, DYNAMIC + 32, "<Q", size - 16)
    assert struct.unpack_from("<Q", PLAIN, start + size - 16)[0] == 0
    assert read(cut).needed == FULL["needed"]
    assert read(dynamic(PLAIN, 0x6FFFFFFF, 1)).glibc == "2.17"


def test_an_empty_segment_of_libraries() -> None:
    assert read(elf()).notes == ()
    assert read(elf(needed=["", "x"])).needed == ("x",)


def test_more_sections_than_the_header_can_tell() -> None:
    data = elf(soname="x", sections={".nv_fatbin": fatbin()})
    (headers,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    data = patched(patched(data, 60, "<H", 0), 62, "<H", 0xFFFF)
    data = patched(patched(data, headers + 32, "<Q", count), headers + 40, "<I", names)
    assert [s.section for s in read(data).device_code] == [".nv_fatbin"]
    absurd = read(patched(data, headers + 32, "<Q", 1 << 32))
    assert "section headers not read: larger than 1,048,576 bytes" in absurd.notes


def versions_at(data: bytes) -> int:
    (start,) = struct.unpack_from("<Q", data, DYNAMIC + 8)
    while struct.unpack_from("<Q", data, start)[0] != 0x6FFFFFFE:
        start += 16
    place: int = struct.unpack_from("<Q", data, start + 8)[0] - 0x400000
    return place


@pytest.mark.parametrize(
    ("offset", "form", "value", "floor"),
    [
        (2, "<H", 65535, "2.17"),
        (8, "<I", 1 << 31, None),
        (12, "<I", 1 << 31, None),
        (12, "<I", 0, "2.17"),
        (16 + 12, "<I", 1 << 31, None),
        (16 + 12, "<I", 1, None),
    ],
)
def test_a_broken_chain_of_versions_ends(
    offset: int, form: str, value: int, floor: str | None
) -> None:
    found = read(patched(PLAIN, versions_at(PLAIN) + offset, form, value))
    assert found.needed == FULL["needed"]
    assert found.glibc == floor
    assert found.unread == (() if floor else VERSIONS)


def test_a_chain_of_versions_is_followed_a_bounded_way() -> None:
    # Each version points to the next byte, in a table as large as is looked at.
    data = dynamic(PLAIN, 0x6FFFFFFF, 1 << 30)
    at = versions_at(data)
    chain = struct.pack("<HHIII", 1, 65535, 1, 16, 1) + struct.pack("<IHHII", 0, 0, 0, 1, 1) * 40
    found = read(data[:at] + chain + data[at + len(chain) :])
    assert found.machine == "x86_64"


def test_a_name_without_end_costs_little() -> None:
    data = elf(soname="x" * (1 << 20), needed=["liba.so"])
    found = read(data)
    assert (found.soname, found.needed) == (None, ("liba.so",))
    assert found.notes == ("soname not read: it has no end",)


def test_overlapping_sections_and_one_without_a_name() -> None:
    data = elf(sections={"a": fatbin(), "b\x01": fatbin()})
    assert {s.section for s in read(data).device_code} == {"", "a"}


@pytest.mark.parametrize("size", [1, 1000, 65536, 300_000, 5 << 20])
def test_blocks_are_neither_small_nor_large(size: int) -> None:
    data = bytes(range(256)) * 4096
    cut = list(blocks(data[at : at + size] for at in range(0, len(data), size)))
    assert b"".join(cut) == data
    assert all(65536 <= len(block) <= 262144 for block in cut[:-1])
