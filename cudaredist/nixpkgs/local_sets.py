"""Resolve the releases of package sets from manifests and policy, without archives."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cudaredist.errors import UsageError
from cudaredist.grouping import grouped
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
from cudaredist.sets.version_choice import (
    choose_releases,
    find_cuda,
    find_refused_pins,
    newest_patches,
)


class _Build(NamedTuple):
    """A platform and capabilities to build a set for."""

    platform: str
    capabilities: tuple[str, ...] = ()


_BUILDS: Mapping[str, Sequence[_Build]] = {
    X86: [_Build(X86)],
    SERVER_ARM: [_Build(SERVER_ARM)],
    ORIN: [_Build(JETSON_PLATFORM, ("8.7",)), _Build(SERVER_ARM, ("8.7",))],
    THOR: [_Build(SERVER_ARM, ("11.0",)), _Build(SERVER_ARM, ("10.1",))],
}
"""The builds for a machine, in the order to try."""
_FIRST_FOR_JETSONS = Version.parse("13.0")
"""The first CUDA release whose builds for ARM servers nixpkgs uses for Jetsons."""


def local_sets(data: SetData, pins: Mapping[str, str]) -> list[SetReleases]:
    """Return the sets of the newest local patch of each CUDA minor release.

    They are for x86-64, ARM servers and Jetsons. nixpkgs has no packages for Thor before CUDA 13.
    It uses the builds for ARM servers for Orin from CUDA 13.0 on, although NVIDIA supports them
    there from 13.2 on, because there are no others.
    """
    sets = []
    for label in newest_patches(data):
        builds = [_Build(X86), _Build(SERVER_ARM), _Build(JETSON_PLATFORM)]
        if label.components >= _FIRST_FOR_JETSONS.components:
            builds += [_Build(SERVER_ARM, ("8.7",)), _Build(SERVER_ARM, ("11.0",))]
        resolved = (_resolve(data, label, build, pins) for build in builds)
        sets += [package_set for package_set in resolved if package_set is not None]
    return sets


def sets_to_compare(data: SetData, sets: Iterable[SetReleases]) -> Iterator[SetReleases]:
    """Yield a set for each machine without one, for the CUDA releases of the given sets.

    Their pinned releases are the same.
    """
    labels = {str(label) for label in data.cuda_labels}
    by_attribute = grouped((package_set.attribute, package_set) for package_set in sets)
    for attribute, own in by_attribute.items():
        release = own[-1].cuda
        if release not in labels:
            continue
        cuda, pins = find_cuda(release, data), _local_pins(own, data)
        machines = {machine for package_set in own for machine in package_set.machines}
        for machine in MACHINES:
            if machine not in machines:
                builds = (_resolve(data, cuda, build, pins) for build in _BUILDS[machine])
                first = next(filter(None, builds), None)
                if first is not None:
                    yield first._replace(attribute=attribute, machines=(machine,))


def _local_pins(sets: Iterable[SetReleases], data: SetData) -> dict[str, str]:
    """Return the pinned releases of sets that are local."""
    return {
        redist: choice.release
        for package_set in sets
        for redist, choice in package_set.redists.items()
        if choice.mode == "pinned" and choice.release is not None and redist != "cuda"
        if choice.release in {str(label) for label in data.manifests.get(redist, ())}
    }


def _resolve(
    data: SetData,
    cuda: Version,
    build: _Build,
    pins: Mapping[str, str],
) -> SetReleases | None:
    """Return the releases of a set, or None if there is no set for the platform."""
    platform, capabilities = build
    request = Request(platform=platform, capabilities=capabilities, pins=pins)
    try:
        spec = resolve_set(request, cuda, data)
    except UsageError:
        if not capabilities:
            raise
        return None
    if isinstance(spec, RefusedSet):
        return None
    refused = find_refused_pins(spec.target, spec.pins, data)
    used = {
        redist: manifest
        for redist, manifest in spec.pins.items()
        if redist not in refused or refused[redist].is_published
    }
    choices = choose_releases(spec.target, used, data)
    redists = {redist: choice.chosen for redist, choice in choices.items()}
    machines = machines_of(platform, capabilities)
    return SetReleases(set_attribute(cuda.line), str(cuda), machines, redists, refused)
