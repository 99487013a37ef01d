"""Compare the tables of a nixpkgs checkout with ours, with reasons."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from cudaredist.commands.export.report import TableCell, TableDiffReport
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    ContentError,
    IncompleteError,
    UnknownNameError,
    UsageError,
)
from cudaredist.exporters.export_format import ExportedSet, SharedTables
from cudaredist.exporters.nixpkgs_tables import (
    CAPABILITY_PATH,
    JETSON,
    NVCC_PATH,
    SERVER_ARM,
    VERSIONS_PATH,
    X86,
    capability_fields,
    manifest_files,
    nvcc_bounds,
    set_versions,
)
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.tables import GpuPolicy, NvccPolicy
from cudaredist.hints import command_line
from cudaredist.jsontext import load_json
from cudaredist.primitives import Version, sha256_of
from cudaredist.redists import CUDA
from cudaredist.store.files import read_file
from cudaredist.tables.explain_gpu import capability_topic
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Fact

_Cells: TypeAlias = Mapping[tuple[str, ...], str | bool | None]
_Reason: TypeAlias = Callable[..., str]

_FACTS = {
    "archName": "family",
    "isJetson": "jetson",
    "minCudaMajorMinorVersion": "first_cuda",
    "maxCudaMajorMinorVersion": "last_cuda",
    "dontDefaultAfterCudaMajorMinorVersion": "dont_default_after",
}
_BOUNDS = {"maxMajorVersion": "max", "minMajorVersion": "min"}
_SHOWN = 400


def diff_checkout(
    exported: ExportedSet, checkout: Path, nvcc_policy: NvccPolicy, gpu_policy: GpuPolicy
) -> TableDiffReport:
    """Return every cell of nixpkgs' tables that would change.

    Raises `UsageError` if the folder is not a checkout of nixpkgs, and `ContentError` if its files
    have an unknown format.
    """
    tables = exported.tables
    assert tables is not None  # noqa: S101 - the format's own flag
    theirs = _evaluate(checkout)
    versions = set_versions(exported.all_sets)
    releases = _existing_releases(theirs["releases"], versions)
    cells = [
        *_differing(
            "compilers",
            _flat(theirs["compilers"], 3),
            _flat(nvcc_bounds(tables.compat), 3),
            partial(_bound_reason, tables, nvcc_policy),
        ),
        *_differing(
            "capabilities",
            _flat(theirs["capabilities"], 2),
            _flat(capability_fields(tables.gpus), 2),
            partial(_capability_reason, tables, gpu_policy),
        ),
        *_differing(
            "releases",
            releases,
            _flat(versions, 3),
            partial(_release_reason, exported.all_sets, releases),
        ),
        *_manifest_cells(exported, tables, checkout),
    ]
    return TableDiffReport(
        checkout=str(checkout), cells=tuple(cells), exit_code=EXIT_FINDINGS if cells else EXIT_OK
    )


def _evaluate(checkout: Path) -> dict[str, Any]:
    """Return the tables of a checkout, as evaluated by Nix.

    Nothing is built or downloaded.
    """
    for path in (NVCC_PATH, CAPABILITY_PATH):
        if not os.path.lexists(checkout / path):
            raise UsageError(
                f"{checkout} is not a checkout of nixpkgs: it has no {path}",
                hint="run `git clone --depth 1 https://github.com/NixOS/nixpkgs`",
            )
    program = shutil.which("nix-instantiate")
    if program is None:
        raise IncompleteError(
            "--diff requires nix-instantiate, which is not installed",
            hint="install Nix, for example on Debian: `apt-get install nix-bin`",
        )
    arguments = {
        "checkout": str(checkout.resolve()),
        "versions": VERSIONS_PATH,
        "nvcc": NVCC_PATH,
        "capabilities": CAPABILITY_PATH,
        "x86": X86,
        "serverArm": SERVER_ARM,
        "jetson": JETSON,
    }
    expression = Path(__file__).with_suffix(".nix").read_text("utf-8")
    options = ["--store", "dummy://", "--eval", "--strict", "--json", "--expr", expression]
    for argument, value in arguments.items():
        options += ["--argstr", argument, value]
    process = subprocess.run(  # noqa: S603 - the user's own Nix
        [program, *options],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "NIX_PATH": ""},
    )
    if process.returncode:
        words = " ".join(process.stderr.split())[:_SHOWN]
        raise ContentError(f"Nix cannot evaluate the tables of {checkout}: {words}")
    tables: dict[str, Any] = load_json(process.stdout.encode())
    return tables


def _flat(rows: Mapping[str, Any], depth: int) -> dict[tuple[str, ...], Any]:
    """Return the cells of nested tables by their path."""
    if depth == 1:
        return {(name,): value for name, value in rows.items()}
    return {
        (name, *below): value
        for name, row in rows.items()
        for below, value in _flat(row, depth - 1).items()
    }


def _differing(table: str, theirs: _Cells, ours: _Cells, reason: _Reason) -> Iterator[TableCell]:
    for cell in [*ours, *(cell for cell in theirs if cell not in ours)]:
        old, new = theirs.get(cell), ours.get(cell)
        # The cells of a missing row are None, like the empty cells of an existing row.
        if old != new:
            yield TableCell.model_validate(
                {
                    "table": table,
                    "cell": ".".join(cell),
                    "nixpkgs": old,
                    "cudaredist": new,
                    "is_downgrade": table == "releases" and _is_older(new, old),
                    "reason": reason(*cell),
                }
            )


# -- reasons


def _bound_reason(
    tables: SharedTables, policy: NvccPolicy, minor: str, compiler: str, bound: str
) -> str:
    try:
        topic = explain_nvcc(minor, tables.compat, policy)
    except UnknownNameError:
        return "nvcc_compat.json does not have this CUDA release"
    facts = {fact.name: fact for fact in topic.facts}
    return _in_words(facts.get(f"{compiler}.{_BOUNDS.get(bound)}"))


def _capability_reason(tables: SharedTables, policy: GpuPolicy, name: str, field: str) -> str:
    if name not in tables.gpus.capabilities:
        return "gpus.json does not have this capability"
    topic = capability_topic(name, tables.gpus, policy)
    facts = {fact.name: fact for fact in topic.facts}
    if field in _FACTS:
        return _in_words(facts.get(_FACTS[field]))
    return f"computed from the name {name}"


def _in_words(fact: Fact | None) -> str:
    if fact is None:
        return "no file or policy has this value"
    because = f"; {fact.reason}" if fact.reason else ""
    claims = "".join(f"; otherwise {claim.value}: {claim.source}" for claim in fact.otherwise)
    return f"{fact.statement} ({fact.basis}: {fact.source}{because}{claims})"


def _existing_releases(
    theirs: Mapping[str, Mapping[str, Mapping[str, str]]],
    ours: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> dict[tuple[str, ...], str]:
    """Return nixpkgs' releases of our sets, for our platforms."""
    releases: dict[tuple[str, ...], str] = {}
    for attribute, redists in ours.items():
        for platform in {platform for labels in redists.values() for platform in labels}:
            for redist, label in theirs.get(platform, {}).get(attribute, {}).items():
                releases[attribute, redist, platform] = label
    return releases


def _is_older(new: object, old: object) -> bool:
    """Check if a release is older than nixpkgs'. Only NVIDIA's labels have an order."""
    with contextlib.suppress(ValueError):
        return Version.parse(str(new)) < Version.parse(str(old))
    return False


def _release_reason(
    sets: tuple[PackageSet, ...],
    existing: Mapping[tuple[str, ...], str],
    attribute: str,
    redist: str,
    platform: str,
) -> str:
    (package_set,) = (
        each
        for each in sets
        if (each.cuda.attribute, each.platform.redist_system) == (attribute, platform)
    )
    release = package_set.redists.get(redist)
    if release is None:
        return "the data folder has no manifest of this redistributable"
    if release.release is None:
        words = "no local release is published for this set"
    elif redist == CUDA:
        words = "the CUDA release of the set"
    elif release.mode == "pinned":
        words = "pinned with --redist or --redist-map"
    else:
        words = "the newest local release that fits the set"
    rejected = [f"not {newer.release}: {newer.reason}" for newer in release.newer_rejected]
    old = existing.get((attribute, redist, platform))
    # Every newer local release has a reason.
    is_known = release.mode == "pinned" or old in {x.release for x in release.newer_rejected}
    if _is_older(release.release, old) and not is_known:
        download = command_line("download-manifests", redist=redist, version=old)
        rejected.append(f"{old} was not local: `{download}`")
    return "; ".join([words, *rejected])


def _manifest_cells(
    exported: ExportedSet, tables: SharedTables, checkout: Path
) -> Iterator[TableCell]:
    """Yield missing or different manifests, ignoring white space."""
    for path, data in manifest_files(exported.all_sets, tables).items():
        current = read_file(checkout / path)
        with contextlib.suppress(ValueError):  # an invalid file differs
            if current is not None and load_json(current) == load_json(data):
                continue
        yield TableCell(
            table="manifests",
            cell=path,
            nixpkgs=None if current is None else sha256_of(current),
            cudaredist=sha256_of(data),
            reason="NVIDIA's manifest of a release in the table of releases",
        )
