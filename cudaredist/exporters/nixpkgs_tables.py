"""The CUDA tables of nixpkgs, in its format and at its paths.

To add a CUDA release to nixpkgs, add its manifests, its row in `nvccCompatibilities`, new rows of
`cudaCapabilityToInfo`, and the releases of its package set.
"""

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

from cudaredist.errors import UsageError
from cudaredist.exporters.export_format import (
    ExportedSet,
    Files,
    SharedTables,
    exporter,
    filled_template,
)
from cudaredist.exporters.nix_code import (
    NixExpression,
    NixValue,
    nix_binding,
    nix_comment,
    nix_string,
)
from cudaredist.exporters.nix_file import NixFile
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.tables import CapabilityEntry, CompilerRange, Gpus, NvccCompat
from cudaredist.jsontext import load_json
from cudaredist.primitives import Version, natural_order, parse_label
from cudaredist.redists import REDISTS
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import last_release
from cudaredist.tables.nvcc.nvcc_table import newest_of

CUDA_FOLDER = "pkgs/development/cuda-modules/_cuda"
NVCC_PATH = f"{CUDA_FOLDER}/db/bootstrap/nvcc.nix"
CAPABILITY_PATH = f"{CUDA_FOLDER}/db/bootstrap/cuda.nix"
MANIFEST_FOLDER = f"{CUDA_FOLDER}/manifests"
VERSIONS_PATH = "pkgs/top-level/cuda-packages.nix"

HOST_COMPILERS = ("clang", "gcc")
"""Compilers in nixpkgs' table."""
_IN_NIXPKGS = REDISTS.keys() - {"nccl", "nvshmem"}
"""Redistributables with manifests in nixpkgs, which builds NCCL and NVSHMEM from source."""
X86, SERVER_ARM, JETSON = "linux-x86_64", "linux-sbsa", "linux-aarch64"

_CONDITIONS = {JETSON: "hasJetsonCudaCapability", SERVER_ARM: "hostPlatform.isAarch64"}
_DEFINITIONS = {
    "hasJetsonCudaCapability": (
        "hasJetsonCudaCapability = lib.any (",
        "  name: _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false",
        ") (config.cudaCapabilities or [ ]);",
    ),
    "hostPlatform": ("hostPlatform = callPackage ({ stdenv }: stdenv.hostPlatform) { };",),
}
"""The variables of the conditions."""

T = TypeVar("T")
Versions: TypeAlias = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Labels by package set, redistributable and platform."""
CompilerBounds: TypeAlias = Mapping[str, str]
"""`maxMajorVersion` and `minMajorVersion`."""
Rows: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Table rows by name."""


@dataclass(frozen=True)
class NixpkgsTables:
    """The tables in the files of a checkout, as evaluated by Nix."""

    compilers: Rows = field(default_factory=dict)
    capabilities: Rows = field(default_factory=dict)
    releases: Mapping[str, Rows] = field(default_factory=dict)
    """Releases by platform, package set and redistributable."""


@exporter("nixpkgs", None, reads_tables=True)
def nixpkgs(exported: ExportedSet) -> Files:
    """The tables of nixpkgs: compilers, GPUs, manifests and releases.

    Sets of the wheel channel have no manifests and no releases in nixpkgs' format.
    """
    return merged_files(exported, NixpkgsTables(), lambda _: None)


def merged_files(
    exported: ExportedSet, theirs: NixpkgsTables, read: Callable[[str], bytes | None]
) -> Files:
    """Return nixpkgs' files with our values.

    Changes only the cells that differ. Creates missing files. Raises `ContentError` for a file
    with an unknown format.
    """
    tables = exported.tables
    if tables is None:
        raise UsageError("nixpkgs requires a data folder", hint="add --data-dir FOLDER")

    def opened(path: str) -> NixFile:
        data = read(path) or filled_template(path.rpartition("/")[2])
        return NixFile(path, data.decode(errors="surrogateescape"))

    compilers, capabilities = opened(NVCC_PATH), opened(CAPABILITY_PATH)
    bounds, fields = nvcc_bounds(tables.compat), capability_fields(tables.gpus)
    entry = partial(_nvcc_entry, tables.compat)
    _merge_rows(compilers, "nvccCompatibilities", bounds, theirs.compilers, entry)
    entry = partial(_capability_entry, tables.gpus)
    _merge_rows(capabilities, "cudaCapabilityToInfo", fields, theirs.capabilities, entry)
    changed = [compilers, capabilities]
    files: dict[str, bytes] = {}
    versions = set_versions(exported.all_sets)
    if versions:
        releases = opened(VERSIONS_PATH)
        _merge_versions(releases, versions, theirs.releases)
        changed.append(releases)
        for path, data in manifest_files(exported.all_sets, tables).items():
            current = read(path)
            files[path] = current if current and is_same_json(current, data) else data
    files |= {file.path: file.text.encode(errors="surrogateescape") for file in changed}
    return dict(sorted(files.items()))


def is_same_json(current: bytes, data: bytes) -> bool:
    """Compare manifests without white space. An invalid file is different."""
    with contextlib.suppress(ValueError):
        return bool(load_json(current) == load_json(data))
    return False


def current_rows(rows: Mapping[str, T], theirs: Rows) -> dict[str, T]:
    """Return the rows that are not older than nixpkgs' oldest one, because it removes old rows."""
    oldest = natural_order(min(theirs, key=natural_order, default=""))
    return {name: row for name, row in rows.items() if natural_order(name) >= oldest}


def _merge_rows(
    file: NixFile, table: str, rows: Rows, theirs: Rows, entry: Callable[[str, Any], list[str]]
) -> None:
    """Add the missing rows of a table, and change the cells that differ."""
    for name, row in current_rows(rows, theirs).items():
        if name not in theirs:
            file.add([table], name, entry(name, row), siblings={*theirs, *rows}, gap="\n\n")
            continue
        old = flat_cells(theirs[name])
        for cell, value in flat_cells(row).items():
            if value is not None and value != old.get(cell):
                file.put((table, name, *cell), value)


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
        compilers = compat.releases[newest_of(minor, compat)].compilers
        row: dict[str, CompilerBounds] = {
            name: {"maxMajorVersion": f"{bounds.max}", "minMajorVersion": f"{bounds.min}"}
            for name in HOST_COMPILERS
            if isinstance(bounds := compilers.get(name), CompilerRange)
            and None not in {bounds.min, bounds.max}
        }
        if len(row) == len(HOST_COMPILERS):
            rows[minor] = row
    return rows


def _nvcc_entry(compat: NvccCompat, minor: str, row: Mapping[str, CompilerBounds]) -> list[str]:
    label = newest_of(minor, compat)
    nvcc = compat.releases[label].nvcc
    words = f"CUDA {label}" if nvcc is None else f"CUDA {label}, nvcc {nvcc}"
    return [*nix_comment(words), *nix_binding(minor, row)]


# -- compute capabilities


def capability_fields(gpus: Gpus) -> dict[str, dict[str, str | bool | None]]:
    """Return nixpkgs' fields by capability."""
    names = sorted(gpus.capabilities, key=Capability.parse)
    return {name: _fields(name, gpus.capabilities[name]) for name in names}


def _fields(name: str, entry: CapabilityEntry) -> dict[str, str | bool | None]:
    return {
        "archName": entry.family,
        "cudaCapability": name,
        "isJetson": entry.jetson,
        "isArchitectureSpecific": entry.variant == "a",
        "isFamilySpecific": entry.variant == "f",
        "minCudaMajorMinorVersion": entry.first_cuda,
        "maxCudaMajorMinorVersion": last_release(entry),
        "dontDefaultAfterCudaMajorMinorVersion": entry.dont_default_after,
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


# -- releases of package sets


def set_versions(sets: Iterable[PackageSet]) -> Versions:
    """Return the releases of package sets.

    Skips sets for Windows, sets of wheels, and redistributables without a manifest in nixpkgs.
    """
    versions: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for package_set in sets:
        platform = package_set.platform.redist_system
        if package_set.channel != "redist" or platform not in {X86, SERVER_ARM, JETSON}:
            continue
        for redist, release in package_set.redists.items():
            if release.release is not None and redist in _IN_NIXPKGS:
                versions[package_set.cuda.attribute][redist][platform] = release.release
    return {
        attribute: dict(sorted(versions[attribute].items()))
        for attribute in sorted(versions, key=natural_order)
    }


def _release(labels: Mapping[str, str]) -> NixValue:
    """Return a redistributable's release, with conditions if platforms differ."""
    fallback = labels.get(X86) or labels.get(SERVER_ARM) or labels[JETSON]
    others = [p for p in _CONDITIONS if labels.get(p, fallback) != fallback]
    if others == [SERVER_ARM] and JETSON in labels:
        # A Jetson is also ARM, so its condition is first.
        others = [JETSON, *others]
    if not others:
        return fallback
    branches = [f"if {_CONDITIONS[p]} then\n  {nix_string(labels[p])}\nelse" for p in others]
    code = f"{' '.join(branches)}\n  {nix_string(fallback)}"
    return NixExpression(code if len(branches) > 1 else " ".join(code.split()))


def released(versions: Versions) -> list[tuple[str, str]]:
    """Return each redistributable and label, sorted."""
    redists = [item for of_set in versions.values() for item in of_set.items()]
    return sorted({(redist, label) for redist, labels in redists for label in labels.values()})


def _merge_versions(file: NixFile, versions: Versions, theirs: Mapping[str, Rows]) -> None:
    """Add the missing package sets, and change the releases that differ."""
    before = file.text
    known = {name for rows in theirs.values() for name in rows}
    for attribute, redists in versions.items():
        if attribute not in known:
            _add_set(file, attribute, known)
            known.add(attribute)
        for redist, labels in redists.items():
            rows = {p: theirs[p].get(attribute, {}).get(redist) for p in theirs}
            old = {platform: label for platform, label in rows.items() if label is not None}
            if not labels.items() <= old.items():
                _put_release(file, (attribute, redist), old, {**old, **labels}, redists)
    for name, lines in _DEFINITIONS.items():
        if file.text.count(name) > before.count(name) and file.find(name) is None:
            start, let, end = file.text.partition("let\n")
            file.text = "".join([start, let, *(f"  {line}\n" for line in lines), "\n", end])


def _put_release(
    file: NixFile,
    names: tuple[str, str],
    old: Mapping[str, str],
    new: Mapping[str, str],
    siblings: Iterable[str],
) -> None:
    """Set a release. Keeps the conditions of the file if they fit."""
    binding = file.find(*names)
    renamed = {(label, new[platform]) for platform, label in old.items()}
    if binding is None:
        attribute, redist = names
        lines = nix_binding(redist, _release(new))
        file.add([attribute], redist, lines, siblings=siblings)
    elif len(renamed) == len(dict(renamed)) == len(set(new.values())):
        strings = {nix_string(label): nix_string(other) for label, other in renamed}
        code = file.text[binding.value : binding.end]
        code = re.sub('"[^"]*"', lambda match: strings.get(match[0], match[0]), code)
        file.replace(binding.value, binding.end, code)
    else:
        file.put(names, _release(new))


def _add_set(file: NixFile, attribute: str, known: Iterable[str]) -> None:
    """Add an empty package set, in the form of the one before it."""
    models = {
        name: binding
        for name in sorted(known, key=natural_order)
        if (binding := file.find(name)) and "{" in file.text[binding.value : binding.end]
    }
    if not models:
        file.add([], attribute, [f"{attribute} = packageSet {{", "};"])
        return
    older = [name for name in models if natural_order(name) < natural_order(attribute)]
    model = older[-1] if older else next(iter(models))
    binding, (start, end) = models[model], file.body(model)
    code = file.text[binding.start : start] + "{\n" + file.indented("}", start)
    code += file.text[end : binding.end]
    file.add_after(binding, [code.replace(model, attribute)], gap="\n\n")
    inherited = re.search(rf"\binherit\b[^;]*?(\s+){re.escape(model)}(?=[\s;])", file.text)
    if inherited:
        file.replace(inherited.end(), inherited.end(), inherited[1] + attribute)


def manifest_files(sets: Iterable[PackageSet], tables: SharedTables) -> dict[str, bytes]:
    """Return the published manifests of the sets, by path in nixpkgs."""
    return {
        f"{MANIFEST_FOLDER}/{redist}/redistrib_{label}.json": data
        for redist, label in released(set_versions(sets))
        if (data := tables.manifests.get((redist, label))) is not None
    }
