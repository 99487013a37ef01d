"""Requirements of packages in policy.

A package can require capabilities, CUDA releases and other packages.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from cudaredist.formats.policy import Requirement, RequirementPolicy
from cudaredist.formats.reason import ReasonCode
from cudaredist.formats.set_policy import Bounds
from cudaredist.primitives import Platform, Version
from cudaredist.sets.bounds import bounds_text, is_within
from cudaredist.tables.gpus.capability import Capability


class SetTarget(NamedTuple):
    """The CUDA release, platform and effective capabilities of a set."""

    cuda: Version
    platform: Platform
    capabilities: tuple[str, ...]


def requirements_of(
    name: str,
    release: Version,
    target: SetTarget,
    policy: RequirementPolicy,
    *,
    are_warnings: bool = False,
) -> list[Requirement]:
    """Return the requirements for a package's release in a set, or those that only warn."""
    return [
        entry
        for entry in policy.requirements
        if entry.package == name
        and (entry.kind == "warning") == are_warnings
        and is_within(release, entry.releases)
        and is_within(target.cuda, entry.cuda)
        and entry.platform in {None, target.platform}
    ]


def requirement_problems(
    entry: Requirement,
    target: SetTarget,
    versions_of: Callable[[str], Iterable[Version]] | None = None,
) -> Iterator[tuple[ReasonCode, str]]:
    """Yield the reasons why a set does not meet a requirement.

    Without `versions_of`, which returns the usable versions of a package, other packages are not
    checked.
    """
    for code, problem in target_problems(entry, target):
        yield code, f"{entry.reason}: {problem}"
    if versions_of is not None:
        for _, problem in package_problems(entry, versions_of):
            yield "dependency-unavailable", f"{entry.reason}: {problem}"


def package_problems(
    entry: Requirement, versions_of: Callable[[str], Iterable[Version]]
) -> Iterator[tuple[str, str]]:
    """Yield the packages that a requirement needs in another version, with the reasons."""
    for name, bounds in sorted((entry.needs_packages or {}).items()):
        problem = _package_problem(name, bounds, list(versions_of(name)))
        if problem:
            yield name, problem


def target_problems(entry: Requirement, target: SetTarget) -> Iterator[tuple[ReasonCode, str]]:
    """Yield the reasons why a target does not meet a requirement."""
    names = target.capabilities
    bases = {name: Capability.parse(name).base for name in names}
    if entry.min_capability:
        least = Capability.parse(entry.min_capability)
        lower = [name for name in names if bases[name] < least]
        if lower:
            yield "capability-unsupported", f"the set is also for {', '.join(lower)}"
    if entry.only_capabilities is not None:
        others = [name for name in names if name not in entry.only_capabilities]
        if others:
            yield "capability-unsupported", f"the set is also for {', '.join(others)}"
    exact = entry.exact_capabilities
    if exact is not None and set(names) != set(exact):
        text = f"requires exactly {', '.join(exact)}, but the set is for {', '.join(names)}"
        yield "capability-unsupported", text
    without = [name for name in names if str(bases[name]) in entry.without_capabilities]
    if without:
        yield "capability-unsupported", f"the set is for {', '.join(without)}"
    if entry.needs_cuda is not None and not is_within(target.cuda, entry.needs_cuda):
        yield "cuda-version-unsupported", f"requires CUDA {bounds_text(entry.needs_cuda)}"


def _package_problem(name: str, bounds: Bounds, versions: Sequence[Version]) -> str:
    """Return the reason why no version fits, or an empty text."""
    if any(is_within(version, bounds) for version in versions):
        return ""
    if not versions:
        return f"{name} is not available"
    texts = " and ".join(map(str, versions))
    return f"requires {name} {bounds_text(bounds)}, but the set has {texts}"
