"""Archives of all redistributables that are usable with a CUDA release."""

from collections.abc import Iterator, Sequence

from cudaredist.formats.names import Channel
from cudaredist.formats.policy import ConstraintPolicy, RequirementPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.primitives import ArchiveId, Platform, Version, find_release
from cudaredist.redists import CUDA
from cudaredist.sets.cuda_majors import CudaMajors, StatedRelease, shipped_wheels
from cudaredist.sets.cuda_releases import (
    broken_constraints,
    built_for_other,
    is_for_later_cuda,
    missing_release,
    variants_of,
)
from cudaredist.sets.requirements import SetTarget, requirements_of, target_problems
from cudaredist.store.data_folder import Store
from cudaredist.store.local_manifests import load_manifest, refuse_other_channel, require_manifests


def find_local_cuda(text: str, store: Store) -> Version:
    """Return the local CUDA release with a label or prefix. Raises `UsageError`."""
    require_manifests(store, [CUDA])
    refuse_other_channel(store, CUDA, text)
    labels = store.manifests(CUDA).labels()
    release = find_release(text, labels)
    if release is None:
        raise missing_release("CUDA", text, labels)
    return release


def usable_by_channel(text: str, stores: Sequence[Store]) -> "dict[Channel, UsableWithCuda]":
    """Return the usable archives of each channel that has a CUDA release.

    Raises `UsageError` if no channel has it.
    """
    usable: dict[Channel, UsableWithCuda] = {}
    for store in stores:
        release = find_release(text, store.manifests(CUDA).labels())
        if release is not None:
            usable[store.channel] = UsableWithCuda(release, store)
    if not usable:
        # The error suggests a release of the channel with the newest one.
        find_local_cuda(text, max(stores, key=_newest_cuda))
    return usable


def _newest_cuda(store: Store) -> Version:
    return max(store.manifests(CUDA).labels(), default=Version.parse("0"))


class UsableWithCuda:
    """The archives that are usable with a CUDA release, by the rules of package sets."""

    def __init__(self, cuda: Version, store: Store) -> None:
        self.cuda = cuda
        self._store = store
        self._constraints = read_own_file(store.read_policy("constraints"), ConstraintPolicy)
        self._requirements = read_own_file(store.read_policy("requirements"), RequirementPolicy)
        self._majors = CudaMajors(self._releases, self._constraints.first_wheels)

    def has(self, redist: str, label: Version, archive: ArchiveId) -> bool:
        """Check if an archive is usable with the CUDA release."""
        if redist == CUDA:
            return label == self.cuda
        if self._majors.refusal(redist, label, archive, self.cuda):
            return False
        target = SetTarget(self.cuda, Platform(archive.platform), ())
        codes = {
            code
            for entry in requirements_of(archive.package, label, target, self._requirements)
            for code, _ in target_problems(entry, target)
        }
        return (
            archive.variant in {None, *variants_of(self.cuda)}
            and built_for_other(label, self.cuda) is None
            and not is_for_later_cuda(label, self.cuda)
            and not broken_constraints(redist, label, self.cuda, self._constraints)
            and "cuda-version-unsupported" not in codes
        )

    def _releases(self, redist: str) -> Iterator[StatedRelease]:
        for label in self._store.manifests(redist).labels():
            yield StatedRelease(label, load_manifest(self._store, redist, label), is_wheel=False)
        if self._store.channel == "redist":
            yield from shipped_wheels(redist)
