"""The facts of one file's bytes."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cudaredist.binaries.symbols import SymbolTable

BinaryKind: TypeAlias = Literal["elf", "pe", "ar", "coff", "fatbin", "script"]
"""`ar` is a Unix or Microsoft library, `coff` an object file, `script` a linker script."""

Machine: TypeAlias = str
"""`x86_64`, `aarch64`, `ppc64le`, `x86`, `arm`, or `elf-<number>` or `pe-<number>` for others.

It is the machine of a host. Files that do not run on a host (a cubin, BPF) have none.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSection:
    """The device code of one section.

    A file without sections has one of these.
    """

    section: str
    """The section's name. Empty if the code is not in a section or the sections are unreadable."""
    is_declared: bool
    """Whether the section is one for device code. cuobjdump finds only these."""
    counts: dict[str, int]
    """Number of images by architecture: `sm_90a` machine code, `compute_90` PTX, `lto_90` NVVM."""
    kernels: dict[str, int] = field(default_factory=dict)
    """Number of modules with kernels, by the architectures of their images.

    nvcc adds a module without kernels for its default architecture.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceImages:
    """The sizes and modules of one file's device code."""

    sizes: dict[str, tuple[int, int]]
    """Bytes by architecture, in the file and decompressed.

    Images that are compressed together state only their decompressed sizes.
    """
    modules: dict[str, int]
    """Number of modules by the architectures of their images: `compute_90 sm_75 sm_90*2`.

    A module is one container. The driver loads its best image for the GPU.
    """
    ptx: dict[str, str] = field(default_factory=dict)
    """The newest version of the PTX in modules with PTX, such as `8.7`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """The facts of one file.

    A field is empty if it does not apply.
    """

    kind: BinaryKind
    machine: Machine | None = None
    """The machine. None if an `ar` contains objects of different machines or none."""
    is_shared: bool = False
    """ELF: a shared object that is not a program. PE: a DLL."""
    soname: str | None = None
    """DT_SONAME, or the export name of a DLL."""
    needed: tuple[str, ...] = ()
    """DT_NEEDED, the imported DLLs of a PE (with delayed ones), or a script's INPUT, in order."""
    runpath: tuple[str, ...] = ()
    """DT_RUNPATH, otherwise DT_RPATH, split at colons."""
    is_rpath: bool = False
    """Whether the run path is DT_RPATH, which also applies to the libraries that the file needs."""
    glibc: str | None = None
    """Newest required GLIBC_ version, such as `2.17`."""
    libstdcxx: str | None = None
    """Newest required GLIBCXX_ version, such as `3.4.21`."""
    objects: int = 0
    """`ar`: members that are neither symbol tables nor name tables."""
    imports: int = 0
    """`ar`: the number of these members that are short import records of a DLL."""
    device_code: tuple[CodeSection, ...] = ()
    """Sorted by section."""
    images: DeviceImages | None = None
    """The device code in containers, None without any."""
    cubins: DeviceImages | None = None
    """Machine code outside of containers. Each image is a module."""
    opens: tuple[str, ...] = ()
    """Names of other libraries in the strings of a library or program, sorted.

    They are a guess.
    """
    symbols: SymbolTable | None = None
    """None if it has no dynamic symbols."""
    unread: tuple[str, ...] = ()
    """Unreadable facts, sorted.

    Of `soname`, `needed`, `runpath`, `glibc`, `libstdcxx`, `opens` and `symbols`.

    These facts are empty, even if a part was read, because a part could be mistaken for the whole.
    """
    notes: tuple[str, ...] = ()
    """Irregularities, for example a table outside the file, or an image of an unknown kind."""
