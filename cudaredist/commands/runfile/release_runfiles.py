"""Addresses of the runfiles of a CUDA release."""

from cudaredist.errors import UsageError
from cudaredist.formats.runfile_records import RunfileName
from cudaredist.hints import command_line
from cudaredist.primitives import parse_label
from cudaredist.redists import CUDA, NVIDIA_BASE
from cudaredist.store.data_folder import Store
from cudaredist.store.local_manifests import load_manifest
from cudaredist.tables.release_drivers import DRIVER

_FIRST_WITHOUT_DRIVER = parse_label("13.4")


def runfile_addresses(release: str, store: Store) -> list[str]:
    """Return the addresses of a release's runfiles on NVIDIA's server, x86_64 first.

    Their names have the driver of the manifest. The manifests from 13.4 on have none, and neither
    have the names. Raises `UsageError` if the manifest is missing, or is too old to have a driver.
    """
    label = parse_label(release)
    if not store.manifests(CUDA).has(label):
        download = command_line("download-manifests", redist=CUDA, version=release)
        raise UsageError(f"no manifest of CUDA {release}", hint=f"run `{download}`")
    archives = tuple(load_manifest(store, CUDA, label).archives)
    drivers = {(one.platform, str(one.version)) for one in archives if one.package == DRIVER}
    names = [RunfileName(release, driver, platform).text for platform, driver in drivers]
    if not names and label >= _FIRST_WITHOUT_DRIVER:
        platforms = {one.platform for one in archives}
        names = [RunfileName(release, None, platform).text for platform in platforms]
    folder = f"{NVIDIA_BASE}/compute/cuda/{release}/local_installers"
    addresses = sorted(f"{folder}/{name}" for name in names if name is not None)
    if not addresses:
        hint = "name the address of the runfile instead of the release"
        raise UsageError(f"the manifest of CUDA {release} has no driver", hint=hint)
    return addresses
