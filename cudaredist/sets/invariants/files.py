"""Invariants of a package set and the files of its archives.

The cache has the facts of the files.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cudaredist.binaries.elf import machine_name
from cudaredist.errors import InvalidArchiveError
from cudaredist.formats.features import FileCode, OutputSize
from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.primitives import Version, sha256_of
from cudaredist.sets.invariants.documents import (
    Broken,
    Invariant,
    Violation,
    find_violations,
    is_additional_version,
)
from cudaredist.sets.package_tree import PackageTree, make_tree
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_cache import known_facts
from cudaredist.store.locate import data_folder
from cudaredist.tables.gpus.coverage import CoverageRules, describe_coverage


class PackageFiles(NamedTuple):
    """Files of a package in the merged layout."""

    entry: SetPackage
    tree: PackageTree


class SetFiles(NamedTuple):
    """Known files of a set's available packages."""

    package_set: PackageSet
    known: tuple[PackageFiles, ...]
    unknown: tuple[str, ...]
    """Packages without facts in the cache."""
    refused: tuple[Broken, ...]
    """Packages with archives that cannot be installed, with the reason."""
    rules: CoverageRules | None
    """None if the set's GPU table is not in the data folder."""


def read_files(package_set: PackageSet, cache: Cache) -> SetFiles:
    """Return the cached files of every available package."""
    known, unknown, refused = [], [], []
    for entry in package_set.available.values():
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
    """Return the violations of a set's known files."""
    return find_violations(FILE_INVARIANTS, files)


def _contents(files: SetFiles) -> Iterator[Broken]:
    """Check I4, for packages that were inspected before the set was built."""
    yield from files.refused
    for entry, tree in files.known:
        if not entry.contents:
            continue
        # Features also count the files that policy drops, so the document's counts are maximums.
        has_dropped = any(change.op == "drop" for change in entry.normalise)
        counts = Counter(tree.outputs[path] for path in tree.files)
        sizes: Counter[OutputName] = Counter()
        for path, file in tree.files.items():
            sizes[tree.outputs[path]] += file.size
        for output in sorted(counts.keys() | entry.contents.keys()):
            count, size = counts[output], sizes[output]
            recorded = entry.contents.get(output, OutputSize(files=0, bytes=0))
            is_less = count <= recorded.files and size <= recorded.bytes
            if (recorded.files, recorded.bytes) != (count, size) and not (has_dropped and is_less):
                expected = f"{recorded.files} files of {recorded.bytes} bytes are recorded"
                yield entry.attr, f"{output} has {count} files of {size} bytes, but {expected}"


def _owners(files: SetFiles) -> Iterator[Broken]:
    """Check I7 by file sizes and facts of binaries, because facts have no hashes.

    Skips further versions, which are never installed together with the main ones.
    """
    owners: dict[str, tuple[str, object]] = {}
    clashes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for entry, tree in files.known:
        if is_additional_version(entry):
            continue
        contents = {path: (file.size, file.binary) for path, file in tree.files.items()}
        for path, content in (*contents.items(), *tree.links.items()):
            other, first = owners.setdefault(path, (entry.attr, content))
            if content != first:
                clashes[entry.attr, other].append(path)
    for (attr, other), paths in clashes.items():
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        yield attr, f"{paths[0]}{more} differs from the file of {other}"


def _machines(files: SetFiles) -> Iterator[Broken]:
    """Check I9. Platforms of Windows have no ELF machine."""
    number = files.package_set.platform.elf_machine
    if number is None:
        return
    expected = machine_name(number)
    for entry, tree in files.known:
        for path, file in sorted(tree.files.items()):
            binary = file.binary
            if binary is None or binary.kind != "elf" or not binary.is_shared:
                continue
            if binary.machine not in {None, expected}:
                yield entry.attr, f"{path} is for {binary.machine}, not for {expected}"


def _coverage(files: SetFiles) -> Iterator[Broken]:
    """Check I27 with coverage computed from the files' device code."""
    if files.rules is None:
        return
    cuda = Version.parse(files.package_set.cuda.release)
    for entry, tree in files.known:
        recorded = {gpu: part for gpu, part in entry.coverage.items() if part.value != "unknown"}
        binaries = filter(None, (file.binary for file in tree.files.values()))
        images = (binary.images for binary in binaries)
        codes = [FileCode.of("lib", parts) for parts in images if parts is not None]
        for name, part in files.rules.cover(codes, recorded, release=cuda).items():
            if part != recorded[name]:
                old, new = describe_coverage(recorded[name]), describe_coverage(part)
                yield entry.attr, f"its coverage of {name} is {new}, but {old} is recorded"


def _coverage_rules(package_set: PackageSet) -> CoverageRules | None:
    """Return the coverage rules of a set's GPU table, or None without it."""
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
"""By name. `documents` has the invariants that need only the document."""
