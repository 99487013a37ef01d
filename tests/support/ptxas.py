"""Files with the text constants of ptxas for three platforms. None of them can run."""

import struct
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Literal

from cudaredist.binaries.file_content import FileContent
from cudaredist.formats.tables import BinarySource
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import KnownGpus
from cudaredist.tables.gpus.ptxas import read_ptxas

Platform = Literal["linux", "sbsa", "windows"]

# Number and letter, and the architecture's name if one follows, in file order.
Profile = tuple[str, str]


def profiles_in(text: str) -> Sequence[Profile]:
    """Return the profiles in a text such as `90 Hopper, 90a`."""
    return tuple((name, family) for name, _, family in (p.partition(" ") for p in text.split(", ")))


PROFILES_11_8 = profiles_in("35 Kepler, 37, 70 Volta, 72, 75 Turing, 80 Ampere, 90 Hopper")
PROFILES_12_9 = profiles_in(
    "70 Volta, 72, 75 Turing, 80 Ampere, 90 Hopper, 90a, 100 Blackwell, 100a, 100f, "
    "101, 101a, 101f, 103, 103a, 103f"
)
# Not in numeric order, as from CUDA 13.0.
PROFILES_13_4 = profiles_in(
    "75 Turing, 80 Ampere, 90 Hopper, 90a, 100 Blackwell, 100a, 100f, 110, 110a, 110f, "
    "103, 103a, 103f, 107 Rubin, 107a, 107f"
)


def ptxas(
    profiles: Iterable[Profile] = PROFILES_12_9,
    *,
    platform: Platform = "linux",
    without_target: str = "",
    without_profile: str = "",
    extra: bytes = b"",
    filler: int = 300,
) -> bytes:
    """Return a file with these constants between similar ones."""
    padding = b"\0" if platform == "linux" else b"\0" * 5
    # Names of machine code are not reliable: real files have more and fewer of them.
    parts = [
        b"\x90" * filler,
        b"sm_11\0sm_35\0glued to it compute_",
        b"compute_\0-D__CUDA_ARCH__=\0",
    ]
    for name, family in profiles:
        number, letter = name.rstrip("af").encode(), name[len(name.rstrip("af")) :].encode()
        target = [b"" if platform == "sbsa" else b"text compute_%b\0" % name.encode()]
        target += [b"lto_%b\0" % name.encode()]
        if name == without_target:
            target = []
        profile = b"-D__CUDA_ARCH__=%b%b0%b" % (number, letter, padding)
        if family:
            profile += family.encode() + b"\0"
        if name == without_profile:
            profile = b""
        parts += [profile, *target] if platform == "linux" else [*target, profile]
    parts += [b"Profile option\0", extra, b"\xcc" * filler]
    return image(b"".join(parts), platform)


def image(body: bytes, platform: Platform) -> bytes:
    """Put a body into a program with tables that contain its end."""
    if platform == "windows":
        head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
        head += b"PE\0\0" + struct.pack("<HH12xHH", 0x8664, 1, 16, 0) + bytes(16)
        start = len(head) + 40
        return head + struct.pack("<8sIIII16x", b".rdata", len(body), 0, len(body), start) + body
    machine = 62 if platform == "linux" else 183
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 2, 0
    )
    return head + body + bytes(128)


def scan(data: bytes) -> dict[Capability, str]:
    """Return the capabilities of a ptxas."""
    return read_ptxas(FileContent(BytesIO(data), len(data), "ptxas"))


def known_gpus(*profiles: Profile) -> KnownGpus:
    """Return the capabilities of a CUDA release."""
    source = BinarySource(
        channel="redist",
        package="cuda_nvcc",
        archive_sha256="a" * 64,
        path="bin/ptxas",
        file_sha256="c" * 64,
    )
    return KnownGpus(source=source, families=scan(ptxas(profiles)))


def three_releases() -> dict[str, KnownGpus]:
    """Return the capabilities of three CUDA releases."""
    profiles = {"11.8.0": PROFILES_11_8, "12.9.0": PROFILES_12_9, "13.4.0": PROFILES_13_4}
    return {label: known_gpus(*names) for label, names in profiles.items()}
