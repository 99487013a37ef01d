"""Drivers for a CUDA release: the one published with it, and the lowest one for its major.

Manifests name the driver in `nvidia_driver` and the compatibility driver in `cuda_compat`. The
lowest driver is NVIDIA's documentation, in `policy/drivers.json`.
"""

from cudaredist.formats.packageset import DriverVersion, SetDriver
from cudaredist.primitives import manifest_name
from cudaredist.redists import CUDA
from cudaredist.sets.spec import SetSpec
from cudaredist.tables.release_drivers import DRIVER


def find_driver(spec: SetSpec) -> SetDriver:
    """Return the drivers for a set's CUDA release and platform.

    If a manifest has several drivers for the platform, none of them is stated.
    """
    manifest = spec.data.manifests[CUDA][spec.cuda]
    package = manifest.packages.get(DRIVER)
    archives = () if package is None else package.archives
    versions = {str(archive.version) for archive in archives if archive.platform == spec.platform}
    policy, is_windows = spec.policies.drivers, spec.platform.os == "windows"
    lowest = native = None
    entry = policy.lowest.get(str(spec.cuda.components[0]))
    if entry is not None:
        lowest = entry.windows if is_windows else entry.version
    release = policy.releases.get(str(spec.cuda))
    if release is not None:
        native = release.windows if is_windows else release.linux
    published = versions.pop() if len(versions) == 1 else None
    return SetDriver(
        published=_driver(published, f"{DRIVER} in {manifest_name(spec.cuda)}"),
        native=_driver(native, spec.policies.source("drivers", release)),
        lowest=_driver(lowest, spec.policies.source("drivers", entry)),
    )


def _driver(version: str | None, source: str) -> DriverVersion | None:
    return DriverVersion(version=version, source=source) if version else None
