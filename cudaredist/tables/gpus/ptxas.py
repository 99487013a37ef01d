"""The capabilities that a `ptxas` knows, from its text constants; nothing of it is run.

Two tables of the program name them: its targets (`compute_90a`, `lto_90a`) and the macros of its
profiles (`-D__CUDA_ARCH__=90a0`), behind which the architecture's name stands. Both are searched,
and must agree; a shorter table is never returned.
"""

import re
import struct
from collections.abc import Mapping
from typing import NoReturn

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.tables.gpus.capability import Capability

PTXAS_PATHS = ("bin/ptxas", "bin/ptxas.exe")
"""How the path of the program ends, on Linux and on Windows."""

_BLOCK = 1 << 20
_HEAD = 4096
# The longest match has 16 + 6 + 1 + 1 + 8 + 32 + 1 bytes.
_OVERLAP = 128
_ELF = b"\x7fELF\x02\x01"
_DOS = b"MZ"

# No NUL is asked for in front: a compiler may store such a text as the end of a longer one.
_find_targets = re.compile(rb"(?:compute|lto)_([1-9][0-9]{1,5})([a-z]?)\x00").finditer
_find_profiles = re.compile(
    rb"-D__CUDA_ARCH__=([1-9][0-9]{1,5}?)([a-z]?)0\x00(?:\x00{0,7}([A-Z][A-Za-z]{2,30})\x00)?"
).finditer


class PtxasScan:
    """Takes the bytes of a `ptxas` in order and gives its capabilities at the end.

    Chunks may have any size; memory is bounded.
    """

    def __init__(self) -> None:
        self._head = b""
        self._size = 0
        self._pending = bytearray()
        self._targets: set[tuple[bytes, bytes]] = set()
        self._profiles: dict[tuple[bytes, bytes], bytes | None] = {}

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._size += len(chunk)
        if len(self._head) < _HEAD:
            self._head += chunk[: _HEAD - len(self._head)]
        for start in range(0, len(chunk), _BLOCK):
            self._pending += chunk[start : start + _BLOCK]
            if len(self._pending) >= _BLOCK:
                self._search(len(self._pending) - _OVERLAP)

    def finish(self) -> dict[Capability, str]:
        """Return the capabilities and the name of each one's architecture, sorted.

        Raises `InvalidFileError` where the file is no program or cut off, names none, or where its
        two tables disagree.
        """
        self._search(len(self._pending))
        end = _end_of_image(self._head)
        if end is None:
            _refuse("neither a program for Linux nor for Windows")
        if end > self._size:
            _refuse(f"cut off: {self._size:,} bytes of at least {end:,}")
        targets = {_capability(found) for found in self._targets}
        profiles = {_capability(found): name for found, name in self._profiles.items()}
        _check_agreement(targets, set(profiles))
        return _with_families(profiles)

    def _search(self, before: int) -> None:
        """Look at what begins before a place; what begins later waits for the bytes behind it."""
        for match in _find_targets(self._pending):
            if match.start() < before:
                self._targets.add((match[1], match[2]))
        for match in _find_profiles(self._pending):
            if match.start() < before:
                self._profiles.setdefault((match[1], match[2]), match[3])
        del self._pending[:before]


def _refuse(message: str) -> NoReturn:
    raise InvalidFileError("ptxas", [Problem("", message)])


def _capability(found: tuple[bytes, bytes]) -> Capability:
    digits, suffix = (part.decode("ascii") for part in found)
    capability = Capability.of_target(digits, suffix)
    if suffix and capability.variant is None:
        _refuse(f"{capability} has the unknown variant {suffix}; known are a and f")
    return capability


def _check_agreement(targets: set[Capability], profiles: set[Capability]) -> None:
    if not targets and not profiles:
        _refuse("names no compute capability; its text constants are missing")
    one_sided = targets ^ profiles
    if one_sided:
        names = ", ".join(map(str, sorted(one_sided)))
        _refuse(f"its table of targets and its table of profiles disagree about {names}")
    orphans = sorted(name for name in targets if name.base not in targets)
    if orphans:
        _refuse(f"names {orphans[0]}, but not {orphans[0].base}")


def _with_families(profiles: Mapping[Capability, bytes | None]) -> dict[Capability, str]:
    """Name the architectures: in file order, a name holds until the next one."""
    names: dict[Capability, str] = {}
    current: str | None = None
    for capability, name in profiles.items():
        if capability.variant is not None:
            continue
        current = name.decode("ascii") if name is not None else current
        if current is None:
            _refuse(f"no architecture's name stands behind {capability}")
        names[capability] = current
    return {capability: names[capability.base] for capability in sorted(profiles)}


def _end_of_image(head: bytes) -> int | None:
    """Return how long a program is at least, by its own tables; None where it is no program."""
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
            first = place + 24 + size
            ends = (
                sum(struct.unpack_from("<II", head, first + 40 * number + 16))
                for number in range(count)
            )
            return max(ends, default=0)
    except struct.error:
        _refuse("cut off within its header")
    return None
