"""What holds of a package set and the files of its archives, as the cache knows them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cudaredist.binaries.elf import machine_name
from cudaredist.errors import InvalidArchiveError
from cudaredist.packagesets.invariants import (
    Broken,
    Invariant,
    Violation,
    available_entries,
    is_further_version,
)
from cudaredist.pipeline.facts_cache import known_facts
from cudaredist.primitives import sha256_of
from cudaredist.schema.base import OutputName
from cudaredist.schema.features import FileCode
from cudaredist.schema.packageset import OutputContents, PackageSet, SetPackage
from cudaredist.schema.registry import read_own_file
from cudaredist.schema.tables import Gpus
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.locate import data_folder
from cudaredist.tables.gpus.coverage import CoverageRules, describe_coverage
from cudaredist.toolkit.root_tree import PackageTree, make_tree


@dataclass(frozen=True, slots=True)
class PackageFiles:
    """The files of a package, as they are laid out beside those of others."""

    entry: SetPackage
    tree: PackageTree


@dataclass(frozen=True, slots=True)
class SetFiles:
    """The files of a set's available packages, as far as they are known."""

    package_set: PackageSet
    known: tuple[PackageFiles, ...]
    unknown: tuple[str, ...]
    """Packages whose archives the cache has no facts of."""
    refused: tuple[Broken, ...]
    """Packages whose archives are never laid out, with the reason."""
    rules: CoverageRules | None
    """None: the GPU table that the set was made with is not local."""


def read_files(package_set: PackageSet, cache: Cache) -> SetFiles:
    """Return what the cache knows of the files of every available package."""
    known, unknown, refused = [], [], []
    for entry in available_entries(package_set):
        facts = known_facts(cache, entry.archive.sha256 if entry.archive else None)
        if facts is None:
            unknown.append(entry.attr)
            continue
        try:
            tree = make_tree(entry.attr, facts.members, entry, is_split=False)
        except InvalidArchiveError as error:
            refused.append((entry.attr, error.reason))
        else:
            known.append(PackageFiles(entry, tree))
    rules = _coverage_rules(package_set) if known else None
    return SetFiles(package_set, tuple(known), tuple(unknown), tuple(refused), rules)


def check_files(files: SetFiles) -> list[Violation]:
    """Return what a set breaks by the files that are known."""
    return [
        Violation(name, subject, text)
        for name, invariant in FILE_INVARIANTS.items()
        for subject, text in invariant.check(files)
    ]


def _contents(files: SetFiles) -> Iterator[Broken]:
    """I4; of what was not examined when the set was made, the document says nothing."""
    yield from files.refused
    for package in files.known:
        entry, tree = package.entry, package.tree
        if not entry.contents:
            continue
        # Features count what policy drops as well: the document's counts are the most there is.
        has_dropped = any(change.op == "drop" for change in entry.normalise)
        counts: Counter[OutputName] = Counter()
        sizes: Counter[OutputName] = Counter()
        for path, held in tree.files.items():
            counts[tree.outputs[path]] += 1
            sizes[tree.outputs[path]] += held.size
        for output in sorted(counts.keys() | entry.contents.keys()):
            stated = entry.contents.get(output, OutputContents(files=0, bytes=0))
            held_less = counts[output] <= stated.files and sizes[output] <= stated.bytes
            if has_dropped and held_less:
                continue
            if (stated.files, stated.bytes) != (counts[output], sizes[output]):
                said = f"{output} is said to hold {stated.files} files of {stated.bytes} bytes"
                yield entry.attr, f"{said}, and holds {counts[output]} of {sizes[output]}"


def _owners(files: SetFiles) -> Iterator[Broken]:
    """I7; facts hold no hashes of files, so that size and what binaries state must do.

    Further versions are never laid out beside the chosen ones.
    """
    owners: dict[str, tuple[str, object]] = {}
    clashes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for package in files.known:
        attr = package.entry.attr
        if is_further_version(package.entry):
            continue
        for path, content in _contents_by_path(package.tree):
            other, first = owners.setdefault(path, (attr, content))
            if content != first:
                clashes[attr, other].append(path)
    for (attr, other), paths in clashes.items():
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        yield attr, f"has another {paths[0]}{more} than {other}"


def _contents_by_path(tree: PackageTree) -> Iterator[tuple[str, object]]:
    for path, held in tree.files.items():
        yield path, (held.size, held.binary)
    yield from tree.links.items()


def _machines(files: SetFiles) -> Iterator[Broken]:
    """I9; on Windows there is none to have."""
    number = files.package_set.platform.elf_machine
    if number is None:
        return
    expected = machine_name(number)
    for package in files.known:
        for path, held in sorted(package.tree.files.items()):
            binary = held.binary
            if binary is None or binary.kind != "elf" or not binary.is_shared:
                continue
            if binary.machine not in {None, expected}:
                yield package.entry.attr, f"{path} is for {binary.machine}, not for {expected}"


def _coverage(files: SetFiles) -> Iterator[Broken]:
    """I27; it is computed again from the device code of the files."""
    if files.rules is None:
        return
    for package in files.known:
        entry = package.entry
        stated = {n: part for n, part in entry.coverage.items() if part.value != "unknown"}
        binaries = (file.binary for file in package.tree.files.values())
        codes = [
            FileCode(
                output="lib",
                modules=binary.images.modules,
                bytes={name: packed for name, (packed, _) in binary.images.sizes.items()},
                unpacked={name: size for name, (_, size) in binary.images.sizes.items()},
            )
            for binary in binaries
            if binary is not None and binary.images is not None
        ]
        for name, part in files.rules.cover(codes, stated).items():
            if part != stated[name]:
                said, found = describe_coverage(stated[name]), describe_coverage(part)
                yield entry.attr, f"its coverage of {name} is stated as {said}, and is {found}"


def _coverage_rules(package_set: PackageSet) -> CoverageRules | None:
    """Return the rules by the GPU table that a set was made with; None if it is not local."""
    hashes = {entry.sha256 for entry in package_set.inputs if entry.kind == "capabilities"}
    for root in (data_folder(None, writing=False), shipped_data()):
        data = Store(root).read_table("gpus")
        if data is not None and sha256_of(data) in hashes:
            return CoverageRules(read_own_file(data, Gpus))
    return None


FILE_INVARIANTS: Mapping[str, Invariant[SetFiles, Broken]] = {
    "I4": Invariant("Every file is in one output, as the document counts them.", _contents),
    "I7": Invariant("No two packages have different files under one path.", _owners),
    "I9": Invariant("Shared libraries are for the platform's machine.", _machines),
    "I27": Invariant("Coverage follows from the device code of the files.", _coverage),
}
"""By name; the rest of what one document is held to is in `packagesets.invariants`."""
