"""The releases of package sets for nixpkgs, by machine."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cudaredist.formats.packageset import ChosenRelease, PackageSet, RejectedRelease
from cudaredist.nixpkgs.machines import machines_of
from cudaredist.primitives import Version, natural_order
from cudaredist.redists import REDISTS
from cudaredist.sets.version_choice import RefusedPin

IN_NIXPKGS = REDISTS.keys() - {"nccl", "nvshmem"}
"""Redistributables with manifests in nixpkgs, which builds NCCL and NVSHMEM from source."""

Labels: TypeAlias = Mapping[str, str]
"""Labels by machine."""
SetLabels: TypeAlias = Mapping[str, Labels]
"""The labels of a package set by redistributable and machine."""
Versions: TypeAlias = Mapping[str, SetLabels]
"""Labels by package set, redistributable and machine."""
EvaluatedReleases: TypeAlias = Mapping[str, Mapping[str, Mapping[str, str]]]
"""The labels of nixpkgs by machine, package set and redistributable, as Nix evaluates them."""


class Cell(NamedTuple):
    """The place of a label in nixpkgs' table of releases."""

    attribute: str
    """The package set."""
    redist: str
    machine: str


class Release(NamedTuple):
    """A release of a redistributable."""

    redist: str
    label: str


class SetReleases(NamedTuple):
    """The releases of a package set for some machines."""

    attribute: str
    cuda: str
    machines: tuple[str, ...]
    redists: Mapping[str, ChosenRelease]
    refused_pins: Mapping[str, RefusedPin] = {}
    """The pinned releases that the set cannot use, or that policy calls broken there."""

    @property
    def line(self) -> str:
        """The CUDA minor release."""
        return ".".join(self.cuda.split(".")[:2])


def releases_of(package_set: PackageSet) -> SetReleases | None:
    """Return a set's releases, or None for wheels and platforms that nixpkgs does not have."""
    machines = machines_of(package_set.platform.redist_system, package_set.capabilities.requested)
    if package_set.channel != "redist" or not machines:
        return None
    cuda = package_set.cuda
    return SetReleases(cuda.attribute, cuda.release, machines, package_set.redists)


def set_versions(sets: Iterable[SetReleases]) -> Versions:
    """Return the labels of package sets. Of several sets for a machine, the last one counts.

    Skips redistributables without a manifest in nixpkgs.
    """
    versions: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for package_set in sets:
        for redist, release in package_set.redists.items():
            if release.release is not None and redist in IN_NIXPKGS:
                labels = dict.fromkeys(package_set.machines, release.release)
                versions[package_set.attribute][redist] |= labels
    return {
        attribute: dict(sorted(versions[attribute].items()))
        for attribute in sorted(versions, key=natural_order)
    }


def find_set(sets: Sequence[SetReleases], attribute: str, machine: str) -> SetReleases | None:
    """Return the last set with a name for a machine, or None."""
    for package_set in reversed(sets):
        if package_set.attribute == attribute and machine in package_set.machines:
            return package_set
    return None


def find_choice(sets: Sequence[SetReleases], cell: Cell) -> ChosenRelease | None:
    """Return the choice of a release by the set of a machine, or None."""
    package_set = find_set(sets, cell.attribute, cell.machine)
    return None if package_set is None else package_set.redists.get(cell.redist)


def cells_of(versions: Versions) -> Iterator[tuple[Cell, str]]:
    """Yield each cell of a table with its label."""
    for attribute, redists in versions.items():
        for redist, labels in redists.items():
            for machine, label in labels.items():
                yield Cell(attribute, redist, machine), label


def released(versions: Versions) -> list[Release]:
    """Return each release of a table, sorted."""
    return sorted({Release(cell.redist, label) for cell, label in cells_of(versions)})


def is_older(new: object, old: object) -> bool:
    """Check if a release is older than nixpkgs'. Only NVIDIA's labels have an order."""
    with contextlib.suppress(ValueError):
        return Version.parse(str(new)) < Version.parse(str(old))
    return False


def is_downgrade(new: object, old: object, choice: ChosenRelease | None) -> bool:
    """Check if nixpkgs has a newer release that is published for the set."""
    reason = rejection(choice, str(old)) if choice else None
    return is_older(new, old) and not (reason and reason.is_unpublished)


def rejection(choice: ChosenRelease, label: str) -> RejectedRelease | None:
    """Return a newer release that was rejected, or None."""
    return next((entry for entry in choice.newer_rejected if entry.release == label), None)


def newest_labels(versions: Versions) -> dict[str, str]:
    """Return the newest label of each redistributable in a table."""
    newest: dict[str, str] = {}
    for cell, label in cells_of(versions):
        if cell.redist not in newest or is_older(newest[cell.redist], label):
            newest[cell.redist] = label
    return newest


def versioned_sets(names: Iterable[str]) -> list[str]:
    """Return the names with a CUDA release, such as `cudaPackages_13_0`, sorted."""
    return sorted((name for name in names if name.count("_") > 1), key=natural_order)


def model_of(attribute: str, known: Iterable[str]) -> str:
    """Return the set before an attribute, else the first set, else an empty text."""
    names = versioned_sets(known)
    older = [name for name in names if natural_order(name) < natural_order(attribute)]
    return older[-1] if older else next(iter(names), "")


def labels_by_set(theirs: EvaluatedReleases) -> dict[str, SetLabels]:
    """Return the labels of nixpkgs by package set, redistributable and machine."""
    labels: dict[str, dict[str, dict[str, str]]] = {}
    for machine, sets in theirs.items():
        for attribute, redists in sets.items():
            set_labels = labels.setdefault(attribute, {})
            for redist, label in redists.items():
                set_labels.setdefault(redist, {})[machine] = label
    return {**labels}
