"""Our tables and package sets for nixpkgs, and the reasons for their values."""

from collections.abc import Sequence
from dataclasses import dataclass

from cudaredist.errors import UnknownNameError
from cudaredist.formats.packageset import ChosenRelease
from cudaredist.formats.tables import GpuPolicy, NvccPolicy
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.nixpkgs.releases import Cell, SetReleases, find_choice, find_set, is_older
from cudaredist.nixpkgs.tables import SharedTables, capability_fields
from cudaredist.redists import CUDA
from cudaredist.tables.explain_gpu import explain_gpu
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Fact, Topic
from cudaredist.words import listed

_FACTS = {
    "archName": "family",
    "isJetson": "jetson",
    "minCudaMajorMinorVersion": "first_cuda",
    "maxCudaMajorMinorVersion": "last_cuda",
    "dontDefaultAfterCudaMajorMinorVersion": "dont_default_after",
}
_FEW = 4
_BOUNDS = {"maxMajorVersion": "max", "minMajorVersion": "min"}


@dataclass(frozen=True)
class OurTables:
    """Our tables and package sets, and the reasons for their values."""

    tables: SharedTables
    nvcc_policy: NvccPolicy
    gpu_policy: GpuPolicy
    sets: Sequence[SetReleases]
    others: Sequence[SetReleases]
    """Sets that are built for machines without one."""

    def bound_reason(self, minor: str, compiler: str, bound: str) -> str:
        """Return the source of a compiler's bound."""
        try:
            topic = explain_nvcc(minor, self.tables.compat, self.nvcc_policy)
        except UnknownNameError:
            return "nvcc_compat.json does not have this CUDA release"
        return _in_words(_fact(topic, f"{compiler}.{_BOUNDS.get(bound)}"))

    def capability_reason(self, name: str, field: str) -> str:
        """Return the source of a capability's field."""
        if name not in self.tables.gpus.capabilities:
            return "gpus.json does not have this capability"
        if field not in _FACTS:
            return f"computed from the name {name}"
        topic = explain_gpu(name, self.tables.gpus, self.gpu_policy)
        fact = _fact(topic, _FACTS[field])
        value = capability_fields(self.tables.gpus)[name][field]
        if fact is None or fact.value == value:
            return _in_words(fact)
        for claim in fact.otherwise:
            if claim.value == value:
                because = f"; {claim.reason}" if claim.reason else ""
                words = f"{fact.statement} ({fact.basis}: {fact.source})"
                return f"{value} (policy: {claim.source}{because}); otherwise {words}"
        return _in_words(fact)

    def release_reason(self, cell: Cell, old: str | None, new: str | None) -> str:
        """Return the reason for a label that replaces the old one."""
        package_set = find_set(self.sets, cell.attribute, cell.machine)
        if package_set is None:
            return self._reason_without_set(cell, new)
        choice = package_set.redists.get(cell.redist)
        if choice is None:
            return "the package set does not have this redistributable"
        reasons = [_choice_in_words(cell.redist, choice), *_rejections(choice)]
        # Every newer local release has a reason.
        is_rejected = any(newer.release == old for newer in choice.newer_rejected)
        if choice.mode != "pinned" and not is_rejected and is_older(choice.release, old):
            download = command_line("download-manifests", redist=cell.redist, version=old)
            reasons.append(f"{old} was not local when the set was built: `{download}`")
        return "; ".join(reasons)

    def _reason_without_set(self, cell: Cell, new: str | None) -> str:
        choice = find_choice(self.others, cell)
        if choice is None or choice.release != new or not choice.newer_rejected:
            return f"there is no package set for {cell.machine}: it follows another machine"
        words = f"the newest local release that fits {cell.machine}"
        return "; ".join([words, *_rejections(choice)])


def _choice_in_words(redist: str, choice: ChosenRelease) -> str:
    if choice.release is None:
        return "no local release is published for this set"
    if redist == CUDA:
        return "the CUDA release of the set"
    if choice.mode == "pinned":
        return "pinned with --redist or --redist-map"
    return "the newest local release that fits the set"


def _rejections(choice: ChosenRelease) -> list[str]:
    """Return the reasons against newer releases, each with the releases that it is against."""
    reasons: dict[str, str] = {}
    for newer in choice.newer_rejected:
        reasons.setdefault(_without_published(newer.reason), newer.reason)
    releases = grouped(
        (_without_published(newer.reason), newer.release) for newer in choice.newer_rejected
    )
    return [f"not {_range(labels)}: {reasons[key]}" for key, labels in releases.items()]


def _without_published(reason: str) -> str:
    """Return a reason without the list of what is published, which differs between releases."""
    return reason.partition("; published: ")[0]


def _range(labels: Sequence[str]) -> str:
    """Name all labels if they are few, else the newest and the oldest of them."""
    if len(labels) < _FEW:
        return listed(labels)
    return f"{labels[0]} to {labels[-1]} ({len(labels)} releases)"


def _fact(topic: Topic, name: str) -> Fact | None:
    return next((fact for fact in topic.facts if fact.name == name), None)


def _in_words(fact: Fact | None) -> str:
    if fact is None:
        return "the data folder has no source of this value"
    because = f"; {fact.reason}" if fact.reason else ""
    claims = "".join(f"; otherwise {claim.value}: {claim.source}" for claim in fact.otherwise)
    return f"{fact.statement} ({fact.basis}: {fact.source}{because}{claims})"
