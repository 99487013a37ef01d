"""CUDA majors of archives whose manifest has no variants.

A flat archive does not state its CUDA major. Its upper end follows from the variants of the same
version in NVIDIA's wheels, or from those of a later release: no product supports a later CUDA major
in an older release.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import LINUX_ALL, SOURCE, ArchiveId, Version, manifest_name
from cudaredist.redists import CUDA
from cudaredist.store.data_folder import Store, shipped_data

_MAJOR = re.compile(r"cuda(\d+)")


class StatedRelease(NamedTuple):
    """A release whose manifest may state CUDA majors by variants."""

    label: Version
    manifest: Manifest
    is_wheel: bool


class CudaEvidence(NamedTuple):
    """A statement about the CUDA releases of an archive, and the file that has it."""

    text: str
    source: str


class CudaMajors:
    """The CUDA majors of releases, by the variants in manifests."""

    def __init__(
        self,
        releases_of: Callable[[str], Iterable[StatedRelease]],
        first_wheels: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Use a function that returns the known releases of a redistributable.

        `first_wheels` has the first release with wheels by redistributable and CUDA major.
        """
        self._releases_of = cache(lambda redist: tuple(releases_of(redist)))
        self._first_wheels = first_wheels

    def refusal(
        self, redist: str, label: Version, archive: ArchiveId, cuda: Version
    ) -> CudaEvidence | None:
        """Return the evidence that a flat archive is for older CUDA majors only, or None."""
        if states_cuda(redist, label, archive):
            return None
        stated = sorted(self._stated_from(redist, label, archive.package), key=_by_label)
        for release, majors in stated:
            if max(majors) < cuda.components[0]:
                supporter = "its wheels support"
                if release.label != label:
                    supporter = f"the later release {release.label} supports"
                text = (
                    f"{archive.package} of {redist} {label} has no variants, and {supporter} CUDA "
                    f"{' and '.join(map(str, sorted(majors)))}, not CUDA {cuda}"
                )
                path = f"{redist}/{manifest_name(release.label)}"
                source = f"shipped wheels {path}" if release.is_wheel else path
                return CudaEvidence(text, source)
        return self._before_first_wheels(redist, label, archive.package, cuda)

    def _before_first_wheels(
        self, redist: str, label: Version, package: str, cuda: Version
    ) -> CudaEvidence | None:
        """Return the evidence that a release is older than the first wheels for a CUDA major.

        Only a product with earlier wheels for an older major shows that.
        """
        releases = self._first_wheels.get(redist, {})
        firsts = {int(major): Version.parse(first) for major, first in releases.items()}
        first = firsts.get(cuda.components[0])
        if first is None or label >= first:
            return None
        if not any(other < first for major, other in firsts.items() if major < cuda.components[0]):
            return None
        text = (
            f"{package} of {redist} {label} has no variants, and the first wheels for CUDA "
            f"{cuda.components[0]} are those of {first}"
        )
        return CudaEvidence(text, "policy/constraints.json")

    def is_stated(self, redist: str, label: Version, package: str, cuda: Version) -> bool:
        """Check if wheels of the same version are for the CUDA major of a release."""
        first = self._first_wheels.get(redist, {}).get(str(cuda.components[0]))
        if first is not None and label == Version.parse(first):
            return True
        stated = self._stated_from(redist, label, package)
        return any(x.label == label and cuda.components[0] in majors for x, majors in stated)

    def _stated_from(
        self, redist: str, label: Version, package: str
    ) -> Iterator[tuple[StatedRelease, frozenset[int]]]:
        """Yield the releases from a label on that state CUDA majors of a package."""
        for release in self._releases_of(redist):
            if release.label < label:
                continue
            majors = set()
            for archive in release.manifest.archives:
                if archive.package == package and archive.variant is not None:
                    match = _MAJOR.match(archive.variant)
                    if match is not None:
                        majors.add(int(match[1]))
            if majors:
                yield release, frozenset(majors)


def states_cuda(redist: str, label: Version, archive: ArchiveId) -> bool:
    """Check if a manifest states the CUDA release of an archive, or it is for all of them.

    Labels of NCCL contain the CUDA release. Sources and `linux-all` have no CUDA major.
    """
    is_portable = archive.platform in {SOURCE, LINUX_ALL}
    return redist == CUDA or bool(label.suffix) or archive.variant is not None or is_portable


def _by_label(stated: tuple[StatedRelease, frozenset[int]]) -> tuple[Version, bool]:
    """Return a key that sorts by release, and a wheel first."""
    return stated[0].label, not stated[0].is_wheel


def shipped_wheels(redist: str) -> Iterator[StatedRelease]:
    """Yield the releases of a redistributable in the shipped wheels."""
    folder = Store(shipped_data(), "wheels").manifests(redist)
    for label in folder.labels():
        data = folder.read(label)
        if data is not None:
            yield StatedRelease(label, read_manifest(data, label=label), is_wheel=True)
