"""Features of one archive, derived from its facts by rules.

Features depend only on the archive's own bytes. To add a detector, write a function of the tree,
and add a field to `formats.features.ArchiveFeatures` and a line to `derive`. Then raise `RULES`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.symbols import SYMBOLS
from cudaredist.features.archive_tree import Tree, build_tree
from cudaredist.features.facts import Entry, Facts
from cudaredist.features.missing_headers import missing_headers
from cudaredist.features.placement import Placed, is_stub, place_all
from cudaredist.features.wheel import as_redistributable
from cudaredist.formats.features import (
    CodeTargets,
    DeviceCode,
    FileCode,
    FileNames,
    Library,
    OutputSize,
    Program,
    WholeFeatures,
)
from cudaredist.formats.names import OutputName
from cudaredist.primitives import natural_order
from cudaredist.words import printable, shortened

RULES = 3
"""Version of the rules. Raise it whenever the same facts lead to other features."""

_VERSIONS = 32
"""Limit of CUDA-versioned folders per archive. NVIDIA's archives have four at most."""
_NAMES_ROOM = 1 << 20
"""Limit of characters in all file names of an archive. cuda_cccl has 40,000."""
_in_version = re.compile(r"lib/([1-9][0-9]{0,2}(?:\.(?:0|[1-9][0-9]?))?)/(.+)").fullmatch
_MODULE_FOLDER = re.compile(r"^(?:python|(?:.*/)?(?:site|dist)-packages)/")
_MODULE_SUFFIXES = (".py", ".so", ".pyd")


def derive(facts: Facts) -> WholeFeatures:
    """Return the features of an archive."""
    members, added = as_redistributable(facts.members)
    tree = build_tree(members)
    placed = place_all(tree.files)
    versions = _versions_in_lib(tree.files)
    binaries = {
        path: entry.binary for path, entry in sorted(tree.files.items()) if entry.binary is not None
    }
    machine, machine_notes = _machine(binaries)
    libraries, programs = _libraries_and_programs(tree, placed)
    listing, unlisted = _list_files(placed)
    missing, header_notes = missing_headers(tree.files, tree.links)
    notes = [*facts.notes, *added, *tree.notes, *machine_notes, *_binary_notes(binaries)]
    notes += header_notes
    if len(versions) > _VERSIONS:
        notes.append(f"lib has folders of {len(versions)} versions; only {_VERSIONS} were examined")
        versions = versions[-_VERSIONS:]
    return WholeFeatures(
        machine=machine,
        outputs=_sizes(placed),
        libraries=tuple(libraries),
        programs=tuple(programs),
        device_code=_device_code(binaries),
        code_by_file={
            path: FileCode.of(placed[path].output, binary.images)
            for path, binary in binaries.items()
            if binary.images is not None
        },
        cuda_versions_in_lib=versions,
        unnested=_unnested(tree.files, versions),
        python=_python(tree.files),
        files=listing,
        unlisted=unlisted,
        missing_headers=missing,
        unread_headers=sum(
            bool(entry.header and entry.header.unread) for entry in tree.files.values()
        ),
        license_files={
            path: entry.sha256 for path, entry in sorted(tree.files.items()) if entry.sha256
        },
        # Notes quote names in the archive, and no data file may contain control characters.
        notes=tuple(map(printable, shortened(notes))),
    )


def _sizes(placed: Mapping[str, Placed]) -> dict[OutputName, OutputSize]:
    sizes: dict[OutputName, list[int]] = defaultdict(list, {"out": []})
    for entry, output in placed.values():
        sizes[output].append(entry.size)
    return {
        output: OutputSize(files=len(of_output), bytes=sum(of_output))
        for output, of_output in sorted(sizes.items())
    }


def _list_files(placed: Mapping[str, Placed]) -> tuple[FileNames, int]:
    """Return the listed files, and the number of others."""
    folders: dict[OutputName, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    room, left_out = _NAMES_ROOM, 0
    for path in sorted(placed):
        folder, _, name = path.rpartition("/")
        by_folder = folders[placed[path].output]
        room -= len(name) + 1 + (0 if folder in by_folder else len(folder))
        if room < 0:
            left_out += 1
        else:
            by_folder[folder].append(name)
    listing = {
        output: {folder: "/".join(names) for folder, names in by_folder.items()}
        for output, by_folder in sorted(folders.items())
        if by_folder
    }
    return listing, left_out


def _unnested(
    files: Mapping[str, Entry], versions: Sequence[str]
) -> dict[str, dict[OutputName, OutputSize]]:
    """Return, for each `lib/<version>`, the outputs if it replaced `lib`."""
    if not versions:
        return {}
    outside = {path: entry for path, entry in files.items() if not path.startswith("lib/")}
    nested: dict[str, dict[str, Entry]] = defaultdict(dict)
    for path, entry in files.items():
        if match := _in_version(path):
            nested[match[1]][f"lib/{match[2]}"] = entry
    return {version: _sizes(place_all(outside | nested[version])) for version in versions}


def _versions_in_lib(files: Iterable[str]) -> tuple[str, ...]:
    versions = {match[1] for match in map(_in_version, files) if match}
    return tuple(sorted(versions, key=lambda text: [int(part) for part in text.split(".")]))


def _machine(binaries: Mapping[str, Binary]) -> tuple[str | None, list[str]]:
    """Return the machine of all binaries, and notes.

    If they differ, return None and a note.
    """
    machines = Counter(binary.machine for binary in binaries.values() if binary.machine is not None)
    if len(machines) > 1:
        counted = ", ".join(f"{machine} ({machines[machine]})" for machine in sorted(machines))
        return None, [f"binaries for several machines: {counted}"]
    return next(iter(machines), None), []


def _libraries_and_programs(
    tree: Tree, placed: Mapping[str, Placed]
) -> tuple[list[Library], list[Program]]:
    """Return the shared libraries, and the programs that need or may open libraries."""
    links = defaultdict(list)
    for link, end in tree.links.items():
        links[end].append(link)
    libraries, programs = list[Library](), list[Program]()
    for path, (entry, output) in sorted(placed.items()):
        if (binary := entry.binary) is None:
            continue
        # Feature files do not contain symbols.
        unread = tuple(fact for fact in binary.unread if fact != SYMBOLS)
        fields: dict[str, Any] = {
            fact: getattr(binary, fact) for fact in ("needed", "runpath", "glibc", "libstdcxx")
        }
        fields |= {"path": path, "output": output, "opens": _opens(path, binary), "unread": unread}
        if binary.is_shared:
            aliases = tuple(sorted(links[path]))
            library = Library(**fields, soname=binary.soname, links=aliases, stub=is_stub(path))
            libraries.append(library)
        elif binary.kind in {"elf", "pe"} and (binary.needed or binary.opens or unread):
            programs.append(Program(**fields))
    return libraries, programs


def _opens(path: str, binary: Binary) -> tuple[str, ...]:
    """Return the additional libraries that a file may open.

    Names of DLLs ignore case.
    """
    key = str.lower if binary.kind == "pe" else str
    known = {key(path.rpartition("/")[2]), *map(key, binary.needed)}
    return tuple(name for name in binary.opens if key(name) not in known)


def _device_code(binaries: Mapping[str, Binary]) -> dict[str, DeviceCode]:
    names: dict[str, dict[bool, set[str]]] = defaultdict(lambda: {True: set(), False: set()})
    for path, binary in binaries.items():
        for section in binary.device_code:
            names[path.rpartition("/")[0]][section.is_declared].update(section.counts)
    return {
        folder: DeviceCode(declared=_targets(declared[True]), embedded=_targets(declared[False]))
        for folder, declared in sorted(names.items())
    }


def _targets(names: set[str]) -> CodeTargets:
    ordered = sorted(names, key=natural_order)

    def of(prefix: str) -> tuple[str, ...]:
        return tuple(name for name in ordered if name.startswith(prefix))

    return CodeTargets(sass=of("sm_"), ptx=of("compute_"), lto=of("lto_"))


def _python(files: Mapping[str, Entry]) -> tuple[str, ...]:
    """Return wheels, and the topmost packages and modules for import."""
    paths: set[str] = {path for path in files if path.lower().endswith(".whl")}
    packages = {path.rpartition("/")[0] for path in files if path.endswith("/__init__.py")}
    # If a package's parent is not a package, the package is topmost.
    paths |= {folder for folder in packages if folder.rpartition("/")[0] not in packages}
    for path in files:
        match = _MODULE_FOLDER.match(path)
        if match and "/" not in path[match.end() :] and path.endswith(_MODULE_SUFFIXES):
            paths.add(path)
    return tuple(sorted(paths))


def _binary_notes(binaries: Mapping[str, Binary]) -> Iterable[str]:
    for path, binary in binaries.items():
        # Feature files do not contain symbols.
        yield from (f"{path}: {note}" for note in binary.notes if not note.startswith(SYMBOLS))
