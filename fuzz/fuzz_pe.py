"""Fuzz the readers of PE images and COFF object files."""

from harness import fuzz
from support.binaries import coff, fatbin, pe

SECTIONS = {".nv_fatbin": fatbin([("sm", 90, "a")]), ".data": fatbin([("compute", 90, "")])}

if __name__ == "__main__":
    fuzz(
        [
            pe(),
            pe(name="x.dll", imports=["a.dll", "b.dll"], delayed=["c.dll"], sections=SECTIONS),
            pe(name="x.dll", imports=["a.dll"], delayed=["c.dll"], machine="x86", is_dll=False),
            coff(SECTIONS),
            coff(SECTIONS, is_big=True, machine="aarch64"),
        ]
    )
