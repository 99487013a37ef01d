"""ELF files: names, versions, sections, and what can be wrong with them."""

import struct
from typing import Any

import pytest
from support.binaries import elf, fatbin

from cudaredist.binaries import Binary, examine
from cudaredist.binaries.window import blocks

FULL: dict[str, Any] = {
    "soname": "libx.so.1",
    "needed": ("libb.so.2", "liba.so.1", "libb.so.2"),
    "runpath": "$ORIGIN:/opt/x",
    "glibc": ("2.9", "2.17", "2.2.5"),
    "libstdcxx": ("3.4.9", "3.4.21"),
}


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
    )


@pytest.mark.parametrize(
    ("machine", "order", "expected"),
    [
        ("x86", "<", "x86"),
        ("arm", "<", "arm"),
        ("aarch64", "<", "aarch64"),
        ("ppc64le", "<", "ppc64le"),
        ("ppc64le", ">", "elf-21"),
        (190, "<", "elf-190"),
    ],
)
def test_machines(machine: str | int, order: str, expected: str) -> None:
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
    assert found.notes == ("device code is in no known section: the section headers are not read",)


def test_device_code_behind_the_last_section() -> None:
    found = read(elf(soname="x") + fatbin())
    assert [(s.section, s.is_declared) for s in found.device_code] == [("", False)]


@pytest.mark.parametrize("strings", ["before", "behind"])
def test_a_table_that_passed_too_long_before_is_noted(strings: str) -> None:
    # The table of versions lies in the first MiB, or is lost.
    near = read(elf(**FULL, strings=strings, gap=3 << 20))
    assert (near.needed, near.soname, near.glibc) == (FULL["needed"], "libx.so.1", "2.17")
    assert near.notes == ()
    code = {".text": bytes(2 << 20)}
    far = read(elf(**FULL, strings=strings, gap=3 << 20, sections=code))
    assert (far.soname, far.glibc) == ("libx.so.1" if strings == "behind" else None, None)
    assert "needed versions not read: it had passed too long before" in far.notes


def test_names_in_the_middle_of_a_large_file_are_lost_and_noted() -> None:
    data = elf(**FULL, sections={".text": bytes(2 << 20)}, gap=2 << 20)
    found = read(data)
    assert (found.needed, found.soname, found.machine) == ((), None, "x86_64")
    assert "needed library not read: it had passed too long before" in found.notes


def changed(data: bytes, at: int, form: str, value: int) -> bytes:
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


PLAIN = elf(**FULL, sections={".nv_fatbin": fatbin()})
PROGRAM = 64
DYNAMIC = 64 + 56


def dynamic(data: bytes, tag: int, value: int) -> bytes:
    (start,) = struct.unpack_from("<Q", data, DYNAMIC + 8)
    while struct.unpack_from("<Q", data, start)[0] != tag:
        start += 16
    return changed(data, start + 8, "<Q", value)


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (PLAIN[:10], "header not read: it lies outside the file"),
        (PLAIN[:40], "header not read: it lies outside the file"),
        (changed(PLAIN, 4, "<B", 7), "header not read: neither 32 nor 64 bits"),
        (changed(PLAIN, 5, "<B", 0), "header not read: neither 32 nor 64 bits"),
        (changed(PLAIN, 54, "<H", 3), "program headers not read: their size"),
        (changed(PLAIN, 58, "<H", 3), "section headers not read: their size"),
        (changed(PLAIN, 32, "<Q", 1 << 60), "program headers not read: it lies outside"),
        (changed(PLAIN, 40, "<Q", 1 << 60), "section headers not read: it lies outside"),
        (changed(PLAIN, 56, "<H", 65535), "program headers not read: larger than"),
        (changed(PLAIN, 60, "<H", 65535), "section headers not read: larger than"),
        (changed(PLAIN, 62, "<H", 5000), "section names not read: their section"),
        (changed(PLAIN, DYNAMIC + 8, "<Q", 1 << 60), "dynamic section not read: it lies outside"),
        (changed(PLAIN, DYNAMIC + 32, "<Q", 1 << 60), "dynamic section not read: larger"),
        (dynamic(PLAIN, 5, 1), "names not read: their table lies in no segment"),
        (dynamic(PLAIN, 10, 0), "soname not read: it lies outside its table"),
        (dynamic(PLAIN, 10, 5), "needed library not read: it has no end"),
        (dynamic(PLAIN, 14, 1 << 40), "soname not read: it lies outside its table"),
        (dynamic(PLAIN, 0x6FFFFFFE, 1), "needed versions not read: their table lies in no"),
        (dynamic(PLAIN, 0x6FFFFFFF, 1 << 60), ""),
        (elf(soname="a\x01b"), "soname not read: it is no text"),
        (elf(soname="a\udcff".encode(errors="surrogateescape").decode("latin-1") + "x"), ""),
        (elf(needed=["a" * 5000]), "needed library not read: it has no end"),
        (elf(needed=["a"] * 1025), "needed libraries not read beyond 1,024"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_broken_is_left_out(data: bytes, note: str) -> None:
    found = read(data)
    assert any(text.startswith(note) for text in (*found.notes, ""))
    assert bool(found.notes) is bool(note)


def test_a_dynamic_section_without_end_and_versions_without_end() -> None:
    (start, size) = struct.unpack_from("<Q16xQ", PLAIN, DYNAMIC + 8)
    cut = changed(PLAIN, DYNAMIC + 32, "<Q", size - 16)
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
    data = changed(changed(data, 60, "<H", 0), 62, "<H", 0xFFFF)
    data = changed(changed(data, headers + 32, "<Q", count), headers + 40, "<I", names)
    assert [s.section for s in read(data).device_code] == [".nv_fatbin"]
    absurd = read(changed(data, headers + 32, "<Q", 1 << 32))
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
        (12, "<I", 1 << 31, "2.17"),
        (12, "<I", 0, "2.17"),
        (16 + 12, "<I", 1 << 31, "2.9"),
        (16 + 12, "<I", 1, None),
    ],
)
def test_a_broken_chain_of_versions_ends(
    offset: int, form: str, value: int, floor: str | None
) -> None:
    found = read(changed(PLAIN, versions_at(PLAIN) + offset, form, value))
    assert found.needed == FULL["needed"]
    assert floor is None or found.glibc == floor


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
