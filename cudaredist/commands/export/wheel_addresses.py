"""Addresses and sizes of wheels, from the package index."""

import contextlib
from collections.abc import Mapping

from cudaredist.errors import IntegrityError, NotAtSourceError, UsageError
from cudaredist.formats.packageset import PackageSet
from cudaredist.hints import command_line
from cudaredist.sources.protocol import Settings, without_credentials
from cudaredist.sources.wheel_index import INDEX
from cudaredist.sources.wheel_source import WheelSource
from cudaredist.words import listed, plural


def index_addresses(
    hashes: Mapping[str, str | None], source: WheelSource
) -> tuple[dict[str, str], Mapping[str, int]]:
    """Return the addresses and sizes of wheels, by their paths in manifests, without missing ones.

    Addresses have no credentials. Raises `IntegrityError` if an index has another hash than the
    given one, and `UsageError` for an address with a query, which may contain a token.
    """
    wheels = source.wheels_at(hashes)
    addresses = {}
    for path, wheel in wheels.items():
        if wheel.sha256 not in {None, hashes[path]}:
            problem = f"the SHA-256 in the index is {wheel.sha256}"
            message = f"{wheel.file_name}: {problem}, and the data has {hashes[path]}"
            raise IntegrityError(message, hint="check the indexes with `pip config list`")
        addresses[path] = without_credentials(wheel.url)
        if "?" in addresses[path]:
            problem = "its address in the package index has a query, which may contain a token"
            hint = "use another package index, or for a set --wheel-base URL of a mirror"
            raise UsageError(f"{wheel.file_name}: {problem}", hint=hint)
    return addresses, source.sizes(wheels)


def with_index_addresses(package_set: PackageSet, settings: Settings) -> PackageSet:
    """Return a set of the wheels channel with the address and size of each available wheel.

    Raises `NotAtSourceError` for wheels that no index has, and the errors of `index_addresses`.
    """
    archives = {
        attr: package.archive
        for attr, package in package_set.packages.items()
        if package.archive is not None and package.status == "available"
    }
    hashes = {archive.relative_path: archive.sha256 for archive in archives.values()}
    with contextlib.closing(WheelSource(settings)) as source:
        addresses, sizes = index_addresses(hashes, source)
    missing = sorted(hashes.keys() - addresses.keys())
    if missing:
        count = plural(len(missing), "wheel of the set is", "wheels of the set are")
        reason = f"{count} missing: {listed(missing)}"
        download = command_line("download-manifests", channel="wheels")
        hint = f"build the set from current manifests: `{download}`"
        raise NotAtSourceError(INDEX, reason, hint=hint)
    packages = dict(package_set.packages)
    for attr, archive in archives.items():
        path = archive.relative_path
        known = {"url": addresses[path], "size": sizes.get(path)}
        packages[attr] = packages[attr].model_copy(
            update={"archive": archive.model_copy(update=known)}
        )
    return package_set.model_copy(update={"packages": packages})
