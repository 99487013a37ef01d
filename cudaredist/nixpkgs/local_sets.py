"""Resolve the releases of package sets from manifests and policy, without archives."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cudaredist.errors import UsageError
from cudaredist.nixpkgs.machines import (
    JETSON_PLATFORM,
    MACHINES,
    ORIN,
    SERVER_ARM,
    THOR,
    X86,
    machines_of,
)
from cudaredist.nixpkgs.releases import SetReleases
from cudaredist.primitives import Version
from cudaredist.sets.flags import set_attribute
from cudaredist.sets.inputs import SetData
from cudaredist.sets.spec import RefusedSet, Request, resolve_set
from cudaredist.sets.version_choice import choose_releases, find_cuda, newest_patches

_TARGETS: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]] = {
    X86: [(X86, ())],
    SERVER_ARM: [(SERVER_ARM, ())],
    ORIN: [(JETSON_PLATFORM, ("8.7",)), (SERVER_ARM, ("8.7",))],
    THOR: [(SERVER_ARM, ("11.0",)), (SERVER_ARM, ("10.1",))],
}
"""Platforms and capabilities of a machine, in the order to try."""


def local_sets(data: SetData, pins: Mapping[str, str]) -> list[SetReleases]:
    """Return the sets of the newest local patch of each CUDA minor release.

    They are for x86-64, ARM servers, and Jetsons with their own build.
    """
    sets = []
    for label in newest_patches(data):
        for platform in (X86, SERVER_ARM, JETSON_PLATFORM):
            resolved = _resolve(data, label, platform, (), pins)
            if resolved is not None:
                sets.append(resolved)
    return sets


def sets_to_compare(data: SetData, sets: Iterable[SetReleases]) -> Iterator[SetReleases]:
    """Yield a set for each machine without one, for the CUDA releases of the given sets.

    Their pinned releases are the same.
    """
    by_attribute: dict[str, list[SetReleases]] = {}
    for package_set in sets:
        by_attribute.setdefault(package_set.attribute, []).append(package_set)
    labels = {str(label) for label in data.cuda_labels}
    for group in by_attribute.values():
        own = {machine for package_set in group for machine in package_set.machines}
        last = group[-1]
        if last.cuda not in labels:
            continue
        for machine in MACHINES:
            if machine in own:
                continue
            pins, label = _pins(group, data), find_cuda(last.cuda, data)
            for platform, capabilities in _TARGETS[machine]:
                resolved = _resolve(data, label, platform, capabilities, pins)
                if resolved is not None:
                    yield resolved._replace(attribute=last.attribute, machines=(machine,))
                    break


def _pins(group: Iterable[SetReleases], data: SetData) -> dict[str, str]:
    """Return the pinned releases of sets that are local."""
    return {
        redist: choice.release
        for package_set in group
        for redist, choice in package_set.redists.items()
        if choice.mode == "pinned" and choice.release is not None and redist != "cuda"
        if choice.release in {str(label) for label in data.manifests.get(redist, ())}
    }


def _resolve(
    data: SetData,
    cuda: Version,
    platform: str,
    capabilities: tuple[str, ...],
    pins: Mapping[str, str],
) -> SetReleases | None:
    """Return the releases of a set, or None if there is no set for the platform."""
    request = Request(platform=platform, capabilities=capabilities, pins=pins)
    try:
        spec = resolve_set(request, cuda, data)
    except UsageError:
        if not capabilities:
            raise
        return None
    if isinstance(spec, RefusedSet):
        return None
    choices = choose_releases(spec.target, spec.pins, data)
    redists = {redist: choice.chosen for redist, choice in choices.items()}
    machines = machines_of(platform, capabilities)
    return SetReleases(set_attribute(cuda.line), str(cuda), machines, redists)
