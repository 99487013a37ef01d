"""Read the package sets and tables for an update of nixpkgs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from cudaredist.errors import IncompleteError, InvalidFileError, UnknownNameError, UsageError
from cudaredist.formats.packageset import PackageSet
from cudaredist.hints import again, command_line
from cudaredist.nixpkgs.checkout import Checkout
from cudaredist.nixpkgs.local_sets import local_sets, sets_to_compare
from cudaredist.nixpkgs.our_tables import OurTables
from cudaredist.nixpkgs.paths import TABLES
from cudaredist.nixpkgs.releases import (
    IN_NIXPKGS,
    Release,
    SetReleases,
    released,
    releases_of,
    set_versions,
)
from cudaredist.nixpkgs.tables import SharedTables
from cudaredist.primitives import parse_label
from cudaredist.redists import CUDA, REDISTS
from cudaredist.sets.inputs import SetData
from cudaredist.sets.load import read_set_data
from cudaredist.sets.read_set import indexed_sets, read_package_set
from cudaredist.store.data_folder import Store
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.local_manifests import require_manifests
from cudaredist.store.locate import store_to_read
from cudaredist.store.read_data import RUNFILES, read_runfiles
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE, read_gpu_policy, read_nvcc_policy
from cudaredist.words import listed

_OTHER_TABLES = frozenset({"compilers", "capabilities"})
"""The tables without releases."""


class _SelectedSets(NamedTuple):
    """Our package sets for nixpkgs."""

    sets: Sequence[SetReleases]
    lines: frozenset[str]
    """The CUDA minor releases, also of sets of the wheels channel."""
    warnings: Sequence[str] = ()


def read_checkout(
    folder: Path,
    path: Path | None,
    *,
    data_dir: Path | None,
    use_shipped: bool,
    pins: Sequence[str],
    only: frozenset[str],
    allow_downgrade: bool,
) -> tuple[Checkout, list[str]]:
    """Return the checkout with our tables and package sets, and warnings.

    Without the path of a package set or index, the sets are those of the local releases. Labels do
    not depend on the contents of archives.
    """
    store = store_to_read(data_dir, "redist", use_shipped=use_shipped)
    # The data is read once, and only if it is necessary.
    data = cache(partial(read_set_data, store))
    if path is not None:
        selected = _built_sets(path)
    else:
        require_manifests(store, [CUDA])
        labels = _pins(pins)
        selected = _local_sets(data(), labels)
        selected = selected._replace(warnings=_unwritten_pins(labels, only))
    warnings = [*selected.warnings]
    others: Sequence[SetReleases] = ()
    releases: list[Release] = []
    if not only or only - _OTHER_TABLES:
        _check_only(only, selected.sets)
        try:
            if selected.sets and store.redists():
                others = tuple(sets_to_compare(data(), selected.sets))
        except InvalidFileError as error:
            warnings.append(f"machines without a package set are not compared: {error.message}")
        releases = [*released(set_versions(selected.sets)), *released(set_versions(others))]
    ours = OurTables(
        tables=_read_shared_tables(store, releases),
        nvcc_policy=read_nvcc_policy(store),
        gpu_policy=read_gpu_policy(store),
        sets=selected.sets,
        others=others,
    )
    return Checkout(folder, ours, selected.lines, only, allow_downgrade=allow_downgrade), warnings


def _built_sets(path: Path) -> _SelectedSets:
    """Return the package sets of a file or index."""
    package_sets = [read_package_set(single)[0] for single in indexed_sets(path)]
    lines = frozenset(package_set.cuda.major_minor for package_set in package_sets)
    sets = tuple(filter(None, map(releases_of, package_sets)))
    return _SelectedSets(sets, lines, _warnings(package_sets, sets))


def _local_sets(data: SetData, pins: Mapping[str, str]) -> _SelectedSets:
    """Return the package sets of the local releases."""
    sets = tuple(local_sets(data, pins))
    return _SelectedSets(sets, frozenset(package_set.line for package_set in sets))


def _check_only(only: Iterable[str], sets: Iterable[SetReleases]) -> None:
    """Raise `UnknownNameError` if a name is not a table, a package set or a redistributable."""
    names = {package_set.attribute for package_set in sets}
    known = [*TABLES, *sorted(names), *sorted(IN_NIXPKGS)]
    for name in sorted(only):
        if name not in known:
            raise UnknownNameError("table, package set or redistributable", name, known)


def _pins(texts: Iterable[str]) -> dict[str, str]:
    """Return the requested labels by redistributable. Raises `UsageError`."""
    pins = {}
    for text in texts:
        name, equals, label = text.partition("=")
        if not (name and equals and label):
            hint = f"run `{again('--redist cudnn=9.10', without=['--redist'])}`"
            raise UsageError(f"--redist {text}: expected NAME=LABEL", hint=hint)
        if name == CUDA:
            build = command_line("build", cuda=label, output="set.json")
            hint = f"run `{build}`, and add set.json in place of --redist"
            raise UsageError("--redist cannot pin cuda", hint=hint)
        pins[name] = label
    return pins


def _unwritten_pins(pins: Mapping[str, str], only: frozenset[str]) -> list[str]:
    """Return warnings about pinned releases whose rows are not updated."""
    updated: Collection[str] = IN_NIXPKGS
    if only and only <= _OTHER_TABLES:
        updated = ()
    elif only & IN_NIXPKGS and "releases" not in only:
        updated = only & IN_NIXPKGS
    warnings = []
    for redist, label in sorted(pins.items()):
        if redist not in IN_NIXPKGS:
            warnings.append(f"{redist} {label} is not written: nixpkgs builds {redist} from source")
        elif redist not in updated:
            reason = f"--only {listed(sorted(only))} leaves it out"
            warnings.append(f"{redist} {label} is not written: {reason}")
    return warnings


def _warnings(package_sets: Sequence[PackageSet], sets: Sequence[SetReleases]) -> list[str]:
    """Return warnings about the parts of package sets that nixpkgs' tables do not have."""
    warnings = []
    if not sets:
        warnings.append(
            "skipped manifests and releases: no set has NVIDIA's own archives for Linux"
        )
    own = set().union(*(each.redists for each in package_sets)) - REDISTS.keys()
    if own:
        warnings.append(
            f"skipped {', '.join(sorted(own))}, because nixpkgs has only NVIDIA's "
            "redistributables; to build them with Nix, run `cudaredist export nix SET -o FOLDER`"
        )
    return warnings


def _read_shared_tables(store: Store, releases: Iterable[Release]) -> SharedTables:
    """Return both tables, and the manifests of the given releases.

    Raises `IncompleteError` if a table or a manifest is missing.
    """
    manifests = {release: _read_manifest(store, release) for release in dict.fromkeys(releases)}
    compat, gpus = require_layered(store, NVCC_TABLE), require_layered(store, GPU_TABLE)
    runfiles = read_runfiles(store.read_table(RUNFILES)).runfiles
    return SharedTables(compat.table, gpus.table, manifests, runfiles)


def _read_manifest(store: Store, release: Release) -> bytes:
    """Return the published bytes of a manifest. Raises `IncompleteError` if it is missing."""
    redist, label = release
    data = store.manifests(redist).read(parse_label(label))
    if data is None:
        message = f"no manifest for {redist} {label} in {store.root}"
        download = command_line("download-manifests", redist=redist, version=label)
        raise IncompleteError(message, hint=f"run `{download}`")
    return data
