"""Addresses of archives on NVIDIA's servers."""

import posixpath
from collections.abc import Mapping

from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import is_pool_path, join_address
from cudaredist.redists import NVIDIA_BASE, NVIDIA_PREVIEWS, REDISTS


def archive_address(
    redist: str, archive: Archive, urls: Mapping[str, str], address: str | None
) -> str | None:
    """Return the URL of an archive. None: unknown, or a wheel, whose index is the user's choice.

    `urls` contains the addresses of the policy `fixups`, and `address` is that of the manifest on
    NVIDIA's second server.
    """
    if archive.relative_path.endswith(".whl") and redist not in urls:
        return None
    base = archive_base(redist, archive, urls, address)
    return None if base is None else join_address(base, archive.relative_path)


def archive_base(
    redist: str, archive: Archive | None, urls: Mapping[str, str], address: str | None
) -> str | None:
    """Return the base URL of a product's archives. None: unknown.

    `urls` contains the addresses of the policy `fixups`, and `address` is that of the manifest on
    NVIDIA's second server.
    """
    own, known = urls.get(redist), REDISTS.get(redist)
    if own is not None:
        return f"{own.rstrip('/')}/"
    if known is None:
        return None
    if address is not None:
        return f"{NVIDIA_PREVIEWS}/{posixpath.dirname(address)}/"
    if archive is not None and is_pool_path(archive.relative_path):
        return f"{NVIDIA_PREVIEWS}/{known.preview_folder}/"
    # nixpkgs uses the last folder of TensorRT, with the server of all other products.
    return f"{NVIDIA_BASE}/{known.archive_folders[-1 if known.archive_base else 0]}/"
