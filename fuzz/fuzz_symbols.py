"""Fuzz the readers of symbols in ELF files and DLLs."""

from harness import fuzz
from support.binaries import Symbol, dll_with_symbols, elf

SYMBOLS = [
    Symbol("malloc", is_defined=False, version="GLIBC_2.2.5"),
    Symbol("weak", is_defined=False, binding="weak"),
    Symbol("create", version="libx.so.1"),
    Symbol("old", version="libx.so.0", is_default=False),
]
NEEDS = {"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.17"]}
DEFINES = ["libx.so.0", "libx.so.1"]

if __name__ == "__main__":
    fuzz(
        [
            elf(symbols=SYMBOLS, needs=NEEDS, defines=DEFINES),
            elf(symbols=SYMBOLS, needs=NEEDS, defines=DEFINES, hashes="sysv"),
            elf(symbols=SYMBOLS, needs=NEEDS, hashes="", has_section_headers=False),
            elf(symbols=SYMBOLS[:2], needs=NEEDS),
            elf(symbols=SYMBOLS, needs=NEEDS, defines=DEFINES, bits=32, order=">"),
            dll_with_symbols([(1, "a", ""), (3, "", ""), (4, "b", "x.c")], {"k.dll": ["s", 7]}),
            dll_with_symbols([(1, "a", "")], {"k.dll": ["s", 7]}, machine="x86"),
        ]
    )
