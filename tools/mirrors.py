"""Compare the facts of a mirror's archives with other programs.

`python -m tools.mirrors CACHE CUOBJDUMP MIRROR...` prints the counts and every difference. Run
process-manifests for the mirrors first, with the same cache folder.
"""

import json
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cudaredist.binaries.examine_file import examine_file
from cudaredist.binaries.file_facts import Binary, CodeSection
from cudaredist.features.derive import derive
from cudaredist.features.facts import facts_from_bytes
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import FACTS_KIND
from tools.oracles import (
    cuobjdump_listing,
    cuobjdump_oracle,
    elf_oracle,
    pe_oracle,
    readelf_oracle,
)
from tools.symbol_oracles import elf_symbols, pe_symbols, pefile_symbols, readelf_symbols

_ELF, _MZ, _AR = b"\x7fELF", b"MZ", b"!<arch>\n"


class Comparison:
    """Counts of equal and different files, and all differences."""

    def __init__(self, cuobjdump: Path | None) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []
        self.embedded: list[str] = []
        """Files with device code in other sections than those that cuobjdump reads."""
        self._cuobjdump = cuobjdump

    def mirror(self, root: Path, cache: Path) -> None:
        """Compare every archive of every manifest in a mirror."""
        for manifest in sorted(root.rglob("redistrib_*.json")):
            for archive in archives(json.loads(manifest.read_bytes())):
                path = manifest.parent / archive["relative_path"]
                with tempfile.TemporaryDirectory() as folder:
                    unpack(path, Path(folder))
                    self.archive(Path(folder), Cache(cache), archive["sha256"], path.name)

    def archive(self, unpacked: Path, cache: Cache, sha256: str, name: str) -> None:
        """Compare one archive's facts and outputs with its unpacked tree."""
        facts = facts_from_bytes(cache.get(FACTS_KIND, sha256) or b"")
        assert facts is not None, f"{name} was not inspected"
        self.counts["archives"] += 1
        on_disk = sorted(
            path for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink()
        )
        members = {entry.name: entry for entry in facts.members if entry.kind == "file"}
        assert set(members) == {path.relative_to(unpacked).as_posix() for path in on_disk}
        for path in on_disk:
            entry = members[path.relative_to(unpacked).as_posix()]
            assert entry.size == path.stat().st_size
            self.binary(path, entry.binary)
        (top,) = unpacked.iterdir()
        ours = {name: size.files for name, size in derive(facts).outputs.items() if size.files}
        self._count("outputs", name, dict(plain_outputs(top)), ours)

    def device_code_below(self, root: Path) -> None:
        """Compare the device code of every binary in a folder."""
        for path in sorted(root.rglob("*")):
            is_file = path.is_file() and not path.is_symlink()
            if is_file and self._cuobjdump and beginning(path).startswith((_ELF, _AR)):
                self.counts["files"] += 1
                self.device_code(path, examine_file(path), self._cuobjdump)

    def binary(self, path: Path, facts: Binary | None) -> None:
        """Compare a file with every program that supports its format."""
        head = beginning(path)
        if head.startswith(_ELF):
            assert facts is not None
            for program, oracle in (("pyelftools", elf_oracle), ("readelf", readelf_oracle)):
                expected = oracle(path)
                assert expected is not None, f"{program} cannot read {path.name}"
                self._count(program, path.name, expected, {k: getattr(facts, k) for k in expected})
            self._count("readelf symbols", path.name, readelf_symbols(path), elf_symbols(facts))
        elif head.startswith(_MZ):
            expected = pe_oracle(path)
            if expected is not None:
                assert facts is not None
                ours = {k: getattr(facts, k) for k in expected}
                self._count("pefile", path.name, expected, ours)
                symbols = pefile_symbols(path)
                self._count("pefile symbols", path.name, symbols, pe_symbols(facts))
        if self._cuobjdump is not None and head.startswith((_ELF, _AR, _MZ)):
            self.device_code(path, facts, self._cuobjdump)

    def device_code(self, path: Path, facts: Binary | None, cuobjdump: Path) -> None:
        """Compare device code in both modes of cuobjdump.

        If cuobjdump cannot read the file, counts the reason.
        """
        before = self.counts["cuobjdump -all: equal"]
        sections = facts.device_code if facts is not None else ()
        declared = [section for section in sections if section.is_declared]
        first = [section for section in declared if section.section == ".nv_fatbin"] or declared
        self.modules(path, facts)
        for mode, options, ours in (
            ("cuobjdump", (), total(first)),
            ("cuobjdump -all", ("-all",), total(declared)),
        ):
            theirs = cuobjdump_oracle(cuobjdump, path, *options)
            if path.suffix.lower() in {".lib", ".dll", ".exe"}:
                # cuobjdump on Linux finds nothing in files for Windows, or fails.
                assert not theirs, f"{mode} can read {path.name}, a file for Windows"
                self.counts[f"{mode}: for Windows"] += 1
            elif theirs is None:
                self.counts[f"{mode}: cannot read"] += 1
                self.differences.append(f"{mode} cannot read {path.name}")
            else:
                self.counts[f"{mode}: images"] += sum(ours.values())
                self._count(mode, path.name, theirs, ours)
        if self.counts["cuobjdump -all: equal"] > before:
            listing = cuobjdump_listing(cuobjdump, path)
            ours = without_families(total(declared))
            self._count("cuobjdump -lelf -lptx", path.name, without_families(listing), ours)
        if len(declared) < len(sections):
            self.embedded.append(path.name)

    def modules(self, path: Path, facts: Binary | None) -> None:
        """Compare the images of all modules with those of all sections."""
        if facts is None or facts.images is None:
            return
        counts: Counter[tuple[str, str]] = Counter()
        for key, times in facts.images.modules.items():
            for image in key.split():
                name, _, repeated = image.partition("*")
                kind, underscore, architecture = name.partition("_")
                counts[kind + underscore, architecture] += times * int(repeated or 1)
        self._count("modules", path.name, total(list(facts.device_code)), counts)

    def _count(self, program: str, name: str, expected: Any, ours: Any) -> None:
        if expected == ours:
            self.counts[f"{program}: equal"] += 1
        else:
            self.counts[f"{program}: different"] += 1
            self.differences.append(f"{program}, {name}: {expected} is not {ours}")


def archives(manifest: Any) -> Iterator[dict[str, str]]:
    """Yield every archive of a flat manifest."""
    for package in manifest.values():
        if isinstance(package, dict):
            yield from (entry for entry in package.values() if isinstance(entry, dict))


def beginning(path: Path) -> bytes:
    """Return the first bytes of a file."""
    with path.open("rb") as file:
        return file.read(8)


def unpack(path: Path, folder: Path) -> None:
    """Unpack an archive with the standard library."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)  # noqa: S202 - our own archive
    else:
        with tarfile.open(path) as tar:
            tar.extractall(folder, filter="tar")


def total(sections: list[CodeSection]) -> Counter[tuple[str, str]]:
    """Count images by kind and architecture, like the oracle."""
    counts: Counter[tuple[str, str]] = Counter()
    for section in sections:
        for name, count in section.counts.items():
            kind, underscore, architecture = name.partition("_")
            counts[kind + underscore, architecture] += count
    return counts


def without_families(counts: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Return the counts of SASS and PTX, without family suffixes."""
    merged: Counter[tuple[str, str]] = Counter()
    for (kind, architecture), count in counts.items():
        if kind in {"sm_", "compute_"}:
            merged[kind, architecture.removesuffix("f")] += count
    return merged


def plain_outputs(top: Path) -> Counter[str]:
    """Count the files of each output by simple rules, from an unpacked tree.

    Supports the contents of NVIDIA's wheels, in the structure of its archives.
    """
    files = [path for path in top.rglob("*") if path.is_file() and not path.is_symlink()]
    relative = {path: path.relative_to(top).as_posix() for path in files}
    has_lib = any(
        name.startswith(("lib/", "lib64/")) and "/stubs/" not in name and is_linked(path)
        for path, name in relative.items()
    )
    has_bin = any(
        name.startswith("bin/") and (path.stat().st_mode & 0o111 or is_program(path))
        for path, name in relative.items()
    )
    counts: Counter[str] = Counter()
    for path, name in relative.items():
        folder = name.split("/")[0] if "/" in name else ""
        if folder == "include":
            output = "include"
        elif name.startswith(("lib/pkgconfig/", "lib/cmake/", "share/pkgconfig/")):
            output = "dev"
        elif "/stubs/" in name:
            output = "stubs"
        elif folder and (path.suffix == ".a" or (path.suffix == ".lib" and not is_linked(path))):
            output = "static"
        elif folder in {"lib", "lib64"} and has_lib:
            output = "lib"
        elif folder and path.suffix in {".pc", ".cmake"}:
            output = "dev"
        elif folder == "bin" and has_bin:
            output = "bin"
        else:
            output = "samples" if folder == "samples" else "out"
        counts[output] += 1
    return counts


def is_linked(path: Path) -> bool:
    """Check if a file is a shared library or an import library."""
    data = path.read_bytes()
    if data.startswith(_ELF):
        return bool((elf_oracle(path) or {}).get("is_shared"))
    if data.startswith(_AR) and path.suffix == ".lib":
        return data.count(b"__IMPORT_DESCRIPTOR_") > 0 and b"\0\0\xff\xff\0\0" in data
    return path.suffix == ".dll"


def is_program(path: Path) -> bool:
    """Check if a file is a binary, or has a program's suffix of Windows."""
    has_suffix = path.suffix in {".exe", ".dll", ".bat", ".cmd", ".ps1"}
    return has_suffix or beginning(path).startswith((_ELF, _MZ))


def main() -> None:
    """Compare mirrors, and print counts and differences."""
    cache, cuobjdump, *mirrors = map(Path, sys.argv[1:])
    comparison = Comparison(cuobjdump)
    for mirror in mirrors:
        comparison.mirror(mirror, cache)
    for label, count in sorted(comparison.counts.items()):
        print(f"{count:8,} {label}")
    print(*comparison.differences, sep="\n")
    print("embedded device code:", *comparison.embedded)


if __name__ == "__main__":
    main()
