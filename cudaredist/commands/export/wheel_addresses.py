"""Addresses and sizes of a package set's wheels, from the package index."""

import contextlib

from cudaredist.errors import IntegrityError, NotAtSourceError, UsageError
from cudaredist.formats.packageset import PackageSet
from cudaredist.hints import command_line
from cudaredist.sources.protocol import Settings, without_credentials
from cudaredist.sources.wheel_index import INDEX
from cudaredist.sources.wheel_source import WheelSource
from cudaredist.words import listed, plural


def with_index_addresses(package_set: PackageSet, settings: Settings) -> PackageSet:
    """Return a set of the wheels channel with the address and size of each available wheel.

    Addresses have no credentials. Raises `NotAtSourceError` for wheels that no index has,
    `IntegrityError` if an index has another hash than the set, and `UsageError` for an address with
    a query, which may contain a token.
    """
    archives = {
        attr: package.archive
        for attr, package in package_set.packages.items()
        if package.archive is not None and package.status == "available"
    }
    paths = {archive.relative_path for archive in archives.values()}
    with contextlib.closing(WheelSource(settings)) as source:
        wheels = source.wheels_at(paths)
        sizes = source.sizes(wheels)
    missing = sorted(paths - wheels.keys())
    if missing:
        count = plural(len(missing), "wheel of the set is", "wheels of the set are")
        reason = f"{count} missing: {listed(missing)}"
        download = command_line("download-manifests", channel="wheels")
        hint = f"build the set from current manifests: `{download}`"
        raise NotAtSourceError(INDEX, reason, hint=hint)
    packages = dict(package_set.packages)
    for attr, archive in archives.items():
        wheel = wheels[archive.relative_path]
        if wheel.sha256 not in {None, archive.sha256}:
            problem = f"the SHA-256 in the index is {wheel.sha256}"
            message = f"{wheel.file_name}: {problem}, and the set has {archive.sha256}"
            raise IntegrityError(message, hint="check the indexes with `pip config list`")
        url = without_credentials(wheel.url)
        if "?" in url:
            problem = "its address in the package index has a query, which may contain a token"
            hint = "add --wheel-base URL of a mirror instead of --resolve"
            raise UsageError(f"{wheel.file_name}: {problem}", hint=hint)
        known = {"url": url, "size": sizes.get(archive.relative_path)}
        packages[attr] = packages[attr].model_copy(
            update={"archive": archive.model_copy(update=known)}
        )
    return package_set.model_copy(update={"packages": packages})
