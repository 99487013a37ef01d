"""The CUDA tables of nixpkgs, in its format and at its paths.

To add a CUDA release to nixpkgs, add its manifests, its row in `nvccCompatibilities`, new rows of
`cudaCapabilityToInfo`, and the releases of its package set.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

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
    nix_indented,
    nix_string,
)
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.tables import CapabilityEntry, CompilerRange, Gpus, NvccCompat
from cudaredist.primitives import Version, parse_label
from cudaredist.redists import REDISTS
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.nvcc.nvcc_table import newest_of

CUDA_FOLDER = "pkgs/development/cuda-modules/_cuda"
NVCC_PATH = f"{CUDA_FOLDER}/db/bootstrap/nvcc.nix"
CAPABILITY_PATH = f"{CUDA_FOLDER}/db/bootstrap/cuda.nix"
MANIFEST_FOLDER = f"{CUDA_FOLDER}/manifests"
VERSIONS_PATH = "pkgs/top-level/cuda-packages.nix"

HOST_COMPILERS = ("clang", "gcc")
"""Compilers in nixpkgs' table."""
_BUILT_FROM_SOURCE = frozenset({"nccl", "nvshmem"})
"""Redistributables without manifests in nixpkgs."""
X86, SERVER_ARM, JETSON = "linux-x86_64", "linux-sbsa", "linux-aarch64"

CompilerBounds: TypeAlias = Mapping[str, str]
"""`maxMajorVersion` and `minMajorVersion`."""


@exporter("nixpkgs", None, reads_tables=True)
def nixpkgs(exported: ExportedSet) -> Files:
    """The tables of nixpkgs: compilers, GPUs, manifests and releases.

    Sets of the wheel channel have no manifests and no releases in nixpkgs' format.
    """
    tables = exported.tables
    if tables is None:
        raise UsageError("nixpkgs requires a data folder", hint="add --data-dir FOLDER")
    files = {
        NVCC_PATH: filled_template("nvcc.nix", lines=_nvcc_lines(tables.compat)),
        CAPABILITY_PATH: filled_template("cuda.nix", lines=_capability_lines(tables.gpus)),
    }
    versions = set_versions(exported.all_sets)
    if versions:
        files[VERSIONS_PATH] = filled_template("cuda-packages.nix", lines=_version_lines(versions))
        files |= manifest_files(exported.all_sets, tables)
    return dict(sorted(files.items()))


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
        row: dict[str, CompilerBounds] = {}
        for name in HOST_COMPILERS:
            bounds = compilers.get(name)
            if isinstance(bounds, CompilerRange) and None not in {bounds.min, bounds.max}:
                row[name] = {"maxMajorVersion": f"{bounds.max}", "minMajorVersion": f"{bounds.min}"}
        if len(row) == len(HOST_COMPILERS):
            rows[minor] = row
    return rows


def _nvcc_lines(compat: NvccCompat) -> Iterator[str]:
    entries = []
    for minor, row in nvcc_bounds(compat).items():
        label = newest_of(minor, compat)
        nvcc = compat.releases[label].nvcc
        words = f"CUDA {label}" if nvcc is None else f"CUDA {label}, nvcc {nvcc}"
        entries.append([*nix_comment(words), *nix_binding(minor, row)])
    return _separated(entries)


# -- compute capabilities


def capability_fields(gpus: Gpus) -> dict[str, dict[str, str | bool | None]]:
    """Return nixpkgs' fields by capability."""
    names = sorted(gpus.capabilities, key=Capability.parse)
    return {name: _fields(name, gpus.capabilities[name]) for name in names}


def _fields(name: str, entry: CapabilityEntry) -> dict[str, str | bool | None]:
    ends = [fact.value for fact in entry.policy if fact.field == "last_cuda"]
    ends += [entry.last_cuda] if entry.last_cuda else []
    return {
        "archName": entry.family,
        "cudaCapability": name,
        "isJetson": entry.jetson,
        "isArchitectureSpecific": entry.variant == "a",
        "isFamilySpecific": entry.variant == "f",
        "minCudaMajorMinorVersion": entry.first_cuda,
        "maxCudaMajorMinorVersion": min(ends, key=Version.parse, default=None),
        "dontDefaultAfterCudaMajorMinorVersion": entry.dont_default_after,
    }


def _capability_lines(gpus: Gpus) -> Iterator[str]:
    entries = []
    derived = {"cudaCapability", "isArchitectureSpecific", "isFamilySpecific"}
    for name, fields in capability_fields(gpus).items():
        written: dict[str, NixValue] = {
            key: value
            for key, value in fields.items()
            if key not in derived and value is not None and value is not False
        }
        entry = gpus.capabilities[name]
        products = ", ".join(entry.products) if entry.variant is None else ""
        entries.append([*nix_comment(products), *nix_binding(name, written)])
    return _separated(entries)


# -- releases of package sets


def set_versions(sets: Iterable[PackageSet]) -> dict[str, dict[str, dict[str, str]]]:
    """Return labels by package set, redistributable and platform.

    Skips sets for Windows, sets of wheels and the redistributables of overlays.
    """
    versions: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for package_set in sets:
        platform = package_set.platform.redist_system
        if package_set.channel != "redist" or platform not in {X86, SERVER_ARM, JETSON}:
            continue
        for redist, release in package_set.redists.items():
            is_skipped = redist in _BUILT_FROM_SOURCE or redist not in REDISTS
            if release.release is not None and not is_skipped:
                versions[package_set.cuda.attribute][redist][platform] = release.release
    return {
        attribute: {redist: dict(labels) for redist, labels in sorted(versions[attribute].items())}
        for attribute in sorted(versions, key=lambda name: Version.parse(_numbers(name)))
    }


def _numbers(attribute: str) -> str:
    return ".".join(part for part in attribute.split("_") if part.isdigit())


def _release(labels: Mapping[str, str]) -> NixValue:
    """Return a redistributable's release, with conditions if platforms differ."""
    names = {JETSON: "isJetson", SERVER_ARM: "isAarch64"}
    fallback = labels.get(X86) or labels.get(SERVER_ARM) or labels[JETSON]
    others = [p for p in names if labels.get(p, fallback) != fallback]
    if others == [SERVER_ARM] and JETSON in labels:
        # A Jetson is also ARM, so its condition is first.
        others = [JETSON, *others]
    if not others:
        return fallback
    conditions = [f"if {names[p]} then {nix_string(labels[p])}" for p in others]
    if len(conditions) == 1:
        return NixExpression(f"{conditions[0]} else {nix_string(fallback)}")
    lines = []
    for number, platform in enumerate(others):
        word = "else if" if number else "if"
        lines += [f"{word} {names[platform]} then", f"  {nix_string(labels[platform])}"]
    return NixExpression("\n".join([*lines, "else", f"  {nix_string(fallback)}"]))


def _version_lines(versions: Mapping[str, Mapping[str, Mapping[str, str]]]) -> list[str]:
    entries = []
    for attribute, redists in versions.items():
        releases: dict[str, NixValue] = {name: _release(each) for name, each in redists.items()}
        first, *rest = nix_binding(attribute, releases)
        entries.append([first.replace(" = {", " = packageSet {", 1), *rest])
    return list(_separated(entries))


def manifest_files(sets: Iterable[PackageSet], tables: SharedTables) -> dict[str, bytes]:
    """Return the published manifests of the sets, by path in nixpkgs."""
    selected = {
        (redist, label)
        for redists in set_versions(sets).values()
        for redist, labels in redists.items()
        for label in labels.values()
    }
    return {
        f"{MANIFEST_FOLDER}/{redist}/redistrib_{label}.json": data
        for redist, label in sorted(selected)
        if (data := tables.manifests.get((redist, label))) is not None
    }


def _separated(entries: Iterable[list[str]]) -> Iterator[str]:
    """Yield indented entries, separated by empty lines."""
    for number, entry in enumerate(entries):
        if number:
            yield ""
        yield from nix_indented(entry)
