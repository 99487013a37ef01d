"""The facts that can be read from one file's bytes."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

BinaryKind: TypeAlias = Literal["elf", "pe", "ar", "coff", "fatbin", "script"]
"""`ar` is a Unix or Microsoft library, `coff` an object file, `script` a linker script."""

Machine: TypeAlias = str
"""`x86_64`, `aarch64`, `ppc64le`, `x86`, `arm`; `elf-<number>` or `pe-<number>` for others.

Of a host: what is not for one (a cubin, BPF) has none.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSection:
    """The device code of one section of a binary, or of a file that has no sections."""

    section: str
    """Its name; empty where the code stands in no section, or the sections could not be read."""
    is_declared: bool
    """Whether it stands where device code is meant to be, so that cuobjdump sees it."""
    counts: dict[str, int]
    """Number of images by architecture: `sm_90a` machine code, `compute_90` PTX, `lto_90` NVVM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceImages:
    """The device code of one file: the sizes of its images, and how they form modules."""

    sizes: dict[str, tuple[int, int]]
    """Bytes by architecture, in the file and decompressed.

    Images that are compressed together state only their decompressed sizes.
    """
    modules: dict[str, int]
    """Number of modules by the architectures of their images: `compute_90 sm_75 sm_90*2`.

    A module is one container: the driver loads the image in it that suits the GPU best.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """What one file is and needs; every field is empty where its kind has no such thing."""

    kind: BinaryKind
    machine: Machine | None = None
    """Of an `ar` the one machine of all its objects, None where they differ or it has none."""
    is_shared: bool = False
    """ELF: a shared object that is no program; PE: a DLL."""
    soname: str | None = None
    """DT_SONAME, or the export name of a DLL."""
    needed: tuple[str, ...] = ()
    """DT_NEEDED, or the DLLs that a PE imports (delayed too), or a script's INPUT, in order."""
    runpath: tuple[str, ...] = ()
    """DT_RUNPATH, or else DT_RPATH, split at colons."""
    glibc: str | None = None
    """Newest GLIBC_ version needed, as `2.17`."""
    libstdcxx: str | None = None
    """Newest GLIBCXX_ version needed, as `3.4.21`."""
    objects: int = 0
    """`ar`: members that are neither symbol tables nor name tables."""
    imports: int = 0
    """`ar`: those of them that are short import records of a DLL."""
    device_code: tuple[CodeSection, ...] = ()
    """Sorted by section."""
    images: DeviceImages | None = None
    """None if it has no device code."""
    opens: tuple[str, ...] = ()
    """Names of other libraries that are whole strings of a library or program, sorted: a guess."""
    unread: tuple[str, ...] = ()
    """Which of `soname`, `needed`, `runpath`, `glibc`, `libstdcxx`, `opens` could not be read.

    Sorted.

    They are empty then, however much of them was seen: nobody is to take a part for the whole.
    """
    notes: tuple[str, ...] = ()
    """What was odd: a table that lies outside the file, code in an unknown kind of image."""
