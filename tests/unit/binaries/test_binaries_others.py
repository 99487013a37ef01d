"""Tests of PE images, object files, libraries, linker scripts and other files."""

import struct
import tracemalloc
from collections.abc import Iterator

import pytest
from support import binaries
from support.binaries import ar, coff, elf, examined, fatbin, patched, pe, read
from support.cost import bounded_cost
from support.patching import Patch

from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.script import SCRIPT_LIMIT


def sections_of(binary: Binary) -> list[tuple[str, bool]]:
    """Return the sections with device code, and whether they are declared."""
    return [(code.section, code.is_declared) for code in binary.device_code]


# -- file kinds


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\x7fEL", b"#ifndef X\n", b"#!/bin/sh\n", b"MZ", b"MZ" + bytes(200), b"PK\3\4"),
        *(b"\x64\x86", b"\x64\x86" + bytes(100), binaries.import_record("x.dll"), b"\0\0\xff\xff"),
        patched(pe(), 0x3C, "<I", 1 << 30),
        patched(pe(), 0x3C, "<I", 0x81),
        pe()[:0x80],
        patched(coff(), 16, "<H", 8),
        patched(coff(), 18, "<H", 2),
        patched(coff(), 2, "<H", 0),
        patched(coff(), 20, "<B", 1),
        patched(coff(), 40, "<I", 1),
    ],
)
def test_other_files_are_not_binaries(data: bytes) -> None:
    assert examined([data]) is None
    assert examined(data[at : at + 1] for at in range(len(data))) is None


@pytest.mark.parametrize("first", [b"#pragma once\n", b"/* x */\nint x;\n"])
def test_rest_of_other_file_is_not_read(first: bytes) -> None:
    def chunks() -> Iterator[bytes]:
        yield first + bytes(65536)
        raise AssertionError

    assert examined(chunks()) is None


def test_fatbin_file_is_read() -> None:
    binary = read(fatbin([("sm", 90, ""), ("compute", 90, "")]))
    assert binary.kind == "fatbin"
    (code,) = binary.device_code
    assert (code.section, code.is_declared) == ("", True)
    assert code.counts == {"compute_90": 1, "sm_90": 1}
    assert read(binaries.container()).device_code == ()


# -- PE


@pytest.mark.parametrize("machine", ["x86", "x86_64", "aarch64"])
@pytest.mark.parametrize("gap", [0, 3 << 20])
def test_pe_image_is_read(machine: str, gap: int) -> None:
    data = pe(
        name="x64_1.dll",
        imports=["KERNEL32.dll", "b.dll"],
        delayed=["nvcuda.dll"],
        machine=machine,
        sections={".nv_fatb": fatbin(), ".data": fatbin([("sm", 75, "")])},
        gap=gap,
    )
    binary = read(data)
    assert (binary.kind, binary.machine, binary.is_shared) == ("pe", machine, True)
    assert binary.soname == "x64_1.dll"
    assert binary.needed == ("KERNEL32.dll", "b.dll", "nvcuda.dll")
    assert sections_of(binary) == [(".data", False), (".nv_fatb", True)]
    assert binary.notes == ()


def test_pe_program_of_unknown_machine_is_read() -> None:
    binary = read(pe(is_dll=False, machine=0x200))
    assert (binary.is_shared, binary.machine, binary.needed) == (False, "pe-512", ())


PE = pe(name="x.dll", imports=["a.dll", "b.dll"], delayed=["c.dll"])
OPTIONAL = 0x80 + 24
DIRECTORIES = OPTIONAL + 112
RDATA = 0x400


BROKEN_PE = [
    (PE[:0x90], "header not read: it is outside the file"),
    (PE[:0x100], "optional header not read: it is outside the file"),
    (PE[:0x1A0], "section headers not read: it is outside the file"),
    (PE[:0x410], "imports not read: it is outside the file"),
    (pe(imports=["x.dll"] * 1025), "imports not read: more than 1,024"),
    (pe(name="\x02"), "export name not read: it is not text"),
]
PATCHES: list[tuple[int, str, int, str]] = [
    (OPTIONAL, "<H", 0x107, "optional header not read: of an unknown kind"),
    (0x80 + 20, "<H", 20, "optional header not read: of an unknown kind, or truncated"),
    (0x80 + 6, "<H", 65535, "section headers not read: larger than"),
    (DIRECTORIES, "<I", 1 << 31, "exports not read: they are not in any section"),
    (DIRECTORIES + 8, "<I", 7, "imports not read: they are not in any section"),
    (DIRECTORIES + 13 * 8, "<I", 7, "delayed imports not read: they are not in any section"),
    (RDATA + 12, "<I", 7, "imported library not read: it is not in any section"),
]


@pytest.mark.parametrize(
    ("data", "note"),
    [*BROKEN_PE, *((patched(PE, at, form, value), note) for at, form, value, note in PATCHES)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_pe_part_is_noted_and_unread(data: bytes, note: str) -> None:
    binary = read(data)
    assert binary.kind == "pe"
    assert binary.unread
    assert all(not getattr(binary, field) for field in binary.unread)
    assert any(text.startswith(note) for text in binary.notes)


def test_pe_directories_with_wrong_count_or_size_are_read() -> None:
    assert read(patched(PE, DIRECTORIES - 4, "<I", 1)).needed == ()
    assert read(patched(PE, DIRECTORIES - 4, "<I", 1)).unread == ()
    # Only the presence of a directory matters.
    everything = ("a.dll", "b.dll", "c.dll")
    assert read(patched(PE, DIRECTORIES + 12, "<I", 25)).needed == everything
    assert read(patched(PE, DIRECTORIES + 4, "<I", 8)).soname == "x.dll"
    assert read(patched(PE, DIRECTORIES + 13 * 8 + 4, "<I", 40)).needed == everything
    assert read(patched(PE, DIRECTORIES + 12, "<I", 0)).needed == ("c.dll",)
    unnamed = read(patched(PE, RDATA + 60 + 64 + 12, "<I", 0))
    assert (unnamed.soname, unnamed.unread) == (None, ())


@pytest.mark.parametrize(
    ("directory", "note", "fact"),
    [
        (0, "exports not read: they extend beyond their section", "soname"),
        (1, "imports not read: they have no end mark", "needed"),
        (13, "delayed imports not read: they have no end mark", "needed"),
    ],
)
def test_pe_directory_beyond_its_section_is_noted(directory: int, note: str, fact: str) -> None:
    data = pe(name="x.dll", imports=["a.dll"], delayed=["c.dll"], sections={".z": b"\1" * 512})
    (address,) = struct.unpack_from("<I", data, OPTIONAL + 240 + 2 * 40 + 12)
    binary = read(patched(data, DIRECTORIES + 8 * directory, "<I", address + 511))
    assert (binary.notes, binary.unread) == ((note,), (fact, "symbols"))
    assert not getattr(binary, fact)


def test_pe_with_many_sections_is_read_within_cost_limit() -> None:
    count = 26_000
    header = struct.pack("<HHIIIHH", 0x8664, count, 0, 0, 0, 240, 0x2022)
    optional = bytearray(240)
    struct.pack_into("<H", optional, 0, 0x20B)
    struct.pack_into("<I", optional, 108, 16)
    at = 64 + 4 + 20 + 240 + 40 * count
    names = b"k.dll\0".ljust(64, b"\0")
    table = struct.pack("<12xII", 1 << 28, 1) * 1024 + bytes(20)
    struct.pack_into("<II", optional, 112 + 8, (1 << 28) + 64, len(table))
    body = names + table
    sections = [struct.pack("<8sIIIIIIHHI", b".x", 0, 4096, 1, at, 0, 0, 0, 0, 0)] * (count - 1)
    last = struct.pack("<8sIIIIIIHHI", b".y", 0, 1 << 28, len(body), at, 0, 0, 0, 0, 0)
    dos = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0"
    data = b"".join([dos, header, bytes(optional), *sections, last, body])
    with bounded_cost():
        assert read(data).needed == ("k.dll",) * 1024


def test_pe_without_sections_is_noted() -> None:
    whole = read(patched(PE, 0x80 + 6, "<H", 0))
    assert "imports not read: they are not in any section" in whole.notes


def test_delayed_imports_of_old_linker_are_read() -> None:
    # A 64-bit image cannot contain such an address in full, so it is unread with a note.
    broken = read(patched(PE, RDATA + 60, "<I", 0))
    assert (broken.needed, broken.unread) == ((), ("needed", "symbols"))
    small = pe(delayed=["c.dll"], machine="x86")
    at = RDATA + 20
    old = patched(small, at, "<I", 0)
    for field in (4, 16):
        (address,) = struct.unpack_from("<I", small, at + field)
        old = patched(old, at + field, "<I", address + 0x10000000)
    assert read(old).needed == ("c.dll",)
    assert read(old).symbols == read(small).symbols


# -- object files


@pytest.mark.parametrize("is_big", [False, True])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_object_file_is_read(machine: str, is_big: bool) -> None:  # noqa: FBT001 - a column of the table
    sections = {
        ".nv_fatb": fatbin([("sm", 90, "")]),
        ".nv_fatbin": fatbin([("sm", 80, "")]),
        ".rdata": fatbin([("sm", 70, "")]),
        ".empty": b"",
    }
    binary = read(coff(sections, machine=machine, is_big=is_big))
    assert (binary.kind, binary.machine) == ("coff", machine)
    assert sections_of(binary) == [(".nv_fatb", True), (".nv_fatbin", True), (".rdata", False)]
    assert binary.notes == ()


def test_object_file_with_absent_or_damaged_sections_is_noted() -> None:
    plain = coff(is_big=True)
    other = plain[:12] + bytes(16) + plain[28:]
    assert read(other) == Binary(kind="coff", machine="x86_64")
    absurd = read(patched(plain, 44, "<I", 1 << 32 - 1))
    assert absurd.notes == ("section headers not read: larger than 1,048,576 bytes",)
    cut = read(coff({".nv_fatbin": fatbin()})[:-15])
    assert sections_of(cut) == [("", False)]
    assert cut.notes == ("section names not read: it is outside the file",)
    lost = read(coff({".nv_fatbin": fatbin()})[:-1] + b"x")
    assert sections_of(lost) == [("", False)]


def test_object_file_with_many_long_names_uses_little_memory() -> None:
    count = 26_000
    strings = 20 + 40 * count
    header = struct.pack("<HHIIIHH", 0x8664, count, 0, strings, 0, 0, 0)
    form = "<8sIIIIIIHHI"
    first = struct.pack(form, b".text", 0, 0, 8, strings, 0, 0, 0, 0, 0)
    others = struct.pack(form, b"/4", 0, 0, 8, strings, 0, 0, 0, 0, 0) * (count - 1)
    data = header + first + others + struct.pack("<I", 1_000_000) + b"a" * 999_995 + b"\0"
    tracemalloc.start()
    assert read(data) == Binary(kind="coff", machine="x86_64")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20


# -- libraries


@pytest.mark.parametrize("style", ["gnu", "bsd", "microsoft"])
@pytest.mark.parametrize("name", ["a.o", "a_name_of_more_than_sixteen_bytes.o"])
def test_static_library_is_read(style: str, name: str) -> None:
    members = [(name, elf(kind="object", sections={"x": fatbin()})), ("b.o", elf(kind="object"))]
    binary = read(ar(members, style=style))
    assert (binary.kind, binary.machine, binary.objects, binary.imports) == ("ar", "x86_64", 2, 0)
    assert [(s.section, s.is_declared, s.counts) for s in binary.device_code] == [
        ("", True, {"sm_90": 1})
    ]
    assert binary.notes == ()


def test_import_library_is_counted() -> None:
    binary = read(binaries.import_library("x.dll", ["f", "g", "odd"]))
    assert (binary.machine, binary.objects, binary.imports) == ("x86_64", 6, 3)
    assert binary.notes == ()


def test_thin_library_is_noted() -> None:
    binary = read(ar({"a.o": elf(kind="object"), "b.o": elf(kind="object")}, is_thin=True))
    assert (binary.objects, binary.machine) == (2, None)
    assert binary.notes == ("a thin library: its members are files of their own",)


@pytest.mark.parametrize(
    ("members", "machine"),
    [
        ({}, None),
        ({"a.txt": b"hello"}, None),
        ({"a.o": elf(kind="object"), "a.txt": b"", "b.txt": b"x" * 77}, "x86_64"),
        ({"a.o": elf(kind="object"), "b.o": elf(kind="object", machine="aarch64")}, None),
        ({"a": coff(machine="aarch64"), "b": coff(machine="aarch64", is_big=True)}, "aarch64"),
        ({"a.o": b"\x7fELF\2\1"}, None),
        ({"a.o": b"\x7fELF" + bytes(60)}, None),
    ],
    ids=str,
)
def test_library_machine_is_that_of_all_members(
    members: dict[str, bytes], machine: str | None
) -> None:
    binary = read(ar(members))
    assert (binary.machine, binary.objects) == (machine, len(members))
    assert binary.notes == ()


AR = ar({"a.o": elf(kind="object"), "b.o": elf(kind="object")})
SECOND = 8 + 60 + 4


@pytest.mark.parametrize(
    ("data", "objects", "note"),
    [
        (AR[:-2], 2, "the library ends inside a member"),
        (AR[: SECOND + 30], 0, "the library ends inside a member"),
        (AR + b"garbage", 2, "the library ends inside a member"),
        (AR + b"x" * 60, 2, "members not read to the end: a header is damaged"),
        (AR[:SECOND] + AR[SECOND:].replace(b"`\n", b"xx", 1), 0, "members not read to the end"),
        (patched(AR, SECOND + 48, "<B", 0x2D), 0, "members not read to the end"),
        (AR[: SECOND + 48] + b"9999999999" + AR[SECOND + 58 :], 1, "the library ends inside a"),
    ],
)
def test_broken_library_is_noted(data: bytes, objects: int, note: str) -> None:
    binary = read(data)
    assert binary.objects == objects
    assert len(binary.notes) == 1
    assert binary.notes[0].startswith(note)


def test_library_members_are_counted_up_to_limit(patch: Patch) -> None:
    patch("cudaredist.binaries.ar._MEMBERS_LIMIT", 3)
    assert read(AR).notes == ()
    patch("cudaredist.binaries.ar._MEMBERS_LIMIT", 2)
    binary = read(AR)
    assert (binary.objects, binary.notes) == (1, ("members not read beyond 2",))


def test_library_of_device_code_has_no_machine() -> None:
    cubin = elf(kind="object", machine=190)
    assert read(ar({"a.cubin": cubin})).machine is None
    assert read(ar({"a.cubin": cubin, "b.o": elf(kind="object")})).machine == "x86_64"


def test_empty_library_and_missing_padding_are_read() -> None:
    assert read(b"!<arch>\n") == Binary(kind="ar")
    assert read(ar({"a.txt": b"xyz"})[:-1]).notes == ()


# -- linker scripts


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (
            "/* GNU ld script\n   Use the shared library */\nOUTPUT_FORMAT(elf64-x86-64)\n"
            "GROUP ( /lib/libc.so.6 /usr/lib/libc_nonshared.a  AS_NEEDED ( /lib/ld.so.2 ) )\n",
            ("/lib/libc.so.6", "/usr/lib/libc_nonshared.a", "/lib/ld.so.2"),
        ),
        ("INPUT(libcudart.so.12, -lm)", ("libcudart.so.12", "-lm")),
        ('INPUT ( "with space.so" );GROUP(b)', ("with space.so", "b")),
        ("\n/* a */ /* b */ INPUT(x)", ("x",)),
        ("INPUT(", None),
        ("INPUT()", None),
        ("INPUT(x))", None),
        ("INPUT(x) int y;", None),
        ("INPUT(x) OTHER(y)", None),
        ("OUTPUT_FORMAT(x)", None),
        ("ENTRY(x)\nGROUP(a)", ("a",)),
        ("/* a header */\n#define INPUT(x) x\n", None),
        ("/* never closed INPUT(x)", None),
        ("/* GNU ld script */ SECTIONS { .text : { *(.text) } } INPUT(a)", ("a",)),
        ("/* GNU ld script */", ()),
        ("INPUT(x)\0", None),
        ("  plain text", None),
    ],
)
def test_linker_script_is_read(text: str, needed: tuple[str, ...] | None) -> None:
    binary = examined([text.encode()])
    assert (None if needed is None else Binary(kind="script", needed=needed)) == binary


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("INPUT(a) " + " " * SCRIPT_LIMIT + "INPUT(b)", "more than 65,536 bytes"),
        ("INPUT(a\x01 b)", "a name is not text or too long"),
        (f"INPUT(a {'b' * 4097})", "a name is not text or too long"),
        (f"INPUT({'a ' * 1025})", "more than 1,024"),
    ],
    ids=lambda value: value[:20],
)
def test_linker_script_with_unread_names_is_noted(text: str, note: str) -> None:
    binary = read(f"/* GNU ld script */ {text}".encode())
    assert binary == Binary(
        kind="script", unread=("needed",), notes=(f"needed libraries not read: {note}",)
    )
