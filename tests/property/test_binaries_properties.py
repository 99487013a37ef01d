"""Properties of examining any bytes: chunking is irrelevant and nothing raises."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.binaries import (
    Symbol,
    ar,
    coff,
    concatenated,
    container,
    dll_with_symbols,
    elf,
    entry,
    examined,
    fatbin,
    import_library,
    pe,
)
from support.optional_programs import needs

from cudaredist.binaries.file_facts import Binary
from tools.oracles import elf_oracle, pe_oracle
from tools.symbol_oracles import elf_symbols, readelf_symbols

CODE = fatbin([("sm", 90, "a"), ("compute", 90, "")]) + container(
    [concatenated([("sm", 100, "f"), ("lto", 75, "")]), entry(33)]
)
FULL: dict[str, Any] = {
    "soname": "libx.so.1",
    "needed": ["liba.so.1", "libb.so.2"],
    "runpath": "$ORIGIN:/opt",
    "glibc": ["2.17", "2.2.5"],
    "libstdcxx": ["3.4.21"],
}
SECTIONS = {".nv_fatbin": CODE, ".data": b"\x50" * 9 + CODE}
SYMBOLS = [Symbol("m", is_defined=False, version="GLIBC_2.17"), Symbol("c", version="V")]
FILES = {
    "elf": elf(**FULL, sections=SECTIONS),
    "elf with names behind": elf(**FULL, sections=SECTIONS, strings="behind", gap=3000),
    "elf32": elf(**FULL, sections=SECTIONS, bits=32, order=">"),
    "object": elf(kind="object", sections=SECTIONS),
    "pe": pe(name="x.dll", imports=["a.dll"], delayed=["b.dll"], sections=SECTIONS, gap=2000),
    "coff": coff(SECTIONS),
    "big coff": coff(SECTIONS, is_big=True),
    "fatbin": CODE,
    "ar": ar({"a.o": elf(kind="object", sections=SECTIONS), "b.txt": b"odd"}),
    "bsd ar": ar({"a.o": elf(kind="object"), "b.txt": b"odd"}, style="bsd"),
    "import library": import_library("x.dll"),
    "symbols": elf(symbols=SYMBOLS, needs={"libc.so.6": ["GLIBC_2.17"]}, defines=["V"]),
    "dll": dll_with_symbols([(1, "a", ""), (4, "b", "x.c")], {"k.dll": ["s", 7]}),
    "script": b"/* GNU ld script */\nINPUT(liba.so AS_NEEDED(-lm))\n",
}
sizes = st.lists(st.integers(1, 3000), min_size=1, max_size=50)
changes = st.lists(
    st.tuples(
        st.integers(0, 20_000), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
    ),
    max_size=8,
)


def cut(data: bytes, lengths: list[int]) -> list[bytes]:
    chunks = []
    at = number = 0
    while at < len(data):
        length = lengths[number % len(lengths)]
        chunks += [data[at : at + length], b""][: 1 + number % 2]
        at += length
        number += 1
    return chunks


FIXTURE = settings(suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("data", FILES.values(), ids=FILES.keys())
@FIXTURE
@given(lengths=sizes)
def test_examine_is_the_same_for_any_chunks(data: bytes, lengths: list[int]) -> None:
    assert examined(cut(data, lengths)) == examined([data])


@pytest.mark.parametrize("data", FILES.values(), ids=FILES.keys())
@FIXTURE
@given(lengths=sizes, bytes_at=changes, end=st.integers(0, 20_000))
def test_examine_of_broken_file_never_raises(
    data: bytes, lengths: list[int], bytes_at: list[tuple[int, int]], end: int
) -> None:
    broken = bytearray(data)
    for at, value in bytes_at:
        broken[at % len(broken)] = value
    if end % 2:
        del broken[end % len(broken) :]
    result = examined([bytes(broken)])
    assert examined(cut(bytes(broken), lengths)) == result
    assert result is None or len(repr(result)) < 100_000


# -- comparison with other programs


def compared(binary: Binary, oracle: dict[str, Any]) -> dict[str, Any]:
    return {key: getattr(binary, key) for key in oracle}


@pytest.mark.parametrize("name", ["elf", "elf with names behind", "elf32", "object"])
def test_examine_agrees_with_pyelftools(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(FILES[name])
    binary, oracle = examined([FILES[name]]), elf_oracle(path)
    assert binary is not None
    assert oracle is not None
    assert compared(binary, oracle) == oracle
    assert oracle["needed"] == (() if name == "object" else tuple(FULL["needed"]))


@pytest.mark.parametrize("machine", ["x86_64", "x86", "aarch64"])
def test_examine_agrees_with_pefile(machine: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = pe(name="x.dll", imports=["a.dll", "c.dll"], delayed=["b.dll"], machine=machine)
    path.write_bytes(data)
    binary, oracle = examined([data]), pe_oracle(path)
    assert binary is not None
    assert oracle is not None
    assert compared(binary, oracle) == oracle
    assert oracle["needed"] == ("a.dll", "c.dll", "b.dll")


FOLDERS = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib/aarch64-linux-gnu"), Path("/usr/bin")]
_SAMPLES = 150
_LARGEST = 12
_BYTES = 1 << 26
"""Total size of the largest files, limited to keep the test fast."""


@cache
def system_files() -> list[Path]:
    """Return the largest files of the system, up to a total size, and some smaller ones."""
    paths = {path.resolve() for folder in FOLDERS if folder.is_dir() for path in folder.iterdir()}
    files = sorted(((path.stat().st_size, path) for path in paths if path.is_file()), reverse=True)
    room = _BYTES
    chosen: list[Path] = []
    for size, path in files:
        if len(chosen) < _LARGEST and size <= room:
            room -= size
            chosen.append(path)
    smaller = sorted(path for size, path in files if size < 4 << 20)
    return chosen + smaller[:: len(smaller) // _SAMPLES + 1]


def pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(1 << 18):
            yield piece


@pytest.mark.slow
def test_examine_of_system_files_agrees_with_other_programs() -> None:
    count = 0
    for path in system_files():
        if next(pieces(path), b"")[:4] != b"\x7fELF":
            continue
        binary, oracle = examined(pieces(path)), elf_oracle(path)
        if oracle is None:
            continue
        assert binary is not None
        assert compared(binary, oracle) == oracle, path
        assert binary.unread == ()
        count += 1
    if not count:
        pytest.skip("this system has no ELF files in the usual places")
    assert count > 20


@pytest.mark.slow
@needs("readelf")
def test_readelf_finds_the_same_symbols_in_the_systems_files() -> None:
    files = [path for path in system_files() if next(pieces(path), b"")[:4] == b"\x7fELF"][:40]
    for path in files:
        binary = examined(pieces(path))
        assert binary is not None
        assert elf_symbols(binary) == readelf_symbols(path), path
