"""From facts to features: what one archive provides, by rule.

Only what follows from the archive's own bytes stands here. To add a detector, write a function of
the tree and give it a field in `schema.ArchiveFeatures` and a line in `derive`; raise `RULES`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from cudaredist.binaries import architecture_key
from cudaredist.features.facts import Entry, Facts
from cudaredist.features.placement import declared_outputs, is_stub, library_kind, place
from cudaredist.features.tree import Tree, build_tree
from cudaredist.schema import (
    ArchiveFeatures,
    CodeTargets,
    DeviceCode,
    Library,
    OutputName,
    OutputSize,
    Program,
)

RULES = 1
"""Raised whenever other features follow from the same facts."""

_NOTES = 100
_is_cuda_version = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?").fullmatch
_MODULE_FOLDER = re.compile(r"^(?:python|(?:.*/)?(?:site|dist)-packages)/")
_MODULE_SUFFIXES = (".py", ".so", ".pyd")


def derive(facts: Facts) -> ArchiveFeatures:
    """Return what an archive provides."""
    tree = build_tree(facts.members)
    declared = declared_outputs(tree.files)
    versions = _versions_in_lib(tree.files)
    machine = _machine(tree)
    notes = [*tree.notes, *_binary_notes(tree.files)]
    more = len(notes) - _NOTES
    return ArchiveFeatures(
        machine=machine,
        outputs=_sizes(tree.files, declared),
        libraries=tuple(_libraries(tree, declared)),
        programs=tuple(_programs(tree, declared)),
        device_code=_device_code(tree.files),
        cuda_versions_in_lib=versions,
        unnested={version: _unnested(tree.files, version) for version in versions},
        python=_python(tree.files),
        notes=(*notes[:_NOTES], f"and {more} more") if more > 0 else tuple(notes),
    )


def _sizes(
    files: Mapping[str, Entry], declared: frozenset[OutputName]
) -> dict[OutputName, OutputSize]:
    counts: Counter[OutputName] = Counter()
    sizes: Counter[OutputName] = Counter({"out": 0})
    for path, entry in files.items():
        output = place(path, library_kind(path, entry), declared)
        counts[output] += 1
        sizes[output] += entry.size
    return {
        output: OutputSize(files=counts[output], bytes=sizes[output]) for output in sorted(sizes)
    }


def _unnested(files: Mapping[str, Entry], version: str) -> dict[OutputName, OutputSize]:
    """Return the outputs once `lib/<version>` replaced all of `lib`."""
    nested = f"lib/{version}/"
    moved = {
        f"lib/{path.removeprefix(nested)}" if path.startswith(nested) else path: entry
        for path, entry in files.items()
        if path.startswith(nested) or not path.startswith("lib/")
    }
    return _sizes(moved, declared_outputs(moved))


def _versions_in_lib(files: Iterable[str]) -> tuple[str, ...]:
    found = {
        parts[1]
        for parts in (path.split("/", 2) for path in files)
        if len(parts) > 2 and parts[0] == "lib" and _is_cuda_version(parts[1])  # noqa: PLR2004 - lib, version, rest
    }
    return tuple(sorted(found, key=lambda text: [int(part) for part in text.split(".")]))


def _machine(tree: Tree) -> str | None:
    machines = Counter(
        entry.binary.machine
        for entry in tree.files.values()
        if entry.binary is not None and entry.binary.machine is not None
    )
    if len(machines) > 1:
        counted = ", ".join(f"{machine} ({machines[machine]})" for machine in sorted(machines))
        tree.notes.append(f"binaries for several machines: {counted}")
        return None
    return next(iter(machines), None)


def _libraries(tree: Tree, declared: frozenset[OutputName]) -> Iterable[Library]:
    links = defaultdict(list)
    for link, end in tree.links.items():
        links[end].append(link)
    for path, entry in sorted(tree.files.items()):
        binary = entry.binary
        if binary is None or not binary.is_shared:
            continue
        yield Library(
            path=path,
            output=place(path, library_kind(path, entry), declared),
            soname=binary.soname,
            links=tuple(sorted(links[path])),
            needed=binary.needed,
            runpath=binary.runpath,
            stub=is_stub(path),
            glibc=binary.glibc,
            libstdcxx=binary.libstdcxx,
        )


def _programs(tree: Tree, declared: frozenset[OutputName]) -> Iterable[Program]:
    for path, entry in sorted(tree.files.items()):
        binary = entry.binary
        is_program = binary is not None and binary.kind in {"elf", "pe"} and not binary.is_shared
        if binary is None or not is_program or not binary.needed:
            continue
        yield Program(
            path=path,
            output=place(path, library_kind(path, entry), declared),
            needed=binary.needed,
            runpath=binary.runpath,
            glibc=binary.glibc,
            libstdcxx=binary.libstdcxx,
        )


def _device_code(files: Mapping[str, Entry]) -> dict[str, DeviceCode]:
    declared: dict[str, set[str]] = defaultdict(set)
    embedded: dict[str, set[str]] = defaultdict(set)
    for path, entry in files.items():
        for section in entry.binary.device_code if entry.binary is not None else ():
            folder = path.rpartition("/")[0]
            (declared if section.is_declared else embedded)[folder].update(section.counts)
    return {
        folder: DeviceCode(declared=_targets(declared[folder]), embedded=_targets(embedded[folder]))
        for folder in sorted(declared.keys() | embedded.keys())
    }


def _targets(names: set[str]) -> CodeTargets:
    def of(prefix: str) -> tuple[str, ...]:
        return tuple(
            sorted((name for name in names if name.startswith(prefix)), key=architecture_key)
        )

    return CodeTargets(sass=of("sm_"), ptx=of("compute_"), lto=of("lto_"))


def _python(files: Mapping[str, Entry]) -> tuple[str, ...]:
    """Return wheels, and what can be imported: the topmost packages and modules."""
    found: set[str] = {path for path in files if path.lower().endswith(".whl")}
    packages = {path.rpartition("/")[0] for path in files if path.endswith("/__init__.py")}
    for folder in packages:
        if folder and not any(str(parent) in packages for parent in PurePosixPath(folder).parents):
            found.add(folder)
    for path in files:
        match = _MODULE_FOLDER.match(path)
        if match and "/" not in path[match.end() :] and path.endswith(_MODULE_SUFFIXES):
            found.add(path)
    return tuple(sorted(found))


def _binary_notes(files: Mapping[str, Entry]) -> Iterable[str]:
    for path, entry in sorted(files.items()):
        for note in entry.binary.notes if entry.binary is not None else ():
            yield f"{path}: {note}"
