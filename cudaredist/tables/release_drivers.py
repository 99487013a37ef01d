"""Facts about the drivers of a CUDA minor, from its manifests and the policy of drivers."""

from collections.abc import Iterator, Mapping

from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.manifests.manifest_values import Package
from cudaredist.primitives import Version, manifest_name, parse_label
from cudaredist.tables.driver_support import documented, on_systems
from cudaredist.tables.explanation import Fact, Origin, make_fact

DRIVER, COMPATIBILITY = "nvidia_driver", "cuda_compat"
_TITLES = {DRIVER: "driver", COMPATIBILITY: "compatibility driver"}


def driver_facts(
    manifests: Mapping[Version, tuple[Package, ...]], minor: str, policy: DriverPolicy
) -> Iterator[Fact]:
    """Yield the drivers in the manifests of a CUDA minor, and the lowest documented ones."""
    for label, packages in manifests.items():
        for package in packages:
            if package.name not in _TITLES:
                continue
            for version in package.versions:
                platforms = {a.platform for a in package.archives if a.version == version}
                yield make_fact(
                    f"driver.{package.name}",
                    f"published with CUDA {label}: {_TITLES[package.name]} {version} "
                    f"({', '.join(sorted(platforms))})",
                    str(version),
                    Origin("derived", manifest_name(label), release=str(label)),
                )
    for name, release in policy.releases.items():
        if parse_label(name).line == minor:
            words = f"lowest driver with all features of CUDA {name}: "
            words += on_systems(release.linux, release.windows)
            yield make_fact("driver.native", words, release.linux, documented(release.reference))
    ptx = policy.ptx.get(minor)
    if ptx is not None:
        words = f"PTX {ptx.version}: older drivers than that of this release do not compile it"
        yield make_fact("driver.ptx", words, ptx.version, documented(ptx.reference))
    major = minor.partition(".")[0]
    entry = policy.lowest.get(major)
    if entry is not None:
        words = f"lowest driver for CUDA {major}: {on_systems(entry.version, entry.windows)}"
        origin = documented(entry.reference)
        yield make_fact("driver.lowest", words, entry.version, origin, entry.reason)
