"""The symbols that readelf and pefile find in a file, in the words of our facts."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import TypeAlias

import pefile

from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.symbols import DEFINED, EXPORTED, UNDEFINED, plain_name, unpack_groups

Symbols: TypeAlias = Counter[tuple[str, ...]]
_SECTIONS = {"UND": UNDEFINED, "ABS": "absolute", "COM": "common"}
_row = re.compile(
    r"\s*\d+: [0-9a-f]+\s+(?:\d+|0x[0-9a-f]+)\s+(\S+)\s+(\S+)\s+(\S+)\s+"
    r"(?:\[[^]]*\]\s+)?(\S+)\s(.+)"
)


def readelf_symbols(path: Path) -> Symbols:
    """Count the symbols of a file: name with version, binding, type, visibility, and place."""
    command = ["readelf", "--dyn-syms", "-W", str(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    found: Symbols = Counter()
    for line in done.stdout.decode(errors="backslashreplace").splitlines():
        match = _row.fullmatch(line.replace("<OS specific>: 10", "UNIQUE"))
        if match is None or match[2] == "LOCAL" or not match[5].strip():
            continue
        kind, binding, visibility, section, name = match.groups()
        name = re.sub(r" \(\d+\)$", "", name.strip())
        place = _SECTIONS.get(section, DEFINED)
        found[name, binding.lower(), kind.lower(), visibility.lower(), place] += 1
    return found


def elf_symbols(binary: Binary) -> Symbols:
    """Count the symbols of our facts in the same form."""
    found: Symbols = Counter()
    for group in unpack_groups(binary.symbols.packed) if binary.symbols else ():
        if group.kind not in {DEFINED, UNDEFINED}:
            continue
        binding, kind, visibility, at, sign, version, _ = group.properties
        place = UNDEFINED if group.kind == UNDEFINED else at or DEFINED
        for name in group.names:
            # readelf leaves out a version that has the symbol's name.
            full = name if version in {"", name} else name + sign + version
            found[full, binding, kind, visibility, place] += 1
    return found


def pefile_symbols(path: Path) -> Symbols | None:
    """Count exports with ordinal and forwarder, and imports with DLL; None if it is unreadable."""
    try:
        image = pefile.PE(str(path), fast_load=True)
    except pefile.PEFormatError:
        return None
    found: Symbols = Counter()
    with image:
        names = ("IMPORT", "DELAY_IMPORT", "EXPORT")
        image.parse_data_directories(
            [pefile.DIRECTORY_ENTRY[f"IMAGE_DIRECTORY_ENTRY_{name}"] for name in names]
        )
        exports = getattr(image, "DIRECTORY_ENTRY_EXPORT", None)
        for one in exports.symbols if exports else ():
            forwarder = plain_name(one.forwarder or b"")
            found["export", plain_name(one.name or b""), str(one.ordinal), forwarder] += 1
        for delayed, attribute in (
            ("", "DIRECTORY_ENTRY_IMPORT"),
            ("delayed", "DIRECTORY_ENTRY_DELAY_IMPORT"),
        ):
            for entry in getattr(image, attribute, ()):
                for one in entry.imports:
                    # pefile looks up names that a file does not have, of some system DLLs.
                    by_name = one.name and not one.import_by_ordinal
                    name = plain_name(one.name) if by_name else f"#{one.ordinal}"
                    found["import", plain_name(entry.dll), delayed, name] += 1
    return found


def pe_symbols(binary: Binary) -> Symbols:
    """Count the exports and imports of our facts in the same form."""
    found: Symbols = Counter()
    for group in unpack_groups(binary.symbols.packed) if binary.symbols else ():
        for name in group.names:
            if group.kind == EXPORTED:
                plain, _, ordinal = name.rpartition(" ")
                found["export", plain, ordinal, *group.properties] += 1
            else:
                found["import", *group.properties, name] += 1
    return found
