"""Platforms of Nix systems, and archives for platforms."""

from collections.abc import Iterable
from typing import NamedTuple

from cudaredist.formats.policy import JetsonThreshold, PlatformPolicy
from cudaredist.formats.reason import ReasonCode
from cudaredist.manifests.manifest_values import Archive, Package
from cudaredist.primitives import JETSON, LINUX_ALL, SBSA, SOURCE, Platform, Version
from cudaredist.sets.bounds import is_within
from cudaredist.sets.cuda_releases import variants_of
from cudaredist.sets.inputs import SetData
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import supported_capabilities

UNSUPPORTED = Platform("unsupported")
"""The platform of a Nix system without any NVIDIA release."""


class Absence(NamedTuple):
    """The reason why a set lacks an archive."""

    code: ReasonCode
    text: str


def platform_of_system(
    system: str, capabilities: Iterable[str], cuda: Version, data: SetData
) -> Platform:
    """Return the platform of a Nix system.

    For ARM, that is the server build if it supports all Jetsons among the capabilities (or if there
    are none), and Jetson's own build otherwise.
    """
    platforms = data.policies.platforms.platforms
    names = sorted(name for name, entry in platforms.items() if system in entry.nix_systems)
    if {SBSA, JETSON} <= set(names):
        return JETSON if below_threshold(capabilities, cuda, data) else SBSA
    return Platform(names[0]) if names else UNSUPPORTED


def below_threshold(capabilities: Iterable[str], cuda: Version, data: SetData) -> list[str]:
    """Return the Jetson capabilities that `linux-sbsa` does not support."""
    threshold = threshold_of(cuda, data.policies.platforms)
    if threshold is None:
        return []
    at = Capability.parse(threshold.capability)
    jetsons = (name for name in capabilities if data.gpus.capabilities[name].jetson)
    return [name for name in jetsons if Capability.parse(name) < at]


def jetson_defaults(cuda: Version, data: SetData) -> tuple[str, ...]:
    """Return the default capabilities of Jetson's own build."""
    names = below_threshold(supported_capabilities(cuda.line, data.gpus), cuda, data)
    plain = (name for name in names if data.gpus.capabilities[name].variant is None)
    limit = data.policies.platforms.oldest_jetson
    oldest = None if limit is None else Capability.parse(limit.capability)
    return tuple(name for name in plain if oldest is None or Capability.parse(name) >= oldest)


def threshold_of(cuda: Version, policy: PlatformPolicy) -> JetsonThreshold | None:
    """Return the entry that selects an ARM build."""
    return next((t for t in policy.jetson_thresholds if is_within(cuda, t.cuda)), None)


def select_archive(package: Package, platform: Platform, cuda: Version) -> Archive | Absence:
    """Return a package's archive, or the reason for its absence.

    `source` is preferred to `linux-all`, and `linux-all` to the platform. If archives differ by
    variant, the one for the patch release is preferred to the minor's, and the minor's to the
    major's. Another minor's is never selected. A Nix system without any NVIDIA release gets no
    archive, not even sources.
    """
    if platform == UNSUPPORTED:
        text = f"{package.name}: NVIDIA has no platform for the Nix system"
        return Absence("platform-not-published", text)
    published = {archive.platform for archive in package.archives}
    key = next((name for name in platform.served_by if name in published), None)
    if key is None:
        names = ", ".join(sorted(published)) or "none"
        text = f"{package.name} is not published for {platform}; published: {names}"
        if any(archive.project for archive in package.archives):
            text = f"{package.name} has no wheel for {platform}; wheels: {names}"
        return Absence("platform-not-published", text)
    here = [archive for archive in package.archives if archive.platform == key]
    nested = {archive.variant: archive for archive in here if archive.variant is not None}
    if not nested or (key in {SOURCE, LINUX_ALL} and len(nested) < len(here)):
        flat = next(archive for archive in here if archive.variant is None)
        if package.variants and key == platform:
            text = f"{package.name} for {key} has no variant, but other platforms have"
            return Absence("variant-not-published", text)
        return _with_hash(flat)
    for variant in variants_of(cuda):
        if variant in nested:
            return _with_hash(nested[variant])
    names = ", ".join(sorted(nested))
    text = f"{package.name} for {key} is published for {names}, not for CUDA {cuda}"
    return Absence("variant-not-published", text)


def _with_hash(archive: Archive) -> Archive | Absence:
    if archive.sha256 is None:
        text = f"{archive.package}: the manifest has no hash, so it cannot be verified"
        return Absence("not-in-manifest", text)
    return archive
