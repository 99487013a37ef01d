"""Dynamic symbols of ELF files, and exports and imports of DLLs."""

import struct
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support.binaries import Symbol, dll_with_symbols, elf, examined, read
from support.cost import bounded_cost

from cudaredist.binaries import elf_symbols
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.symbols import Group, pack_groups, unpack_groups

SYMBOLS = [
    Symbol("malloc", is_defined=False, version="GLIBC_2.2.5"),
    Symbol("ltCreate", is_defined=False, version="libl.so.1"),
    Symbol("__gmon_start__", is_defined=False, binding="weak", kind="notype"),
    Symbol("create", version="libx.so.1"),
    Symbol("create_old", version="libx.so.0", is_default=False),
    Symbol("table", kind="object", version="libx.so.1"),
    Symbol("plain", binding="weak"),
    Symbol("_ZN1a1bE", binding="unique", kind="object"),
    Symbol("chosen", kind="ifunc", other=3),
    Symbol("libx.so.1", kind="object", version="libx.so.1", section=0xFFF1),
    Symbol("internal", binding="local"),
    Symbol(""),
]
NEEDS = {"libl.so.1": ["libl.so.1"], "libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.17"]}
DEFINES = ["libx.so.0", "libx.so.1"]
GROUPS = [
    ("defined", "global", "func", "default", "", "@", "libx.so.0", "", "create_old"),
    ("defined", "global", "func", "default", "", "@@", "libx.so.1", "", "create"),
    ("defined", "global", "ifunc", "protected", "", "", "", "", "chosen"),
    ("defined", "global", "object", "default", "", "@@", "libx.so.1", "", "table"),
    ("defined", "global", "object", "default", "absolute", "@@", "libx.so.1", "", "libx.so.1"),
    ("defined", "unique", "object", "default", "", "", "", "", "_ZN1a1bE"),
    ("defined", "weak", "func", "default", "", "", "", "", "plain"),
    ("defined-versions", "", "libx.so.0", "libx.so.1"),
    ("defined-versions", "base", "libx.so.1"),
    ("needed-versions", "libc.so.6", "strong", "GLIBC_2.17", "GLIBC_2.2.5"),
    ("needed-versions", "libl.so.1", "strong", "libl.so.1"),
    *[
        ("undefined", "global", "func", "default", "", "@", version, library, name)
        for version, library, name in (
            ("GLIBC_2.2.5", "libc.so.6", "malloc"),
            ("libl.so.1", "libl.so.1", "ltCreate"),
        )
    ],
    ("undefined", "weak", "notype", "default", "", "", "", "", "__gmon_start__"),
]
WHOLE: dict[str, Any] = {
    "symbols": SYMBOLS,
    "needs": NEEDS,
    "defines": DEFINES,
    "soname": "libx.so.1",
}
FULL = elf(**WHOLE)


def flat(binary: Binary) -> list[tuple[str, ...]]:
    assert binary.symbols is not None, binary.notes
    return [(g.kind, *g.properties, *g.names) for g in unpack_groups(binary.symbols.packed)]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("hashes", ["gnu", "sysv", ""])
@pytest.mark.parametrize("has_section_headers", [True, False])
def test_symbols_of_each_layout_are_read(
    bits: int, order: str, hashes: str, *, has_section_headers: bool
) -> None:
    layout = WHOLE | {"bits": bits, "order": order, "hashes": hashes}
    library = read(elf(**layout, has_section_headers=has_section_headers))
    assert flat(library) == GROUPS
    assert library.symbols is not None
    assert (library.symbols.exports, library.symbols.imports) == (7, 3)
    assert library.unread == library.notes == ()


def test_symbols_of_library_without_definitions_follow_from_section_headers() -> None:
    undefined = [symbol for symbol in SYMBOLS if not symbol.is_defined]
    for has_section_headers in (True, False):
        library = read(elf(symbols=undefined, has_section_headers=has_section_headers))
        assert [group[8:] for group in flat(library)] == [
            ("ltCreate", "malloc"),
            ("__gmon_start__",),
        ]
        assert library.symbols is not None
        assert library.symbols.imports == 3


@pytest.mark.parametrize("behind", [("strings",), ("strings", "gnu"), ("gnu", "strings")])
def test_tables_behind_dynamic_section_are_read(behind: Sequence[str]) -> None:
    """The parts that a tool moves to the end when it rewrites a file."""
    library = read(elf(**WHOLE, behind=behind, gap=3 << 20))
    assert flat(library) == GROUPS


def test_symbol_copied_from_library_keeps_version_without_default() -> None:
    program = read(elf(symbols=[Symbol("stdout", version="GLIBC_2.17")], needs=NEEDS))
    kind, *properties = flat(program)[0][:-1]
    assert (kind, *properties[-3:]) == ("defined", "@", "GLIBC_2.17", "libc.so.6")


def test_names_with_unprintable_characters_are_escaped() -> None:
    names = ["a\nb", "a\tb", "spaced name", "é"]
    library = read(elf(symbols=[Symbol(name) for name in names]))
    assert flat(library)[0][-4:] == ("a\\tb", "a\\nb", "spaced name", "é")


def big(table: str, data: bytes) -> bytes:
    return elf(**WHOLE, tables={table: data})


def one_version(step: int) -> bytes:
    need = struct.pack("<HHIII", 1, 1, 1, 16, step)
    return need + struct.pack("<IHHII", 0, 0, 9, 1, 0)


HOSTILE = {
    "2^32 symbols": big("sysv", struct.pack("<II", 1, 0xFFFFFFFF)),
    "2^32 buckets": big("gnu", struct.pack("<IIII", 0xFFFFFFFF, 1, 1, 0)),
    "2^32 filter words": big("gnu", struct.pack("<IIII", 1, 1, 0xFFFFFFFF, 0)),
    "chain outside": big("gnu", struct.pack("<IIIIQI", 1, 1, 1, 0, 0, 0xFFFFFFF0)),
    "chain without end": big("gnu", struct.pack("<IIIIQI", 1, 1, 1, 0, 0, 1) + bytes(400_000)),
    "more symbols than bytes": big("sysv", struct.pack("<II", 1, 5000)),
    "name outside": big("symbols", bytes(24) + struct.pack("<IBBHQQ", 9999, 18, 0, 7, 0, 0) * 12),
    "symbols outside": elf(symbols=SYMBOLS, tags={6: 1 << 40}),
    "names outside": elf(symbols=SYMBOLS, tags={5: 1 << 40}),
    "2^40 bytes of names": elf(symbols=SYMBOLS, tags={10: 1 << 40}),
    "version numbers outside": elf(symbols=SYMBOLS, tags={0x6FFFFFF0: 1 << 40}),
    "needed versions that go back": big("requirements", one_version(0xFFFFFFFF)),
    "needed versions in a cycle": elf(
        symbols=SYMBOLS,
        needs=NEEDS,
        tables={"requirements": struct.pack("<HHIII", 1, 60000, 1, 0, 1) * 3000},
        tags={0x6FFFFFFF: 1 << 32},
    ),
    "defined versions outside": big(
        "definitions", struct.pack("<HHHHIII", 1, 0, 9, 1, 0, 1 << 30, 0)
    ),
    "names without end": big("strings", b"x" * 90),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_table_leaves_symbols_unread(data: bytes) -> None:
    with bounded_cost():
        library = read(data)
    assert library.symbols is None
    assert "symbols" in library.unread
    assert any("symbols not read" in note for note in library.notes)


def test_thousands_of_symbols_with_one_long_name_are_refused() -> None:
    count = 100_000
    name = b"\0" + b"x" * 250_000 + b"\0"
    table = bytes(24) + struct.pack("<IBBHQQ", 1, 18, 0, 7, 0, 0) * count
    hashes = struct.pack("<II", 1, count + 1)
    versions = bytes(2 * (count + 1))
    tables = {"sysv": hashes, "symbols": table, "strings": name, "versions": versions}
    data = elf(symbols=[Symbol("x")], tables=tables)
    tracemalloc.start()
    with bounded_cost():
        library = read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "symbols not read: their names are too long" in library.notes
    assert peak < 40 << 20


@pytest.mark.slow
def test_symbols_at_limit_stay_within_memory() -> None:
    count = elf_symbols._SYMBOLS_LIMIT - 1
    strings = b"\0" + b"".join(b"symbol_%09d_of_many_in_a_table\0" % n for n in range(count))
    assert len(strings) < elf_symbols._STRINGS_LIMIT
    size = len(b"symbol_%09d_of_many_in_a_table\0" % 0)
    table = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", 1 + n * size, 18, 0, 7, 0, 0) for n in range(count)
    )
    hashes = struct.pack("<II", 1, count + 1)
    versions = bytes(2 * (count + 1))
    tables = {"sysv": hashes, "symbols": table, "strings": strings, "versions": versions}
    data = elf(symbols=[Symbol("x")], tables=tables)
    chunks = [data[at : at + 100_000] for at in range(0, len(data), 100_000)]
    del data, table, tables, strings

    def passing() -> Iterator[bytes]:
        while chunks:
            yield chunks.pop(0)

    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    library = examined(passing())
    peak = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    assert library is not None
    assert library.symbols is not None
    assert library.symbols.exports == count
    assert peak < 64 << 20


# -- DLLs

EXPORTS = [(5, "create", ""), (6, "", ""), (9, "destroy", ""), (11, "sleep", "KERNEL32.Sleep")]
IMPORTS: dict[str, list[str | int]] = {
    "KERNEL32.dll": ["Sleep", "Beep"],
    "x_lt.dll": ["ltCreate", 7],
}


@pytest.mark.parametrize("machine", ["x86_64", "x86"])
def test_exports_and_imports_of_dll_are_read(machine: str) -> None:
    library = read(dll_with_symbols(EXPORTS, IMPORTS, machine=machine))
    assert library.notes == ()
    assert flat(library) == [
        ("exported", "", " 6", "create 5", "destroy 9"),
        ("exported", "KERNEL32.Sleep", "sleep 11"),
        ("imported", "KERNEL32.dll", "", "Beep", "Sleep"),
        ("imported", "x_lt.dll", "", "#7", "ltCreate"),
    ]
    assert library.symbols is not None
    assert (library.symbols.exports, library.symbols.imports) == (4, 4)


def test_dll_without_exports_and_imports_has_no_names() -> None:
    assert flat(read(dll_with_symbols())) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [(20, 1 << 20), (24, 1 << 20), (28, 0xFFFFFFF0), (32, 0xFFFFFFF0), (36, 0xFFFFFFF0)],
)
def test_hostile_exports_leave_symbols_unread(field: int, value: int) -> None:
    data = bytearray(dll_with_symbols([(1, "create", "")], {"b.dll": ["c"]}))
    at = data.index(b"create\0") - 40
    struct.pack_into("<I", data, at + field, value)
    library = read(bytes(data))
    assert library.symbols is None
    assert "symbols" in library.unread


def test_imports_without_end_leave_symbols_unread() -> None:
    data = dll_with_symbols((), {"b.dll": [1] * 600})
    library = read(data.replace(struct.pack("<Q", 1 << 63 | 1), struct.pack("<Q", 0x3002)))
    assert library.symbols is not None
    whole = bytearray(data)
    # The table of thunks goes on to the end of its section.
    at = whole.index(struct.pack("<Q", 1 << 63 | 1))
    end = len(whole) - len(whole) % 8
    for place in range(at, end - 64, 8):
        struct.pack_into("<Q", whole, place, 1 << 63 | 1)
    library = read(bytes(whole))
    assert library.symbols is None
    assert "symbols" in library.unread


# -- packed texts


def test_packed_groups_are_unpacked_sorted() -> None:
    packed = pack_groups([(("defined", "a", ""), [b"y", b"x"]), (("undefined",), [b"z"])])
    assert list(unpack_groups(packed)) == [
        Group("defined", ("a", ""), ("x", "y")),
        Group("undefined", (), ("z",)),
    ]


@pytest.mark.parametrize("packed", ["", "%%%", "AAAA", "é"])
def test_broken_text_has_no_groups(packed: str) -> None:
    assert list(unpack_groups(packed)) == []
