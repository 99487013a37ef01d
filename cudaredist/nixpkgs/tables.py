"""The CUDA tables of nixpkgs, in its format.

To add a CUDA release to nixpkgs, add its manifests, its row in `nvccCompatibilities`, new rows of
`cudaCapabilityToInfo`, and the releases of its package set.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from cudaredist.formats.runfile_records import Runfile
from cudaredist.formats.tables import CapabilityEntry, CompilerRange, Gpus, NvccCompat
from cudaredist.nixpkgs.paths import TABLES, TableName
from cudaredist.nixpkgs.records import Records
from cudaredist.nixpkgs.releases import Release, SetReleases
from cudaredist.nixpkgs.target import Target
from cudaredist.primitives import Version, natural_order, parse_label
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import last_release
from cudaredist.tables.nvcc.nvcc_table import newest_release

HOST_COMPILERS = ("clang", "gcc")
"""Compilers in nixpkgs' table."""
LEFT_OUT = frozenset({"5.3", "6.2", "8.8"})
"""Capabilities that nixpkgs leaves out: Jetsons before Xavier, and a console's GPU."""

_MIN, _MAX = "minCudaMajorMinorVersion", "maxCudaMajorMinorVersion"

_Row = TypeVar("_Row")
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
    records: Records = field(default_factory=Records)

    @cached_property
    def compilers(self) -> dict[str, dict[str, CompilerBounds]]:
        """The rows of compilers for package sets."""
        if "compilers" not in self.parts:
            return {}
        bounds = nvcc_bounds(self.tables.compat)
        rows = current_rows(bounds, self.theirs.compilers)
        # nixpkgs' own sets need a row, even if they are older than its oldest one.
        rows |= {minor: row for minor, row in bounds.items() if minor in self.theirs.minors}
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
            and all(
                _fits(key, old.get(key), minor) == _fits(key, row[key], minor)
                for minor in self.minors
            )
        }

    def keeps(self, table: Literal["compilers", "capabilities"], *cell: str) -> bool:
        """Check if a record keeps a cell. One cell of a missing row keeps the whole row."""
        theirs = self.theirs.compilers if table == "compilers" else self.theirs.capabilities
        if cell[0] in theirs:
            return self.records.keeps(table, *cell)
        return self.records.keeps_missing(table, cell[0])

    def _has_set(self, minor: str) -> bool:
        return not self.minors or minor in self.minors


def _fits(key: str, bound: object, minor: str) -> bool:
    """Check if an inclusive bound contains a CUDA minor release."""
    if bound is None:
        return True
    number, limit = natural_order(minor), natural_order(str(bound))
    return limit <= number if key == _MIN else number <= limit


def current_rows(rows: Mapping[str, _Row], theirs: Rows) -> dict[str, _Row]:
    """Return the rows that are not older than nixpkgs' oldest one, because it removes old rows."""
    oldest = natural_order(min(theirs, key=natural_order, default=""))
    return {name: row for name, row in rows.items() if natural_order(name) >= oldest}


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
