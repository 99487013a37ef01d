"""Reader of machine code for GPUs that is not in a container ("cubin").

A cubin is an ELF file for machine 190, with the architecture in its flags. A program can load it
from a file, or from its own data. Cubins are found by the first bytes of their header.
"""

from collections import Counter
from collections.abc import Iterable
from struct import Struct

from cudaredist.binaries.file_content import BLOCK, FileContent, UnreadableError, outside
from cudaredist.binaries.file_facts import DeviceImages
from cudaredist.primitives import natural_order

_MAGIC = b"\x7fELF\x02\x01\x01"
"""ELF of 64 bits, little-endian, version 1. No cubin has another form."""
_HEADER = Struct("<7xBB7xHH4x8xQQIHHHHHH")
_KINDS = frozenset({1, 2})
"""Relocatable code, and code that can be loaded."""
_MACHINE = 190
_SHIFTED = 8
"""The first version of the ABI that has the architecture in the second byte of the flags."""
_CUBIN_LIMIT = 1 << 20
"""Maximum cubins, and other ELF files, in a file. Real files have at most some hundreds."""


def read_cubins(content: FileContent, skipped: Iterable[tuple[int, int]]) -> DeviceImages | None:
    """Return the cubins outside of some ranges, None without any. Raises `UnreadableError`."""
    counts, sizes = Counter[str](), Counter[str]()
    hits = position = 0
    for start, end in outside(skipped, content.size):
        position = max(position, start)
        while len(data := content.read(position, min(BLOCK, end - position))) >= len(_MAGIC):
            at = data.find(_MAGIC)
            if at < 0:
                position += len(data) - len(_MAGIC) + 1
                continue
            position += at
            hits += 1
            if hits > _CUBIN_LIMIT:
                message = f"device code not read to the end: more than {_CUBIN_LIMIT:,} cubins"
                raise UnreadableError(message)
            cubin = _architecture_and_size(content.read(position, _HEADER.size))
            if cubin is None or position + cubin[1] > content.size:
                position += len(_MAGIC)
                continue
            name, size = cubin
            counts[name] += 1
            sizes[name] += size
            position += size
    if not counts:
        return None
    names = sorted(counts, key=natural_order)
    by_name = {name: (sizes[name], sizes[name]) for name in names}
    return DeviceImages(sizes=by_name, modules={name: counts[name] for name in names})


def _architecture_and_size(header: bytes) -> tuple[str, int] | None:
    """Return the architecture and size of a cubin, None for another ELF file."""
    if len(header) < _HEADER.size:
        return None
    _, abi, kind, machine, programs, sections, flags, *sizes = _HEADER.unpack(header)
    own, program, program_count, section, section_count, _ = sizes
    if machine != _MACHINE or kind not in _KINDS or own != _HEADER.size:
        return None
    is_shifted = abi >= _SHIFTED
    number = (flags >> 8 if is_shifted else flags) & 0xFF
    suffix = "a" if flags & (0x8 if is_shifted else 0x800) else ""
    ends = (programs + program * program_count, sections + section * section_count)
    return f"sm_{number}{suffix}", max(own, *ends)
