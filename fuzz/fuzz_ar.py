"""Fuzz the readers of libraries and linker scripts."""

from harness import fuzz
from support.binaries import ar, coff, elf, fatbin, import_library

LONG = "a_name_of_more_than_sixteen_bytes.o"
CODE = elf(kind="object", sections={".nv_fatbin": fatbin()})

if __name__ == "__main__":
    fuzz(
        [
            *(ar({LONG: CODE, "b.o": coff(), "c": b"odd"}, style=s) for s in ("gnu", "bsd")),
            ar({"a.o": CODE}, is_thin=True),
            import_library("x.dll"),
            b"/* GNU ld script */\nGROUP(liba.so AS_NEEDED(-lm))\n",
            b'OUTPUT_FORMAT(elf64-x86-64)\nINPUT("x y");',
        ]
    )
