"""Releases on a server with the protocol of NVIDIA's second server."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.releases import EARLY, Packages, early_release
from support.server import FaultServer

ROOT = "/bin-archive"
NVIDIA_CHANNELS = f"{ROOT}/release/channels.json"
RELEASES = f"{ROOT}/release/cuda/releases.json"

Entry = dict[str, Any]


def entry_of(label: str, manifest: bytes) -> Entry:
    """Return the entry of a release whose manifest is named after its hash."""
    sha256 = hashlib.sha256(manifest).hexdigest()
    address = f"redist/{sha256}.json"
    return {"version": label, "manifest": address, "sha256": sha256, "size": str(len(manifest))}


def nvidia_channel_release(
    label: str, packages: Packages = EARLY
) -> tuple[dict[str, bytes], Entry]:
    """Return a release's files by path below the root, and its entry."""
    files = early_release(label, packages)
    manifest = files.pop(f"release/cuda/redist/redistrib_{label}.json")
    entry = entry_of(label, manifest)
    return {**files, f"release/cuda/{entry['manifest']}": manifest}, entry


def nvidia_channel_files(nvidia_channels: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """Return the files of CUDA's NVIDIA channels by path below the root."""
    files: dict[str, bytes] = {}
    releases: dict[str, list[Entry]] = {}
    for nvidia_channel, labels in nvidia_channels.items():
        releases[nvidia_channel] = []
        for label in labels:
            added, entry = nvidia_channel_release(label)
            files |= added
            releases[nvidia_channel].append(entry)
    products = {nvidia_channel: [{"product": "cuda"}] for nvidia_channel in nvidia_channels}
    return {
        **files,
        "release/channels.json": json.dumps(products).encode(),
        "release/cuda/releases.json": json.dumps(releases).encode(),
    }


def serve_nvidia_channels(
    server: FaultServer, nvidia_channels: Mapping[str, Sequence[str]], root: str = ROOT
) -> None:
    """Serve CUDA's NVIDIA channels, instead of the earlier ones."""
    server.files |= {
        f"{root}/{path}": data for path, data in nvidia_channel_files(nvidia_channels).items()
    }


def change_entry(server: FaultServer, **changes: object) -> None:
    """Change the first entry of the first NVIDIA channel. None removes a key."""
    document = json.loads(server.files[RELEASES])
    entry = next(iter(document.values()))[0]
    entry |= changes
    for key in [key for key, value in entry.items() if value is None]:
        del entry[key]
    server.files[RELEASES] = json.dumps(document).encode()
