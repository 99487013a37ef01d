"""Tests of the exports and imports of a library."""

import pytest

from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.symbols import SymbolTable, pack_groups
from cudaredist.features import library_symbols
from cudaredist.features.library_symbols import export_groups, import_groups

EXPORTS = ("defined", "global", "function", "default", "", "@@", "V1", "")
IMPORTS = ("undefined", "global", "function", "default", "", "@", "V2", "libb.so.1")


def library(name: bytes) -> Binary:
    groups = [(EXPORTS, [name + b"1", name + b"2"]), (IMPORTS, [b"x", b"y"])]
    table = SymbolTable(exports=2, imports=2, packed=pack_groups(groups))
    return Binary(kind="elf", symbols=table)


@pytest.mark.parametrize("room", [0, 5, 8])
def test_symbols_are_equal_whether_they_are_kept_or_not(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(library_symbols, "_NAMES_KEPT", room)
    monkeypatch.setattr(library_symbols, "_unpacked", library_symbols._UnpackedSymbols())
    for name in (b"a", b"b", b"a", b"b", b"c", b"b"):
        first, second = (f"{name.decode()}{number}" for number in (1, 2))
        exports = [(tuple(names), version) for names, version in export_groups(library(name))]
        assert exports == [((first, second), "@@V1")]
        imports = [(tuple(names), *rest) for names, *rest in import_groups(library(name))]
        assert imports == [(("x", "y"), "V2", "libb.so.1")]
