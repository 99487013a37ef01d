"""Compare the tables of a nixpkgs checkout with ours, with reasons."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from cudaredist.commands.export.report import TableCell, TableDiffReport, TableName
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    ContentError,
    IncompleteError,
    UnknownNameError,
    UsageError,
    listed,
)
from cudaredist.exporters.export_format import ExportedSet, Files, SharedTables
from cudaredist.exporters.nixpkgs_tables import (
    CAPABILITY_PATH,
    NVCC_PATH,
    NixpkgsTables,
    Rows,
    Versions,
    capability_fields,
    current_rows,
    flat_cells,
    is_same_json,
    manifest_files,
    merged_files,
    nvcc_bounds,
    set_versions,
)
from cudaredist.formats.tables import GpuPolicy, NvccPolicy
from cudaredist.hints import command_line
from cudaredist.jsontext import load_json
from cudaredist.primitives import Version, sha256_of
from cudaredist.redists import CUDA, REDISTS
from cudaredist.store.files import read_file, write_file
from cudaredist.tables.explain_gpu import explain_gpu
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Fact, Topic

_Cells: TypeAlias = Mapping[tuple[str, ...], Any]
_FACTS = {
    "archName": "family",
    "isJetson": "jetson",
    "minCudaMajorMinorVersion": "first_cuda",
    "maxCudaMajorMinorVersion": "last_cuda",
    "dontDefaultAfterCudaMajorMinorVersion": "dont_default_after",
}
_BOUNDS = {"maxMajorVersion": "max", "minMajorVersion": "min"}
_SHOWN = 400


def is_checkout(folder: Path) -> bool:
    """Check if a folder has the tables and the library of nixpkgs. An export has no library."""
    return all(os.path.lexists(folder / path) for path in (NVCC_PATH, "lib/default.nix"))


@dataclass(frozen=True)
class Checkout:
    """A checkout of nixpkgs, and the sets and tables for it."""

    folder: Path
    exported: ExportedSet
    nvcc_policy: NvccPolicy
    gpu_policy: GpuPolicy

    @property
    def tables(self) -> SharedTables:
        """Our tables."""
        assert self.exported.tables is not None  # noqa: S101 - the format's own flag
        return self.exported.tables

    @cached_property
    def _theirs(self) -> NixpkgsTables:
        return _evaluate(self.folder, self.folder)

    @cached_property
    def report(self) -> TableDiffReport:
        """The cells that would change, and those that only nixpkgs has.

        Raises `UsageError` if the folder is not a checkout of nixpkgs, and `ContentError` if its
        files have an unknown format.
        """
        return self._compare(self.folder, self._theirs)

    def merged_files(self) -> Files:
        """Return the changed files. Raises the errors of `report`."""
        files = merged_files(
            self.exported, self._theirs, lambda path: read_file(self.folder / path)
        )
        with tempfile.TemporaryDirectory() as folder:
            for path, data in files.items():
                write_file(Path(folder, path), data, durable=False)
            rest = self._compare(Path(folder), _evaluate(self.folder, Path(folder)))
        lost = [cell.cell for cell in self.report.kept if cell not in rest.kept]
        wrong = [cell.cell for cell in rest.cells] + lost
        if wrong:
            problem = f"cannot change {listed(wrong)}: its files have an unknown format"
            raise ContentError(f"{self.folder}: {problem}", hint="edit them by hand")
        return files

    def _compare(self, folder: Path, theirs: NixpkgsTables) -> TableDiffReport:
        bounds = current_rows(nvcc_bounds(self.tables.compat), theirs.compilers)
        gpus = current_rows(capability_fields(self.tables.gpus), theirs.capabilities)
        versions = set_versions(self.exported.all_sets)
        releases = _existing_releases(theirs.releases, versions)
        reason = partial(self._release_reason, releases)
        compilers, capabilities = flat_cells(theirs.compilers), flat_cells(theirs.capabilities)
        cells = [
            *_differing("compilers", compilers, bounds, self._bound_reason),
            *_differing("capabilities", capabilities, gpus, self._capability_reason),
            *_differing("releases", releases, versions, reason),
            *self._manifest_cells(folder),
        ]
        changes = tuple(cell for cell in cells if cell.cudaredist is not None)
        return TableDiffReport(
            checkout=str(folder),
            cells=changes,
            kept=tuple(cell for cell in cells if cell.cudaredist is None),
            exit_code=EXIT_FINDINGS if changes else EXIT_OK,
        )

    def _manifest_cells(self, folder: Path) -> Iterator[TableCell]:
        """Yield missing or different manifests, ignoring white space."""
        for path, data in manifest_files(self.exported.all_sets, self.tables).items():
            current = read_file(folder / path)
            if current is not None and is_same_json(current, data):
                continue
            redist = REDISTS[PurePosixPath(path).parts[-2]]
            kind = "handwritten" if redist.handwritten else "published"
            yield TableCell(
                table="manifests",
                cell=path,
                nixpkgs=None if current is None else sha256_of(current),
                cudaredist=sha256_of(data),
                reason=f"the {kind} manifest of a release in the table of releases",
            )

    # -- reasons

    def _bound_reason(self, minor: str, compiler: str, bound: str) -> str:
        try:
            topic = explain_nvcc(minor, self.tables.compat, self.nvcc_policy)
        except UnknownNameError:
            return "nvcc_compat.json does not have this CUDA release"
        return _in_words(_fact(topic, f"{compiler}.{_BOUNDS.get(bound)}"))

    def _capability_reason(self, name: str, field: str) -> str:
        if name not in self.tables.gpus.capabilities:
            return "gpus.json does not have this capability"
        if field not in _FACTS:
            return f"computed from the name {name}"
        topic = explain_gpu(name, self.tables.gpus, self.gpu_policy)
        fact = _fact(topic, _FACTS[field])
        value = capability_fields(self.tables.gpus)[name][field]
        for claim in fact.otherwise if fact is not None and fact.value != value else ():
            if claim.value == value:
                because = f"; {claim.reason}" if claim.reason else ""
                words = f"{fact.statement} ({fact.basis}: {fact.source})" if fact else ""
                return f"{value} (policy: {claim.source}{because}); otherwise {words}"
        return _in_words(fact)

    def _release_reason(self, existing: _Cells, attribute: str, redist: str, platform: str) -> str:
        sets = {(s.cuda.attribute, s.platform.redist_system): s for s in self.exported.all_sets}
        package_set = sets[attribute, platform]  # the last one of several patches
        release = package_set.redists.get(redist)
        if release is None:
            return "the package set does not have this redistributable"
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
            rejected.append(f"{old} was not local when the set was built: `{download}`")
        return "; ".join([words, *rejected])


def _fact(topic: Topic, name: str) -> Fact | None:
    return next((fact for fact in topic.facts if fact.name == name), None)


def _in_words(fact: Fact | None) -> str:
    if fact is None:
        return "the data folder has no source of this value"
    because = f"; {fact.reason}" if fact.reason else ""
    claims = "".join(f"; otherwise {claim.value}: {claim.source}" for claim in fact.otherwise)
    return f"{fact.statement} ({fact.basis}: {fact.source}{because}{claims})"


def _evaluate(checkout: Path, folder: Path) -> NixpkgsTables:
    """Return the tables in a folder, as evaluated by Nix with the library of a checkout.

    Nothing is built or downloaded.
    """
    for path in (NVCC_PATH, CAPABILITY_PATH):
        if not os.path.lexists(folder / path):
            hint = "run `git clone --depth 1 https://github.com/NixOS/nixpkgs`"
            message = f"{checkout} is not a checkout of nixpkgs: it has no {path}"
            raise UsageError(message, hint=hint)
    program = shutil.which("nix-instantiate")
    if program is None:
        message = "a checkout of nixpkgs requires nix-instantiate, which is not installed"
        hint = "install Nix, for example on Debian: `apt-get install nix-bin`"
        raise IncompleteError(message, hint=hint)
    expression = Path(__file__).with_suffix(".nix").read_text("utf-8")
    options = ["--store", "dummy://", "--eval", "--strict", "--json", "--expr", expression]
    options += ["--argstr", "checkout", str(checkout.resolve())]
    options += ["--argstr", "tables", str(folder.resolve())]
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
    return NixpkgsTables(**load_json(process.stdout.encode()))


def _differing(
    table: TableName, old: _Cells, ours: Mapping[str, Any], reason: Callable[..., str]
) -> Iterator[TableCell]:
    new = flat_cells(ours)
    for cell in [*new, *(cell for cell in old if cell not in new)]:
        theirs, our = old.get(cell), new.get(cell)  # a cell of a missing row is None
        if theirs != our:
            yield TableCell(
                table=table,
                cell=".".join(cell),
                nixpkgs=theirs,
                cudaredist=our,
                is_downgrade=table == "releases" and _is_older(our, theirs),
                reason=reason(*cell),
            )


def _existing_releases(theirs: Mapping[str, Rows], ours: Versions) -> dict[tuple[str, ...], str]:
    """Return nixpkgs' releases of our sets, for our platforms."""
    return {
        (attribute, redist, platform): label
        for attribute, redists in ours.items()
        for platform in {platform for labels in redists.values() for platform in labels}
        for redist, label in theirs.get(platform, {}).get(attribute, {}).items()
    }


def _is_older(new: object, old: object) -> bool:
    """Check if a release is older than nixpkgs'. Only NVIDIA's labels have an order."""
    with contextlib.suppress(ValueError):
        return Version.parse(str(new)) < Version.parse(str(old))
    return False
