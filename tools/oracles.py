"""Read facts of binaries with other programs, as fields of `Binary`."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pefile
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

_find_code = re.compile(r"^\t*Fatbin (\S+) code:\n\t*=+\n\t*arch = (\S+)", re.MULTILINE).findall
_ELF_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}
_KINDS = {"elf": "sm_", "ptx": "compute_", "nvvm": "lto_", "lto": "lto_"}


def newest(names: Iterable[str], prefix: str) -> str | None:
    """Return the newest version with a prefix, such as `GLIBC_`."""
    versions = [
        name.removeprefix(prefix)
        for name in names
        if re.fullmatch(re.escape(prefix) + r"[0-9]+(\.[0-9]+)+", name)
    ]
    return max(versions, key=lambda v: [int(part) for part in v.split(".")], default=None)


def elf_oracle(path: Path) -> dict[str, Any] | None:
    """Read an ELF file with pyelftools, or return None if it fails."""
    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
            dynamic = [s for s in elf.iter_segments() if isinstance(s, DynamicSegment)]
            tags: list[Any] = list(dynamic[0].iter_tags()) if dynamic else []
            sections = list(elf.iter_sections())
        except ELFError:
            return None
        versions = [
            version.name
            for section in sections
            if isinstance(section, GNUVerNeedSection)
            for _, auxiliaries in section.iter_versions()
            for version in auxiliaries
        ]
        texts = {tag.entry.d_tag: tag for tag in tags}
        path_tag = texts.get("DT_RUNPATH") or texts.get("DT_RPATH")
        runpath = ""
        if path_tag is not None:
            runpath = str(path_tag.runpath if hasattr(path_tag, "runpath") else path_tag.rpath)
        soname = texts["DT_SONAME"].soname if "DT_SONAME" in texts else None
        flags = texts["DT_FLAGS_1"].entry.d_val if "DT_FLAGS_1" in texts else 0
        is_program = any(s.header.p_type == "PT_INTERP" for s in elf.iter_segments())
        return {
            "machine": _ELF_MACHINES.get(elf["e_machine"]),
            "is_shared": elf["e_type"] == "ET_DYN"
            and bool(dynamic)
            and not flags & 0x08000000
            and (soname is not None or not is_program),
            "soname": soname,
            "needed": tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
            "runpath": tuple(part for part in runpath.split(":") if part),
            "glibc": newest(versions, "GLIBC_"),
            "libstdcxx": newest(versions, "GLIBCXX_"),
        }


def readelf_oracle(path: Path) -> dict[str, Any]:
    """Read an ELF file with binutils' readelf."""

    def readelf(option: str) -> str:
        command = ["readelf", option, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    dynamic = readelf("-dW")
    paths: dict[str, str] = dict(
        re.findall(r"\((RUNPATH|RPATH)\) .*?\[(.*?)\]$", dynamic, re.MULTILINE)
    )
    runpath = paths.get("RUNPATH", paths.get("RPATH", ""))
    sonames = re.findall(r"\(SONAME\) .*?\[(.*?)\]$", dynamic, re.MULTILINE)
    _, _, needs = readelf("-VW").partition("Version needs section")
    versions = re.findall(r"Name: (\S+)", needs)
    return {
        "soname": sonames[0] if sonames else None,
        "needed": tuple(re.findall(r"\(NEEDED\) .*?\[(.*?)\]$", dynamic, re.MULTILINE)),
        "runpath": tuple(part for part in runpath.split(":") if part),
        "glibc": newest(versions, "GLIBC_"),
        "libstdcxx": newest(versions, "GLIBCXX_"),
    }


def pe_oracle(path: Path) -> dict[str, Any] | None:
    """Read a PE image with pefile, or return None if it fails."""
    try:
        image = pefile.PE(str(path), fast_load=True)
    except pefile.PEFormatError:
        return None
    with image:
        image.parse_data_directories(
            [
                pefile.DIRECTORY_ENTRY[f"IMAGE_DIRECTORY_ENTRY_{name}"]
                for name in ("IMPORT", "DELAY_IMPORT", "EXPORT")
            ]
        )
        imports = getattr(image, "DIRECTORY_ENTRY_IMPORT", [])
        delayed = getattr(image, "DIRECTORY_ENTRY_DELAY_IMPORT", [])
        exports = getattr(image, "DIRECTORY_ENTRY_EXPORT", None)
        name = exports.name if exports is not None else None
        return {
            "machine": {0x8664: "x86_64", 0xAA64: "aarch64", 0x14C: "x86"}.get(
                image.FILE_HEADER.Machine
            ),
            "is_shared": bool(image.FILE_HEADER.Characteristics & 0x2000),
            "soname": name.decode() if name else None,
            "needed": tuple(entry.dll.decode() for entry in (*imports, *delayed)),
        }


def cuobjdump_listing(cuobjdump: Path, path: Path) -> "Counter[tuple[str, str]]":
    """Count (kind, architecture) from cuobjdump's list of files.

    The file names of machine code do not have the suffix `f` of a family.
    """
    command = [str(cuobjdump), "-all", "-lelf", "-lptx", str(path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return Counter(
        ({"cubin": "sm_", "ptx": "compute_"}[kind], architecture)
        for architecture, kind in re.findall(
            r"\.sm_(\d+[af]?)\.(cubin|ptx)$", process.stdout, re.MULTILINE
        )
    )


def cuobjdump_oracle(
    cuobjdump: Path, path: Path, *options: str
) -> "Counter[tuple[str, str]] | None":
    """Count (kind, architecture) from cuobjdump's output.

    The kind is from the heading, because cuobjdump prints `sm_` for all kinds. Returns None if
    cuobjdump cannot read the file.
    """
    command = [str(cuobjdump), *options, str(path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    images = _find_code(process.stdout)
    if process.returncode and (images or "does not contain device code" not in process.stderr):
        return None
    return Counter(
        (_KINDS.get(kind, kind), architecture.removeprefix("sm_")) for kind, architecture in images
    )
