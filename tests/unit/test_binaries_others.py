"""PE images, object files, libraries, linker scripts, and files of no interest."""

import struct
import tracemalloc
from collections.abc import Iterator

import pytest
from support.binaries import (
    ar,
    coff,
    container,
    elf,
    fatbin,
    import_library,
    import_record,
    patched,
    pe,
)
from support.cost import bounded_cost

from cudaredist.binaries.examine_file import examine
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.pe import PeReader
from cudaredist.binaries.script import SCRIPT_LIMIT


def read(data: bytes) -> Binary:
    binary = examine([data])
    assert binary is not None
    return binary


# -- what is looked at


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\x7fEL", b"#ifndef X\n", b"#!/bin/sh\n", b"MZ", b"MZ" + bytes(200), b"PK\3\4"),
        *(b"\x64\x86", b"\x64\x86" + bytes(100), import_record("x.dll"), b"\0\0\xff\xff"),
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
def test_files_of_no_interest(data: bytes) -> None:
    assert examine([data]) is None
    assert examine(data[at : at + 1] for at in range(len(data))) is None


@pytest.mark.parametrize("first", [b"#pragma once\n", b"/* x */\nint x;\n" + bytes(65536)])
def test_the_rest_of_such_a_file_is_not_asked_for(first: bytes) -> None:
    def chunks() -> Iterator[bytes]:
        yield first
        raise AssertionError

    assert examine(chunks()) is None


def test_what_the_chunks_raise_passes() -> None:
    def chunks() -> Iterator[bytes]:
        yield elf()
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        examine(chunks())


def test_a_file_that_is_device_code() -> None:
    found = read(fatbin([("sm", 90, ""), ("compute", 90, "")]))
    assert found.kind == "fatbin"
    (code,) = found.device_code
    assert (code.section, code.is_declared) == ("", True)
    assert code.counts == {"compute_90": 1, "sm_90": 1}
    assert read(container()).device_code == ()


# -- PE


@pytest.mark.parametrize("machine", ["x86", "x86_64", "aarch64"])
@pytest.mark.parametrize("gap", [0, 3 << 20])
def test_pe(machine: str, gap: int) -> None:
    data = pe(
        name="x64_1.dll",
        imports=["KERNEL32.dll", "b.dll"],
        delayed=["nvcuda.dll"],
        machine=machine,
        sections={
            ".nv_fatb": fatbin([("sm", 90, "")]),
            ".data": fatbin([("sm", 75, "")]),
        },
        gap=gap,
    )
    found = read(data)
    assert (found.kind, found.machine, found.is_shared) == ("pe", machine, True)
    assert found.soname == "x64_1.dll"
    assert found.needed == ("KERNEL32.dll", "b.dll", "nvcuda.dll")
    assert [(s.section, s.is_declared) for s in found.device_code] == [
        (".data", False),
        (".nv_fatb", True),
    ]
    assert found.notes == ()


def test_a_program_of_another_machine() -> None:
    found = read(pe(is_dll=False, machine=0x200))
    assert (found.is_shared, found.machine, found.needed) == (False, "pe-512", ())


PE = pe(name="x.dll", imports=["a.dll", "b.dll"], delayed=["c.dll"])
OPTIONAL = 0x80 + 24
DIRECTORIES = OPTIONAL + 112
RDATA = 0x400


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (PE[:0x90], "header not read: it is outside the file"),
        (PE[:0x100], "optional header not read: it is outside the file"),
        (PE[:0x1A0], "section headers not read: it is outside the file"),
        (PE[:0x410], "imports not read: it is outside the file"),
        (patched(PE, OPTIONAL, "<H", 0x107), "optional header not read: of an unknown kind"),
        (
            patched(PE, 0x80 + 20, "<H", 20),
            "optional header not read: of an unknown kind, or truncated",
        ),
        (patched(PE, 0x80 + 6, "<H", 65535), "section headers not read: larger than"),
        (patched(PE, DIRECTORIES, "<I", 1 << 31), "exports not read: they are not in any section"),
        (patched(PE, DIRECTORIES + 8, "<I", 7), "imports not read: they are not in any section"),
        (
            patched(PE, DIRECTORIES + 13 * 8, "<I", 7),
            "delayed imports not read: they are not in any",
        ),
        (patched(PE, RDATA + 12, "<I", 7), "imported library not read: it is not in any section"),
        (pe(imports=["x.dll"] * 1025), "imports not read: more than 1,024"),
        (pe(name="\x02"), "export name not read: it is not text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_broken_in_a_pe_is_left_out(data: bytes, note: str) -> None:
    found = read(data)
    assert found.kind == "pe"
    assert found.unread
    assert all(not getattr(found, field) for field in found.unread)
    assert any(text.startswith(note) for text in found.notes)


def test_directories_beyond_their_number_or_with_sizes_that_are_not_theirs() -> None:
    assert read(patched(PE, DIRECTORIES - 4, "<I", 1)).needed == ()
    assert read(patched(PE, DIRECTORIES - 4, "<I", 1)).unread == ()
    # Only that there is one counts.
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
def test_directories_that_leave_their_section(directory: int, note: str, fact: str) -> None:
    data = pe(name="x.dll", imports=["a.dll"], delayed=["c.dll"], sections={".z": b"\1" * 512})
    (address,) = struct.unpack_from("<I", data, OPTIONAL + 240 + 2 * 40 + 12)
    found = read(patched(data, DIRECTORIES + 8 * directory, "<I", address + 511))
    assert (found.notes, found.unread) == ((note,), (fact, "symbols"))
    assert not getattr(found, fact)


def test_many_sections_cost_little() -> None:
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


def test_an_image_without_sections_is_read_the_same_in_one_piece_and_in_many() -> None:
    data = patched(PE, 0x80 + 6, "<H", 0)
    whole = read(data)
    assert "imports not read: they are not in any section" in whole.notes
    reader = PeReader(0x80)
    for at in range(0, len(data), 7):
        reader.feed(data[at : at + 7])
    assert reader.finish() == whole


def test_delayed_imports_of_an_old_linker() -> None:
    # In a 64-bit image such an address cannot be written whole: it is left out, with a note.
    broken = read(patched(PE, RDATA + 60, "<I", 0))
    assert (broken.needed, broken.unread) == ((), ("needed", "symbols"))
    small = pe(delayed=["c.dll"], machine="x86")
    at = RDATA + 20
    old = patched(small, at, "<I", 0)
    for field in (4, 16):
        (place,) = struct.unpack_from("<I", small, at + field)
        old = patched(old, at + field, "<I", place + 0x10000000)
    assert read(old).needed == ("c.dll",)
    assert read(old).symbols == read(small).symbols


# -- object files


@pytest.mark.parametrize("is_big", [False, True])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_object_files(machine: str, is_big: bool) -> None:  # noqa: FBT001 - a column of the table
    sections = {
        ".nv_fatb": fatbin([("sm", 90, "")]),
        ".nv_fatbin": fatbin([("sm", 80, "")]),
        ".rdata": fatbin([("sm", 70, "")]),
        ".empty": b"",
    }
    found = read(coff(sections, machine=machine, is_big=is_big))
    assert (found.kind, found.machine) == ("coff", machine)
    assert [(s.section, s.is_declared) for s in found.device_code] == [
        *((".nv_fatb", True), (".nv_fatbin", True), (".rdata", False))
    ]
    assert found.notes == ()


def test_an_object_file_without_sections_or_with_absurd_ones() -> None:
    plain = coff(is_big=True)
    other = plain[:12] + bytes(16) + plain[28:]
    assert read(other) == Binary(kind="coff", machine="x86_64")
    absurd = read(patched(plain, 44, "<I", 1 << 32 - 1))
    assert absurd.notes == ("section headers not read: larger than 1,048,576 bytes",)
    cut = read(coff({".nv_fatbin": fatbin()})[:-15])
    assert [(s.section, s.is_declared) for s in cut.device_code] == [("", False)]
    assert cut.notes == ("section names not read: it is outside the file",)
    lost = read(coff({".nv_fatbin": fatbin()})[:-1] + b"x")
    assert [(s.section, s.is_declared) for s in lost.device_code] == [("", False)]


def test_thousands_of_sections_with_one_long_name_in_an_object_file() -> None:
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
def test_libraries(style: str, name: str) -> None:
    members = [(name, elf(kind="object", sections={"x": fatbin()})), ("b.o", elf(kind="object"))]
    found = read(ar(members, style=style))
    assert (found.kind, found.machine, found.objects, found.imports) == ("ar", "x86_64", 2, 0)
    assert [(s.section, s.is_declared, s.counts) for s in found.device_code] == [
        ("", True, {"sm_90": 1})
    ]
    assert found.notes == ()


def test_the_library_of_a_dll() -> None:
    found = read(import_library("x.dll", ["f", "g", "odd"]))
    assert (found.machine, found.objects, found.imports) == ("x86_64", 6, 3)
    assert found.notes == ()


def test_a_thin_library() -> None:
    found = read(ar({"a.o": elf(kind="object"), "b.o": elf(kind="object")}, is_thin=True))
    assert (found.objects, found.machine) == (2, None)
    assert found.notes == ("a thin library: its members are files of their own",)


@pytest.mark.parametrize(
    ("members", "machine"),
    [
        ({}, None),
        ({"a.txt": b"hello"}, None),
        ({"a.o": elf(kind="object"), "a.txt": b"", "b.txt": b"x" * 77}, "x86_64"),
        ({"a.o": elf(kind="object"), "b.o": elf(kind="object", machine="aarch64")}, None),
        (
            {"a.obj": coff(machine="aarch64"), "b.obj": coff(machine="aarch64", is_big=True)},
            "aarch64",
        ),
        ({"a.o": b"\x7fELF\2\1"}, None),
        ({"a.o": b"\x7fELF" + bytes(60)}, None),
    ],
    ids=str,
)
def test_the_machine_of_a_library(members: dict[str, bytes], machine: str | None) -> None:
    found = read(ar(members))
    assert (found.machine, found.objects) == (machine, len(members))
    assert found.notes == ()


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
def test_broken_libraries(data: bytes, objects: int, note: str) -> None:
    found = read(data)
    assert found.objects == objects
    assert len(found.notes) == 1
    assert found.notes[0].startswith(note)


def test_members_are_counted_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudaredist.binaries.ar._MEMBERS_LIMIT", 3)
    assert read(AR).notes == ()
    monkeypatch.setattr("cudaredist.binaries.ar._MEMBERS_LIMIT", 2)
    found = read(AR)
    assert (found.objects, found.notes) == (1, ("members not read beyond 2",))


def test_a_library_of_device_code_has_no_machine() -> None:
    cubin = elf(kind="object", machine=190)
    assert read(ar({"a.cubin": cubin})).machine is None
    assert read(ar({"a.cubin": cubin, "b.o": elf(kind="object")})).machine == "x86_64"


def test_an_empty_library_and_one_without_its_last_padding() -> None:
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
def test_linker_scripts(text: str, needed: tuple[str, ...] | None) -> None:
    found = examine([text.encode()])
    assert (None if needed is None else Binary(kind="script", needed=needed)) == found


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
def test_a_linker_script_whose_names_are_not_all_read(text: str, note: str) -> None:
    found = read(f"/* GNU ld script */ {text}".encode())
    assert found == Binary(
        kind="script", unread=("needed",), notes=(f"needed libraries not read: {note}",)
    )
