"""The releases of package sets for nixpkgs, by machine."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from cudaredist.formats.packageset import ChosenRelease, PackageSet, RejectedRelease
from cudaredist.nixpkgs.machines import machines_of
from cudaredist.primitives import Version, natural_order
from cudaredist.redists import REDISTS

IN_NIXPKGS = REDISTS.keys() - {"nccl", "nvshmem"}
"""Redistributables with manifests in nixpkgs, which builds NCCL and NVSHMEM from source."""

Labels: TypeAlias = Mapping[str, str]
"""Labels by machine."""
Versions: TypeAlias = Mapping[str, Mapping[str, Labels]]
"""Labels by package set, redistributable and machine."""


class SetReleases(NamedTuple):
    """The releases of a package set for some machines."""

    attribute: str
    cuda: str
    machines: tuple[str, ...]
    redists: Mapping[str, ChosenRelease]

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
    """Return the labels of package sets, the last set of a machine first.

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


def released(versions: Versions) -> list[tuple[str, str]]:
    """Return each redistributable and label, sorted."""
    redists = [item for of_set in versions.values() for item in of_set.items()]
    return sorted({(redist, label) for redist, labels in redists for label in labels.values()})


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


def model_of(attribute: str, known: Iterable[str]) -> str:
    """Return the set before an attribute, else the first set, else an empty text."""
    names = sorted((name for name in known if name.count("_") > 1), key=natural_order)
    older = [name for name in names if natural_order(name) < natural_order(attribute)]
    return older[-1] if older else next(iter(names), "")


def labels_of(
    theirs: Mapping[str, Mapping[str, Mapping[str, str]]], attribute: str
) -> dict[str, dict[str, str]]:
    """Return the labels of a set in nixpkgs by redistributable and machine."""
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for machine, rows in theirs.items():
        for redist, label in rows.get(attribute, {}).items():
            labels[redist][machine] = label
    return labels
