"""Tests of ELF files: names, versions, sections and damage."""

import struct
import tracemalloc
from typing import Any

import pytest
from support.binaries import elf, examined, fatbin, patched

from cudaredist.binaries.file_facts import Binary

FULL: dict[str, Any] = {
    "soname": "libx.so.1",
    "needed": ("libb.so.2", "liba.so.1", "libb.so.2"),
    "runpath": "$ORIGIN:/opt/x",
    "glibc": ("2.9", "2.17", "2.2.5"),
    "libstdcxx": ("3.4.9", "3.4.21"),
}


def read(data: bytes) -> Binary:
    binary = examined([data])
    assert binary is not None
    assert binary.kind == "elf"
    return binary


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("strings", ["front", "before", "behind"])
@pytest.mark.parametrize("gap", [0, 9000])
def test_elf_names_and_versions_are_read(bits: int, order: str, strings: str, gap: int) -> None:
    binary = read(elf(**FULL, bits=bits, order=order, strings=strings, gap=gap))
    assert binary == Binary(
        kind="elf",
        machine="x86_64",
        is_shared=True,
        soname="libx.so.1",
        needed=("libb.so.2", "liba.so.1", "libb.so.2"),
        runpath=("$ORIGIN", "/opt/x"),
        glibc="2.17",
        libstdcxx="3.4.21",
        # These libraries are named only in the needed versions.
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
def test_elf_machine_is_read(machine: str | int, order: str, expected: str | None) -> None:
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
def test_shared_object_is_distinguished_from_program(
    options: dict[str, Any],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert read(elf(**options)).is_shared is expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rpath": "/a:/b"}, ("/a", "/b")),
        ({"rpath": "/a", "runpath": "/b"}, ("/b",)),
        ({"rpath": "/a", "runpath": ""}, ()),
        ({"runpath": "::/a:"}, (".", ".", "/a", ".")),
        ({"runpath": "$ORIGIN:"}, ("$ORIGIN", ".")),
    ],
    ids=str,
)
def test_elf_search_paths_are_read(options: dict[str, str], expected: tuple[str, ...]) -> None:
    assert read(elf(**options)).runpath == expected  # type: ignore[arg-type]


def test_private_versions_are_not_a_minimum() -> None:
    binary = read(elf(glibc=("PRIVATE", "ABI_DT_RELR"), libstdcxx="3.4"))
    assert (binary.glibc, binary.libstdcxx) == (None, "3.4")


@pytest.mark.parametrize("kind", ["shared", "program", "object"])
def test_device_code_is_reported_by_section(kind: str) -> None:
    data = elf(
        kind=kind,
        sections={
            ".text": bytes(100),
            ".nv_fatbin": fatbin([("sm", 90, "a")]) * 2,
            "__nv_relfatbin": fatbin([("lto", 75, "")]),
            ".data": fatbin([("sm", 75, "")]),
        },
    )
    sections = [(s.section, s.is_declared, s.counts) for s in read(data).device_code]
    assert sections == [
        (".data", False, {"sm_75": 1}),
        (".nv_fatbin", True, {"sm_90a": 2}),
        ("__nv_relfatbin", True, {"lto_75": 1}),
    ]


def test_device_code_without_section_headers_is_noted() -> None:
    binary = read(elf(sections={".nv_fatbin": fatbin()}, has_section_headers=False))
    assert [(s.section, s.is_declared) for s in binary.device_code] == [("", False)]
    assert binary.notes == ("section of device code unknown: the section headers are not read",)


def test_device_code_after_last_section_is_read() -> None:
    binary = read(elf(soname="x") + fatbin())
    assert [(s.section, s.is_declared) for s in binary.device_code] == [("", False)]


def facts_of(binary: Binary) -> dict[str, Any]:
    """Return the names and versions of a binary with the keys of `FULL`."""
    return {
        "soname": binary.soname,
        "needed": binary.needed,
        "runpath": ":".join(binary.runpath),
        "glibc": binary.glibc,
        "libstdcxx": binary.libstdcxx,
    }


NOTHING = {"soname": None, "needed": (), "runpath": "", "glibc": None, "libstdcxx": None}
NAMES = ("needed", "runpath", "soname")
VERSIONS = ("glibc", "libstdcxx")


def test_partially_read_names_are_unread() -> None:
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


def test_dynamic_section_without_content_has_no_facts() -> None:
    # `objcopy --only-keep-debug` keeps the program headers, so only the section type shows it.
    (headers,) = struct.unpack_from("<Q", PLAIN, 40)
    (address,) = struct.unpack_from("<Q", PLAIN, DYNAMIC + 16)
    at = headers
    while struct.unpack_from("<Q", PLAIN, at + 16)[0] != address:
        at += 64
    binary = read(patched(PLAIN, at + 4, "<I", 8))
    assert (binary.is_shared, facts_of(binary), binary.unread) == (False, NOTHING, ())
    assert (binary.symbols, binary.opens) == (None, ())
    assert not read(patched(PLAIN, DYNAMIC + 32, "<Q", 0)).is_shared


def test_section_name_length_is_limited() -> None:
    sections = {"x" * 256: fatbin(), "y" * 257: fatbin()}
    assert {s.section for s in read(elf(sections=sections)).device_code} == {"x" * 256, ""}


def test_many_sections_with_long_name_use_little_memory() -> None:
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


@pytest.mark.parametrize("section", [".text", ".debug_str"])
def test_only_data_is_searched_for_names_and_device_code(section: str) -> None:
    data = b"\0liba.so.1\0" + fatbin()
    binary = read(elf(sections={".rodata": data, section: data.replace(b"liba", b"libb")}))
    assert (binary.opens, [code.section for code in binary.device_code]) == (
        ("liba.so.1",),
        [".rodata"],
    )


def test_names_in_device_code_are_not_opened() -> None:
    code = fatbin(payload=b"\0liba.so.1\0")
    binary = read(elf(sections={".nv_fatbin": code + code, ".rodata": b"\0libb.so.1\0"}))
    assert (binary.opens, binary.device_code[0].counts) == (("libb.so.1",), {"sm_90": 2})


PLAIN = elf(**FULL, sections={".nv_fatbin": fatbin()})
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
def test_broken_elf_part_is_noted_and_unread(data: bytes, note: str) -> None:
    binary = read(data)
    assert any(text.startswith(note) for text in (*binary.notes, ""))
    assert bool(binary.notes) is bool(note)
    assert all(not getattr(binary, field) for field in binary.unread)
    assert bool(binary.unread) is (bool(note) and not note.startswith("section"))


def test_dynamic_section_without_end_is_read() -> None:
    (start, size) = struct.unpack_from("<Q16xQ", PLAIN, DYNAMIC + 8)
    cut = patched(PLAIN, DYNAMIC + 32, "<Q", size - 16)
    assert struct.unpack_from("<Q", PLAIN, start + size - 16)[0] == 0
    assert read(cut).needed == FULL["needed"]
    assert read(dynamic(PLAIN, 0x6FFFFFFF, 1)).glibc == "2.17"


def test_library_without_needed_names_has_no_notes() -> None:
    assert read(elf()).notes == ()
    assert read(elf(needed=["", "x"])).needed == ("x",)


def test_section_count_in_first_section_is_read() -> None:
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
    offset: int = struct.unpack_from("<Q", data, start + 8)[0] - 0x400000
    return offset


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
def test_broken_version_chain_is_unread(
    offset: int, form: str, value: int, floor: str | None
) -> None:
    binary = read(patched(PLAIN, versions_at(PLAIN) + offset, form, value))
    assert binary.needed == FULL["needed"]
    assert binary.glibc == floor
    assert binary.unread == (() if floor else VERSIONS)


def test_long_version_chain_is_limited() -> None:
    # Each version points to the next byte, in a table of the maximum size.
    data = dynamic(PLAIN, 0x6FFFFFFF, 1 << 30)
    at = versions_at(data)
    chain = struct.pack("<HHIII", 1, 65535, 1, 16, 1) + struct.pack("<IHHII", 0, 0, 0, 1, 1) * 40
    binary = read(data[:at] + chain + data[at + len(chain) :])
    assert binary.machine == "x86_64"


def test_overlapping_and_unnamed_sections_are_read() -> None:
    data = elf(sections={"a": fatbin(), "b\x01": fatbin()})
    assert {s.section for s in read(data).device_code} == {"", "a"}
