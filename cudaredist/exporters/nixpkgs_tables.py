"""nixpkgs' own tables of CUDA, in the form and at the paths that nixpkgs has them.

A CUDA release is added to nixpkgs with its manifests, its row in `nvccCompatibilities`, new rows of
`cudaCapabilityToInfo`, and the releases of its package set.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from cudaredist.errors import UsageError
from cudaredist.exporters.export_format import ExportedSet, Files, SharedTables, exporter
from cudaredist.exporters.nix_code import (
    NixExpression,
    NixValue,
    nix_binding,
    nix_comment,
    nix_indented,
    nix_string,
)
from cudaredist.primitives import Version, parse_label
from cudaredist.schema.packageset import PackageSet
from cudaredist.schema.tables import CapabilityEntry, CompilerRange, Gpus, NvccCompat
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.nvcc_compat.nvcc_table import newest_of

CUDA_FOLDER = "pkgs/development/cuda-modules/_cuda"
NVCC_PATH = f"{CUDA_FOLDER}/db/bootstrap/nvcc.nix"
CAPABILITY_PATH = f"{CUDA_FOLDER}/db/bootstrap/cuda.nix"
MANIFEST_FOLDER = f"{CUDA_FOLDER}/manifests"
VERSIONS_PATH = "pkgs/top-level/cuda-packages.nix"

HOST_COMPILERS = ("clang", "gcc")
"""Compilers in nixpkgs' table."""
_BUILT_FROM_SOURCE = frozenset({"nccl", "nvshmem"})
"""Redistributables that nixpkgs does not read manifests of."""
X86, SERVER_ARM, JETSON = "linux-x86_64", "linux-sbsa", "linux-aarch64"

CompilerBounds: TypeAlias = Mapping[str, str]
"""`maxMajorVersion` and `minMajorVersion`."""

_NVCC_HEAD = """\
# Host compilers that the nvcc of each CUDA release accepts. Made by cudaredist from the headers of
# nvcc and from documentation: `cudaredist explain nvcc 13.0` shows the source of each bound.
{
"""
_CAPABILITY_HEAD = """\
# Compute capabilities, with the CUDA releases that support them. Made by cudaredist from the text
# in ptxas and from policy: `cudaredist explain gpu 9.0` shows the source of each field. Both ends
# of a range of CUDA releases belong to it.
{ lib }:
let
  describe =
    cudaCapability: known:
    {
      inherit cudaCapability;
      isJetson = false;
      isArchitectureSpecific = lib.hasSuffix "a" cudaCapability;
      isFamilySpecific = lib.hasSuffix "f" cudaCapability;
      maxCudaMajorMinorVersion = null;
      dontDefaultAfterCudaMajorMinorVersion = null;
    }
    // known;
in
{
"""
_VERSIONS_HEAD = """\
# Releases of the redistributables in each CUDA package set. Made by cudaredist: every release is
# the newest that is published for the set, or the one that its maker selected.
{
  _cuda,
  callPackage,
  config,
  lib,
}:
let
"""
_IS_JETSON = """\
  isJetson = lib.any (name: _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false) (
    config.cudaCapabilities or [ ]
  );
"""
_IS_AARCH64 = """\
  isAarch64 = callPackage ({ stdenv }: stdenv.hostPlatform.isAarch64) { };
"""
_PACKAGE_SET = """\
  packageSet =
    releases:
    callPackage ../development/cuda-modules { manifests = _cuda.lib.selectManifests releases; };
in
{
"""


@exporter("nixpkgs", None, reads_tables=True)
def nixpkgs(exported: ExportedSet) -> Files:
    """The tables of nixpkgs: compilers, GPUs, manifests and releases of package sets.

    Sets of the wheel channel have no manifests that nixpkgs could read, and no releases of them.
    """
    tables = exported.tables
    if tables is None:
        raise UsageError("nixpkgs requires the tables of a data folder", hint="--data-dir FOLDER")
    files = {
        NVCC_PATH: _file(_NVCC_HEAD, _nvcc_lines(tables.compat)),
        CAPABILITY_PATH: _file(_CAPABILITY_HEAD, _capability_lines(tables.gpus)),
    }
    versions = set_versions(exported.all_sets)
    if versions:
        files[VERSIONS_PATH] = _versions_file(versions)
        files |= manifest_files(exported.all_sets, tables)
    return dict(sorted(files.items()))


# -- host compilers


def nvcc_bounds(compat: NvccCompat) -> dict[str, dict[str, CompilerBounds]]:
    """Return the bounds of GCC and Clang by CUDA minor, of its newest release.

    A minor is left out if a bound is not known: nixpkgs has no word for that.
    """
    minors = sorted({parse_label(label).line for label in compat.releases}, key=Version.parse)
    rows: dict[str, dict[str, CompilerBounds]] = {}
    for minor in minors:
        compilers = compat.releases[newest_of(minor, compat)].compilers
        row: dict[str, CompilerBounds] = {}
        for name in HOST_COMPILERS:
            known = compilers.get(name)
            if isinstance(known, CompilerRange) and None not in {known.min, known.max}:
                row[name] = {"maxMajorVersion": f"{known.max}", "minMajorVersion": f"{known.min}"}
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
    yield "nvccCompatibilities = {"
    yield from _separated(entries)
    yield "};"


# -- compute capabilities


def capability_fields(gpus: Gpus) -> dict[str, dict[str, str | bool | None]]:
    """Return all of nixpkgs' fields by capability."""
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
        stated: dict[str, NixValue] = {
            key: value
            for key, value in fields.items()
            if key not in derived and value is not None and value is not False
        }
        entry = gpus.capabilities[name]
        products = ", ".join(entry.products) if entry.variant is None else ""
        entries.append([*nix_comment(products), *nix_binding(name, stated)])
    yield "cudaCapabilityToInfo = lib.mapAttrs describe {"
    yield from _separated(entries)
    yield "};"


# -- releases of package sets


def set_versions(sets: Iterable[PackageSet]) -> dict[str, dict[str, dict[str, str]]]:
    """Return labels by package set, redistributable and platform.

    Only sets for Linux that are made of NVIDIA's own archives count.
    """
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for package_set in sets:
        platform = package_set.platform.redist_system
        if package_set.channel != "redist" or platform not in {X86, SERVER_ARM, JETSON}:
            continue
        for redist, chosen in package_set.redists.items():
            if chosen.release is not None and redist not in _BUILT_FROM_SOURCE:
                found[package_set.cuda.attribute][redist][platform] = chosen.release
    return {
        attribute: {redist: dict(labels) for redist, labels in sorted(found[attribute].items())}
        for attribute in sorted(found, key=lambda name: Version.parse(_numbers(name)))
    }


def _numbers(attribute: str) -> str:
    return ".".join(part for part in attribute.split("_") if part.isdigit())


def _release(labels: Mapping[str, str]) -> NixValue:
    """Return the release of a redistributable, with conditions if platforms differ."""
    names = {JETSON: "isJetson", SERVER_ARM: "isAarch64"}
    fallback = labels.get(X86) or labels.get(SERVER_ARM) or labels[JETSON]
    others = [p for p in names if labels.get(p, fallback) != fallback]
    if others == [SERVER_ARM] and JETSON in labels:
        # A Jetson is for ARM too, so it is named first.
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


def _versions_file(versions: Mapping[str, Mapping[str, Mapping[str, str]]]) -> bytes:
    entries = []
    for attribute, redists in versions.items():
        releases: dict[str, NixValue] = {name: _release(each) for name, each in redists.items()}
        first, *rest = nix_binding(attribute, releases)
        entries.append([first.replace(" = {", " = packageSet {", 1), *rest])
    body = "".join(f"{line}\n" for line in _separated(entries))
    head = _VERSIONS_HEAD
    head += _IS_AARCH64 if "isAarch64" in body else ""
    head += _IS_JETSON if "isJetson" in body else ""
    return f"{head}{_PACKAGE_SET}{body}}}\n".encode()


def manifest_files(sets: Iterable[PackageSet], tables: SharedTables) -> dict[str, bytes]:
    """Return the manifests of the sets' releases, as NVIDIA published them, by path in nixpkgs."""
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
    """Yield entries one level deeper, with a line between two of them."""
    for number, entry in enumerate(entries):
        if number:
            yield ""
        yield from nix_indented(entry)


def _file(head: str, lines: Iterable[str]) -> bytes:
    body = "".join(f"{line}\n" for line in nix_indented(list(lines)))
    return f"{head}{body}}}\n".encode()
