"""Change the files of nixpkgs to our values. Everything that is not changed stays as it is."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from cudaredist.exporters.export_format import Files, with_line_feed
from cudaredist.exporters.nix_code import NixValue, nix_binding, nix_comment
from cudaredist.formats.tables import Gpus
from cudaredist.nixpkgs.nix_file import NixFile
from cudaredist.nixpkgs.paths import (
    ALL_PACKAGES_PATH,
    CAPABILITY_PATH,
    MANIFEST_FOLDER,
    NVCC_PATH,
    RUNFILES_PATH,
    VERSIONS_PATH,
)
from cudaredist.nixpkgs.rejection_comments import rejection_comments
from cudaredist.nixpkgs.release_code import merge_versions
from cudaredist.nixpkgs.releases import SetReleases, labels_by_set, model_of, released
from cudaredist.nixpkgs.tables import CompilerBounds, Rows, TableUpdate, flat_cells, minors_of
from cudaredist.primitives import natural_order
from cudaredist.redists import REDISTS
from cudaredist.tables.nvcc.nvcc_table import newest_release

_ARCHIVE = "https://docs.nvidia.com/cuda/archive"
_POLICY_PAGE = "cuda-installation-guide-linux/index.html#host-compiler-support-policy"


_Read: TypeAlias = Callable[[str], bytes | None]
"""Return the bytes of a file by its path in nixpkgs, or None if it is missing."""


def merged_files(update: TableUpdate, read: _Read) -> Files:
    """Return nixpkgs' files with our values.

    Changes only the cells that differ. Creates missing files. Raises `ContentError` for a file
    with an unknown format.
    """
    changed = [*_table_files(update, read), *_files_of_new_sets(update, read)]
    files = _manifests(update, read) | {file.path: file.encode() for file in changed}
    return dict(sorted(files.items()))


def _table_files(update: TableUpdate, read: _Read) -> Iterator[NixFile]:
    """Yield the files of the updated tables."""
    theirs, versions = update.theirs, update.target.versions
    if "compilers" in update.parts:
        file = _opened(NVCC_PATH, read)
        entry: Callable[[str, Any], list[str]] = partial(_nvcc_entry, update)
        keeps = partial(update.keeps, "compilers")
        _merge_rows(file, "nvccCompatibilities", update.compilers, theirs.compilers, entry, keeps)
        yield file
    if "capabilities" in update.parts:
        file = _opened(CAPABILITY_PATH, read)
        entry = partial(_capability_entry, update.tables.gpus)
        table, rows = "cudaCapabilityToInfo", update.capabilities
        keeps = partial(update.keeps, "capabilities")
        _merge_rows(file, table, rows, theirs.capabilities, entry, keeps)
        yield file
    if versions:
        file = _opened(VERSIONS_PATH, read)
        comments = rejection_comments(update.sets, update.target)
        merge_versions(file, versions, theirs.releases, comments)
        yield file


def _opened(path: str, read: _Read) -> NixFile:
    """Return a file of nixpkgs, or a new one without rows."""
    data = read(path)
    if not data:
        template = resources.files(__package__) / "templates" / PurePosixPath(path).name
        data = template.read_bytes()
    return NixFile.decode(path, data)


def _manifests(update: TableUpdate, read: _Read) -> dict[str, bytes]:
    """Return the manifests of the releases. Equal ones stay as they are."""
    files = manifest_files(update, read)
    for path, data in files.items():
        current = read(path)
        if current and is_same_manifest(path, current, data):
            files[path] = current
    return files


def _files_of_new_sets(update: TableUpdate, read: _Read) -> Iterator[NixFile]:
    """Yield the other files of nixpkgs that name package sets, with the new ones, if they exist."""
    theirs, versions = update.theirs.releases, update.target.versions
    if not theirs or not versions:
        return
    known = labels_by_set(theirs)
    new = [attribute for attribute in versions if attribute not in known]
    names, runfiles = read(ALL_PACKAGES_PATH), read(RUNFILES_PATH)
    if names is not None:
        file = NixFile.decode(ALL_PACKAGES_PATH, names)
        for attribute in new:
            _add_name(file, attribute)
        yield file
    if runfiles is not None:
        file = NixFile.decode(RUNFILES_PATH, runfiles)
        for minor in sorted(minors_of(new), key=natural_order):
            _add_runfile(file, minor, update)
        yield file


def _add_name(file: NixFile, attribute: str) -> None:
    """Add a package set to the inherited names, after the set before it."""
    lines = list(re.finditer(r"(?m)^[ \t]+(cudaPackages_\d+_\d+)[ \t]*$", file.text))
    names = {match[1]: match for match in lines}
    model = model_of(attribute, names)
    if model and attribute not in names:
        line = names[model]
        copy = line[0].replace(model, attribute)
        file.replace(line.end(), line.end(), f"\n{copy}")


def _add_runfile(file: NixFile, minor: str, update: TableUpdate) -> None:
    """Add the runfile installer of a package set's CUDA release for x86-64, if it is known."""
    release = _newest_patch(minor, update.sets)
    runfile = update.tables.runfiles.get(release, {}).get("linux-x86_64")
    if runfile is None or runfile.url is None or file.find(minor) is not None:
        return
    row = {"version": release, "url": runfile.url, "sha256": runfile.sri}
    rows = re.findall(r'"(\d+\.\d+)" = \{', file.text)
    file.add([], minor, nix_binding(minor, row), siblings=rows, gap="\n\n")


def _newest_patch(minor: str, sets: Iterable[SetReleases]) -> str:
    """Return the newest CUDA release of the sets of a minor release, or an empty text."""
    patches = (package_set.cuda for package_set in sets if package_set.line == minor)
    return max(patches, key=natural_order, default="")


def is_same_manifest(path: str, current: bytes, data: bytes) -> bool:
    """Compare manifests without a line feed at the end.

    A manifest that packagers write, such as TensorRT's, is the same if it exists.
    """
    is_handwritten = REDISTS[PurePosixPath(path).parts[-2]].handwritten
    return is_handwritten or with_line_feed(current) == with_line_feed(data)


def _merge_rows(
    file: NixFile,
    table: str,
    rows: Rows,
    theirs: Rows,
    entry: Callable[[str, Any], list[str]],
    keeps: Callable[..., bool],
) -> None:
    """Add the missing rows of a table, and change the cells that differ.

    `keeps` checks if a record keeps a cell or a row.
    """
    for name, row in rows.items():
        if name not in theirs:
            if not keeps(name):
                file.add([table], name, entry(name, row), siblings={*theirs, *rows}, gap="\n\n")
            continue
        old = flat_cells(theirs[name])
        for cell, value in flat_cells(row).items():
            if value is not None and value != old.get(cell) and not keeps(name, *cell):
                file.put((table, name, *cell), value, list(row))


# -- rows


def _nvcc_entry(update: TableUpdate, minor: str, row: Mapping[str, CompilerBounds]) -> list[str]:
    """Return the lines of a row, with its changes and its source as a comment."""
    rows = {**update.compilers, **update.theirs.compilers}
    older = [name for name in rows if natural_order(name) < natural_order(minor)]
    before = max(older, key=natural_order, default="")
    words = _changes(rows[before], row, f"{before} to {minor}") if before else f"CUDA {minor}"
    label = _newest_patch(minor, update.sets) or newest_release(minor, update.tables.compat)
    source = f"# {_ARCHIVE}/{label}/{_POLICY_PAGE}"
    return [*nix_comment(words), source, *nix_binding(minor, row)]


def _changes(old: Mapping[str, Any], new: Mapping[str, CompilerBounds], releases: str) -> str:
    """Return the changes of the newest and oldest compilers in words."""
    titles = {"clang": "Clang", "gcc": "GCC"}
    key = "maxMajorVersion"
    added = [
        f"{titles[name]} {new[name][key]}"
        for name in sorted(new, reverse=True)
        if new[name][key] != (old.get(name) or {}).get(key)
    ]
    if added:
        return f"{releases} adds support for {' and '.join(added)}"
    return f"No changes from {releases}"


def _capability_entry(gpus: Gpus, name: str, fields: Mapping[str, str | bool | None]) -> list[str]:
    derived = {"cudaCapability", "isArchitectureSpecific", "isFamilySpecific"}
    written: dict[str, NixValue] = {
        key: value
        for key, value in fields.items()
        if key not in derived and value is not None and value is not False
    }
    entry = gpus.capabilities[name]
    products = ", ".join(entry.products) if entry.variant is None else ""
    return [*nix_comment(products), *nix_binding(name, written)]


# -- manifests


def manifest_files(update: TableUpdate, read: _Read) -> dict[str, bytes]:
    """Return the published manifests of the releases, by path in nixpkgs.

    nixpkgs' formatter requires a line feed at the end. A checkout of Nix files only, without these
    manifests, gets them together with the first release that changes.
    """
    files = {}
    for release in released(update.target.versions):
        data = update.tables.manifests.get(release)
        if data is not None:
            path = f"{MANIFEST_FOLDER}/{release.redist}/redistrib_{release.label}.json"
            if not update.records.keeps_file(path):
                files[path] = with_line_feed(data)
    if not update.target.changed and not any(map(read, files)):
        return {}
    return files
