"""Addresses and sizes of a package set's wheels, from the package index."""

import contextlib

from cudaredist.errors import ArchiveMismatchError, NotAtSourceError, shortened
from cudaredist.schema.packageset import PackageSet
from cudaredist.source.protocol import Settings
from cudaredist.source.wheel_index import INDEX
from cudaredist.source.wheel_source import WheelSource

_SHOWN = 5


def with_index_addresses(package_set: PackageSet, settings: Settings) -> PackageSet:
    """Return a set of the wheel channel with the address and size of each wheel.

    Raises `NotAtSourceError` for wheels that no index has, and `ArchiveMismatchError` if an index
    has another hash than the set.
    """
    archives = {
        attr: package.archive
        for attr, package in package_set.packages.items()
        if package.archive is not None
    }
    paths = {archive.relative_path for archive in archives.values()}
    with contextlib.closing(WheelSource(settings)) as source:
        wheels = source.wheels_at(paths)
        sizes = source.sizes(wheels)
    missing = sorted(paths - wheels.keys())
    if missing:
        raise NotAtSourceError(
            INDEX,
            f"{len(missing)} wheels of the set are missing: "
            f"{', '.join(shortened(missing, _SHOWN))}",
            hint="build the set from current manifests: "
            "cudaredist download-manifests --channel wheels",
        )
    packages = dict(package_set.packages)
    for attr, archive in archives.items():
        wheel = wheels[archive.relative_path]
        if wheel.sha256 not in {None, archive.sha256}:
            raise ArchiveMismatchError(wheel.file_name, "sha256", archive.sha256, wheel.sha256)
        known = {"url": wheel.url, "size": sizes.get(archive.relative_path)}
        packages[attr] = packages[attr].model_copy(
            update={"archive": archive.model_copy(update=known)}
        )
    return package_set.model_copy(update={"packages": packages})
