"""Requirements of packages in policy.

A package can require capabilities, CUDA releases and other packages.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cudaredist.formats.packageset import ReasonCode
from cudaredist.formats.policy import Bounds, Requirement
from cudaredist.primitives import Platform, Version
from cudaredist.sets.inputs import bounds_text, is_within
from cudaredist.tables.gpus.capability import Capability


class SetTarget(NamedTuple):
    """The CUDA release, platform and effective capabilities of a set."""

    cuda: Version
    platform: Platform
    capabilities: tuple[str, ...]


def requirements_of(
    name: str, release: Version, target: SetTarget, requirements: Iterable[Requirement]
) -> list[Requirement]:
    """Return the requirements for a package's release in a set."""
    return [
        entry
        for entry in requirements
        if entry.package == name
        and is_within(release, entry.releases)
        and is_within(target.cuda, entry.cuda)
        and entry.platform in {None, target.platform}
    ]


def target_problems(entry: Requirement, target: SetTarget) -> Iterator[tuple[ReasonCode, str]]:
    """Yield the reasons why a target does not meet a requirement."""
    names = target.capabilities
    if entry.min_capability is not None:
        least = Capability.parse(entry.min_capability)
        low = [name for name in names if Capability.parse(name).base < least]
        if low:
            yield "capability-unsupported", f"the set is also for {', '.join(low)}"
    if entry.only_capabilities is not None:
        others = [name for name in names if name not in entry.only_capabilities]
        if others:
            yield "capability-unsupported", f"the set is also for {', '.join(others)}"
    if entry.exact_capabilities is not None and set(names) != set(entry.exact_capabilities):
        exact = ", ".join(entry.exact_capabilities)
        text = f"requires exactly {exact}, but the set is for {', '.join(names)}"
        yield "capability-unsupported", text
    without = [n for n in names if str(Capability.parse(n).base) in entry.without_capabilities]
    if without:
        yield "capability-unsupported", f"the set is for {', '.join(without)}"
    if entry.needs_cuda is not None and not is_within(target.cuda, entry.needs_cuda):
        yield "cuda-version-unsupported", f"requires CUDA {bounds_text(entry.needs_cuda)}"


def package_problem(name: str, bounds: Bounds, available: Iterable[Version]) -> str | None:
    """Return the reason why no version fits, or None."""
    versions = list(available)
    if any(is_within(version, bounds) for version in versions):
        return None
    if not versions:
        return f"{name} is not available"
    texts = " and ".join(map(str, versions))
    return f"requires {name} {bounds_text(bounds)}, but the set has {texts}"
