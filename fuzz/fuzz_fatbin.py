"""Fuzz the search for device code."""

from harness import fuzz
from support.binaries import concatenated, container, entry, fatbin

IMAGES = [("sm", 90, "a"), ("compute", 100, "f"), ("lto", 75, "")]

if __name__ == "__main__":
    fuzz(
        [
            fatbin(IMAGES),
            fatbin(IMAGES[:1]) + bytes(40) + fatbin(IMAGES[1:]),
            container([entry(name=b"a.cu", options=b"-O3"), concatenated(IMAGES), entry(77)]),
            container([concatenated(IMAGES * 20)]) + container(),
        ]
    )
