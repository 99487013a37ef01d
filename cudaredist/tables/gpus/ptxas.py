"""Capabilities in a `ptxas`, from its text constants, without running it.

The program has two tables with capabilities: its targets (`compute_90a`, `lto_90a`) and the macros
of its profiles (`-D__CUDA_ARCH__=90a0`), each followed by the architecture's name. Both are read
and must agree, so the result is never incomplete.
"""

import re
import struct
from collections.abc import Mapping
from typing import NoReturn

from cudaredist.binaries.file_content import BLOCK, FileContent
from cudaredist.errors import InvalidFileError
from cudaredist.tables.gpus.capability import Capability

PTXAS_PATHS = ("bin/ptxas", "bin/ptxas.exe")
"""End of the program's path, on Linux and on Windows."""

_HEAD = 4096
# The longest match has 16 + 6 + 1 + 1 + 8 + 32 + 1 bytes.
_OVERLAP = 128
_ELF = b"\x7fELF\x02\x01"
_DOS = b"MZ"

# No NUL is required before a text: compilers may store it as the end of a longer one.
_find_targets = re.compile(rb"(?:compute|lto)_([1-9][0-9]{1,5})([a-z]?)\x00").finditer
_find_profiles = re.compile(
    rb"-D__CUDA_ARCH__=([1-9][0-9]{1,5}?)([a-z]?)0\x00(?:\x00{0,7}([A-Z][A-Za-z]{2,30})\x00)?"
).finditer


def read_ptxas(file: FileContent) -> dict[Capability, str]:
    """Return the capabilities in a `ptxas` with their architectures' names, sorted.

    Raises `InvalidFileError` if the file is not a program or is truncated, or if its two tables are
    empty or disagree.
    """
    target_texts: set[tuple[bytes, bytes]] = set()
    profile_texts: dict[tuple[bytes, bytes], bytes | None] = {}
    step = BLOCK - _OVERLAP
    for start in range(0, file.size, step):
        data = file.read(start, BLOCK)
        for match in _find_targets(data):
            target_texts.add((match[1], match[2]))
        for match in _find_profiles(data):
            # The name of a later one may be cut off, and the next block has it.
            if match.start() < step:
                profile_texts.setdefault((match[1], match[2]), match[3])
    end = _end_of_image(file.read(0, _HEAD))
    if end is None:
        _refuse("neither a Linux nor a Windows program")
    if end > file.size:
        _refuse(f"truncated: {file.size:,} bytes of at least {end:,}")
    targets = {_capability(text) for text in target_texts}
    profiles = {_capability(text): name for text, name in profile_texts.items()}
    _check_agreement(targets, set(profiles))
    return _with_families(profiles)


def _refuse(message: str) -> NoReturn:
    raise InvalidFileError.of("ptxas", message)


def _capability(text: tuple[bytes, bytes]) -> Capability:
    digits, suffix = (part.decode("ascii") for part in text)
    capability = Capability.of_target(digits, suffix)
    if suffix and capability.variant is None:
        _refuse(f"{capability} has the unknown variant {suffix}; known variants are a and f")
    return capability


def _check_agreement(targets: set[Capability], profiles: set[Capability]) -> None:
    if not targets and not profiles:
        _refuse("contains no compute capability; its text constants are missing")
    one_sided = targets ^ profiles
    if one_sided:
        names = ", ".join(map(str, sorted(one_sided)))
        _refuse(f"its table of targets and its table of profiles disagree about {names}")
    orphans = sorted(name for name in targets if name.base not in targets)
    if orphans:
        _refuse(f"contains {orphans[0]}, but not {orphans[0].base}")


def _with_families(profiles: Mapping[Capability, bytes | None]) -> dict[Capability, str]:
    """Return the architectures by file order, each until the next."""
    names: dict[Capability, str] = {}
    current: str | None = None
    for capability, name in profiles.items():
        if capability.variant is not None:
            continue
        current = name.decode("ascii") if name is not None else current
        if current is None:
            _refuse(f"no architecture's name follows {capability}")
        names[capability] = current
    return {capability: names[capability.base] for capability in sorted(profiles)}


def _end_of_image(head: bytes) -> int | None:
    """Return a program's minimum size from its headers, or None."""
    try:
        if head.startswith(_ELF):
            (sections,) = struct.unpack_from("<Q", head, 0x28)
            size, count = struct.unpack_from("<HH", head, 0x3A)
            return int(sections + size * count)
        if head.startswith(_DOS):
            (place,) = struct.unpack_from("<I", head, 0x3C)
            signature, count, size = struct.unpack_from("<4s2xH12xH", head, place)
            if signature != b"PE\0\0":
                return None
            # 24 bytes of header, the optional one, then 40 bytes for each section.
            first = place + 24 + size + 16
            ends = (
                sum(struct.unpack_from("<II", head, first + 40 * section))
                for section in range(count)
            )
            return max(ends, default=0)
    except struct.error:
        _refuse("truncated in its header")
    return None
