"""Fuzz the reader of ELF files."""

from harness import fuzz
from support.binaries import elf, fatbin

FACTS = {
    "soname": "libx.so.1",
    "needed": ["liba.so.1", "libb.so.2"],
    "runpath": "$ORIGIN:/opt",
    "glibc": ["2.17", "2.2.5"],
    "libstdcxx": ["3.4.21"],
}
SECTIONS = {".nv_fatbin": fatbin([("sm", 90, "a")]), ".data": fatbin([("compute", 90, "")])}

if __name__ == "__main__":
    fuzz(
        [
            elf(),
            elf(**FACTS, sections=SECTIONS),
            elf(**FACTS, strings="behind"),
            elf(**FACTS, strings="front", kind="pie"),
            elf(**FACTS, strings="front", gap=2000),
            elf(**FACTS, gap=700, sections={".text": bytes(3000)}),
            elf(**FACTS, sections=SECTIONS, bits=32, order=">"),
            elf(kind="object", sections=SECTIONS),
        ]
    )
