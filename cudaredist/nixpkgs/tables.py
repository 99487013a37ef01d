"""The CUDA tables of nixpkgs, in its format and at its paths.

To add a CUDA release to nixpkgs, add its manifests, its row in `nvccCompatibilities`, new rows of
`cudaCapabilityToInfo`, and the releases of its package set.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from cudaredist.exporters.export_format import (
    Files,
    filled_template,
    with_line_feed,
)
from cudaredist.exporters.nix_code import NixValue, nix_binding, nix_comment
from cudaredist.formats.runfile_records import Runfile
from cudaredist.formats.tables import CapabilityEntry, CompilerRange, Gpus, NvccCompat
from cudaredist.nixpkgs.nix_file import NixFile
from cudaredist.nixpkgs.rejection_comments import rejection_comments
from cudaredist.nixpkgs.release_code import merge_versions
from cudaredist.nixpkgs.releases import Release, SetReleases, Versions, model_of, released
from cudaredist.nixpkgs.target import Target
from cudaredist.primitives import Version, natural_order, parse_label
from cudaredist.redists import REDISTS
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import last_release
from cudaredist.tables.nvcc.nvcc_table import newest_release

CUDA_FOLDER = "pkgs/development/cuda-modules/_cuda"
NVCC_PATH = f"{CUDA_FOLDER}/db/bootstrap/nvcc.nix"
CAPABILITY_PATH = f"{CUDA_FOLDER}/db/bootstrap/cuda.nix"
MANIFEST_FOLDER = f"{CUDA_FOLDER}/manifests"
VERSIONS_PATH = "pkgs/top-level/cuda-packages.nix"
ALL_PACKAGES_PATH = "pkgs/top-level/all-packages.nix"
RUNFILES_PATH = "pkgs/development/cuda-modules/cudatoolkit/releases.nix"

_ARCHIVE = "https://docs.nvidia.com/cuda/archive"
_POLICY_PAGE = "cuda-installation-guide-linux/index.html#host-compiler-support-policy"

HOST_COMPILERS = ("clang", "gcc")
"""Compilers in nixpkgs' table."""
LEFT_OUT = frozenset({"5.3", "6.2", "8.8"})
"""Capabilities that nixpkgs leaves out: Jetsons before Xavier, and a console's GPU."""

TableName: TypeAlias = Literal["compilers", "capabilities", "releases"]
TABLES: tuple[TableName, ...] = get_args(TableName)
_MIN, _MAX = "minCudaMajorMinorVersion", "maxCudaMajorMinorVersion"

T = TypeVar("T")
CompilerBounds: TypeAlias = Mapping[str, str]
"""`maxMajorVersion` and `minMajorVersion`."""
Rows: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Table rows by name."""


class SharedTables(NamedTuple):
    """Data of a data folder, independent of a package set."""

    compat: NvccCompat
    gpus: Gpus
    manifests: Mapping[Release, bytes]
    """The published bytes of releases."""
    runfiles: Mapping[str, Mapping[str, Runfile]] = {}
    """Runfile installers, by CUDA release and platform."""


@dataclass(frozen=True)
class NixpkgsTables:
    """The tables in the files of a checkout, as evaluated by Nix."""

    compilers: Rows = field(default_factory=dict)
    capabilities: Rows = field(default_factory=dict)
    releases: Mapping[str, Rows] = field(default_factory=dict)
    """Releases by machine, package set and redistributable."""

    @property
    def minors(self) -> frozenset[str]:
        """The CUDA minor releases of the package sets."""
        return minors_of(name for rows in self.releases.values() for name in rows)


def minors_of(attributes: Iterable[str]) -> frozenset[str]:
    """Return the CUDA minor releases of package sets, by their names."""
    matches = map(re.compile(r"cudaPackages_(\d+)_(\d+)").match, attributes)
    return frozenset(f"{match[1]}.{match[2]}" for match in matches if match)


@dataclass(frozen=True)
class TableUpdate:
    """The rows and releases for nixpkgs' tables."""

    tables: SharedTables
    sets: Sequence[SetReleases]
    target: Target
    minors: frozenset[str] = frozenset()
    """The CUDA minor releases of package sets. Empty: all."""
    parts: frozenset[TableName] = frozenset(TABLES)
    theirs: NixpkgsTables = field(default_factory=NixpkgsTables)

    @cached_property
    def compilers(self) -> dict[str, dict[str, CompilerBounds]]:
        """The rows of compilers for package sets."""
        if "compilers" not in self.parts:
            return {}
        rows = current_rows(nvcc_bounds(self.tables.compat), self.theirs.compilers)
        return {minor: row for minor, row in rows.items() if self._has_set(minor)}

    @cached_property
    def capabilities(self) -> dict[str, dict[str, str | bool | None]]:
        """The rows of capabilities for package sets.

        Bounds that support the same package sets as nixpkgs' do not change.
        """
        if "capabilities" not in self.parts:
            return {}
        theirs = self.theirs.capabilities
        rows = current_rows(capability_fields(self.tables.gpus), theirs)
        floors = (str(row[_MIN]) for row in theirs.values() if row.get(_MIN))
        floor = min(floors, key=natural_order, default="")
        newest = max(self.minors, key=natural_order, default="")
        result = {}
        for name, row in rows.items():
            old = theirs.get(name)
            is_later = newest and natural_order(newest) < natural_order(str(row[_MIN]))
            if not theirs:
                result[name] = row
            elif old is not None:
                result[name] = {**row, **self._same_bounds(old, row)}
            elif name not in LEFT_OUT and not is_later:
                result[name] = {**row, _MIN: max(str(row[_MIN]), floor, key=natural_order)}
        return result

    def _same_bounds(self, old: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
        """Return nixpkgs' bounds that support the same package sets."""
        return {
            key: old.get(key)
            for key in (_MIN, _MAX)
            if self.minors
            and all(_fits(key, old.get(key), x) == _fits(key, row[key], x) for x in self.minors)
        }

    def _has_set(self, minor: str) -> bool:
        return not self.minors or minor in self.minors


def _fits(key: str, bound: object, minor: str) -> bool:
    """Check if an inclusive bound contains a CUDA minor release."""
    if bound is None:
        return True
    number, limit = natural_order(minor), natural_order(str(bound))
    return limit <= number if key == _MIN else number <= limit


def merged_files(update: TableUpdate, read: Callable[[str], bytes | None]) -> Files:
    """Return nixpkgs' files with our values.

    Changes only the cells that differ. Creates missing files. Raises `ContentError` for a file
    with an unknown format.
    """
    theirs, tables = update.theirs, update.tables

    def opened(path: str) -> NixFile:
        data = read(path) or filled_template(path.rpartition("/")[2])
        return NixFile.decode(path, data)

    changed: list[NixFile] = []
    files: dict[str, bytes] = {}
    if "compilers" in update.parts:
        compilers = opened(NVCC_PATH)
        entry = partial(_nvcc_entry, update)
        _merge_rows(compilers, "nvccCompatibilities", update.compilers, theirs.compilers, entry)
        changed.append(compilers)
    if "capabilities" in update.parts:
        capabilities = opened(CAPABILITY_PATH)
        entry = partial(_capability_entry, tables.gpus)
        table, rows = "cudaCapabilityToInfo", update.capabilities
        _merge_rows(capabilities, table, rows, theirs.capabilities, entry)
        changed.append(capabilities)
    versions = update.target.versions
    if versions:
        releases = opened(VERSIONS_PATH)
        comments = rejection_comments(update.sets, update.target)
        merge_versions(releases, versions, theirs.releases, comments)
        changed.append(releases)
        if theirs.releases:
            known = {name for rows in theirs.releases.values() for name in rows}
            new = [name for name in versions if name not in known]
            changed += _files_of_new_sets(new, update, read)
        for path, data in manifest_files(versions, tables).items():
            current = read(path)
            files[path] = current if current and is_same_manifest(path, current, data) else data
    files |= {file.path: file.encode() for file in changed}
    return dict(sorted(files.items()))


def _files_of_new_sets(
    attributes: Iterable[str], update: TableUpdate, read: Callable[[str], bytes | None]
) -> Iterator[NixFile]:
    """Yield the other files of nixpkgs that name package sets, with the new ones, if they exist."""
    names, runfiles = read(ALL_PACKAGES_PATH), read(RUNFILES_PATH)
    if names is not None:
        file = NixFile.decode(ALL_PACKAGES_PATH, names)
        for attribute in attributes:
            _add_name(file, attribute)
        yield file
    if runfiles is not None:
        file = NixFile.decode(RUNFILES_PATH, runfiles)
        for minor in sorted(minors_of(attributes), key=natural_order):
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
    releases = [x.cuda for x in update.sets if x.line == minor]
    release = max(releases, key=natural_order, default="")
    runfile = update.tables.runfiles.get(release, {}).get("linux-x86_64")
    if runfile is None or runfile.url is None or file.find(minor) is not None:
        return
    row = {"version": release, "url": runfile.url, "sha256": runfile.sri}
    rows = re.findall(r'"(\d+\.\d+)" = \{', file.text)
    file.add([], minor, nix_binding(minor, row), siblings=rows, gap="\n\n")


def is_same_manifest(path: str, current: bytes, data: bytes) -> bool:
    """Compare manifests without a line feed at the end.

    A manifest that packagers write, such as TensorRT's, is the same if it exists.
    """
    is_handwritten = REDISTS[PurePosixPath(path).parts[-2]].handwritten
    return is_handwritten or with_line_feed(current) == with_line_feed(data)


def current_rows(rows: Mapping[str, T], theirs: Rows) -> dict[str, T]:
    """Return the rows that are not older than nixpkgs' oldest one, because it removes old rows."""
    oldest = natural_order(min(theirs, key=natural_order, default=""))
    return {name: row for name, row in rows.items() if natural_order(name) >= oldest}


def _merge_rows(
    file: NixFile, table: str, rows: Rows, theirs: Rows, entry: Callable[[str, Any], list[str]]
) -> None:
    """Add the missing rows of a table, and change the cells that differ."""
    for name, row in rows.items():
        if name not in theirs:
            file.add([table], name, entry(name, row), siblings={*theirs, *rows}, gap="\n\n")
            continue
        old = flat_cells(theirs[name])
        for cell, value in flat_cells(row).items():
            if value is not None and value != old.get(cell):
                file.put((table, name, *cell), value, list(row))


def flat_cells(rows: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return the cells of nested tables by their path."""
    cells: dict[tuple[str, ...], Any] = {}
    for name, row in rows.items():
        below = flat_cells(row) if isinstance(row, Mapping) else {(): row}
        cells |= {(name, *path): value for path, value in below.items()}
    return cells


# -- host compilers


def nvcc_bounds(compat: NvccCompat) -> dict[str, dict[str, CompilerBounds]]:
    """Return the bounds of GCC and Clang by CUDA minor release.

    Uses the newest patch of each minor release. Skips a minor release with an unknown bound, which
    nixpkgs cannot represent.
    """
    minors = sorted({parse_label(label).line for label in compat.releases}, key=Version.parse)
    rows: dict[str, dict[str, CompilerBounds]] = {}
    for minor in minors:
        compilers = compat.releases[newest_release(minor, compat)].compilers
        row: dict[str, CompilerBounds] = {}
        for name in HOST_COMPILERS:
            bounds = compilers.get(name)
            if not isinstance(bounds, CompilerRange):
                continue
            if bounds.min is not None and bounds.max is not None:
                row[name] = {"maxMajorVersion": f"{bounds.max}", "minMajorVersion": f"{bounds.min}"}
        if len(row) == len(HOST_COMPILERS):
            rows[minor] = row
    return rows


def _nvcc_entry(update: TableUpdate, minor: str, row: Mapping[str, CompilerBounds]) -> list[str]:
    """Return the lines of a row, with its changes and its source as a comment."""
    rows = {**update.compilers, **update.theirs.compilers}
    older = [name for name in rows if natural_order(name) < natural_order(minor)]
    before = max(older, key=natural_order, default="")
    words = _changes(rows[before], row, f"{before} to {minor}") if before else f"CUDA {minor}"
    of_set = (x.cuda for x in update.sets if x.line == minor)
    label = max(of_set, key=natural_order, default=newest_release(minor, update.tables.compat))
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


# -- compute capabilities


def capability_fields(gpus: Gpus) -> dict[str, dict[str, str | bool | None]]:
    """Return nixpkgs' fields by capability."""
    names = sorted(gpus.capabilities, key=Capability.parse)
    return {name: _fields(name, gpus.capabilities[name]) for name in names}


def _fields(name: str, entry: CapabilityEntry) -> dict[str, str | bool | None]:
    return {
        "archName": entry.family,
        "cudaCapability": name,
        "isArchitectureSpecific": entry.variant == "a",
        "isFamilySpecific": entry.variant == "f",
        _MIN: entry.first_cuda,
        "dontDefaultAfterCudaMajorMinorVersion": entry.dont_default_after,
        _MAX: last_release(entry),
        "isJetson": entry.jetson,
    }


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


def manifest_files(versions: Versions, tables: SharedTables) -> dict[str, bytes]:
    """Return the published manifests of releases, by path in nixpkgs.

    nixpkgs' formatter requires a line feed at the end.
    """
    files = {}
    for release in released(versions):
        data = tables.manifests.get(release)
        if data is not None:
            path = f"{MANIFEST_FOLDER}/{release.redist}/redistrib_{release.label}.json"
            files[path] = with_line_feed(data)
    return files
