"""Add NVIDIA's manifests to the shipped data: `python -m tools.ship_manifests HASHES FOLDER...`.

FOLDER has manifests in the layout of NVIDIA's server, and HASHES is a table with tabs: the
redistributable, the label and the SHA-256 of the file on NVIDIA's server. A manifest with this hash
is recorded as NVIDIA's, and every other one as read from a copy. A release that is already recorded
with other bytes is kept and reported.
"""

import sys
from pathlib import Path

from cudaredist.formats.lock import LockEntry
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import sha256_of
from cudaredist.redists import REDISTS
from cudaredist.store.data_folder import ManifestFolder, Store, shipped_data


def main(hashes: Path, folders: list[Path]) -> None:
    """Write the manifests and the lock."""
    rows = [line.split("\t") for line in hashes.read_text("utf-8").splitlines()[1:]]
    on_server = {(redist, label): sha256 for redist, label, sha256, *_ in rows}
    store = Store(shipped_data())
    lock = {redist: dict(labels) for redist, labels in store.lock().redists.items()}
    for redist in REDISTS.values():
        entries = lock.setdefault(redist.name, {})
        for path in (folder / part for folder in folders for part in redist.manifest_folders):
            for label, name in ManifestFolder(path).files():
                data = (path / name).read_bytes()
                read_manifest(data, label=label)
                sha256, recorded = sha256_of(data), entries.get(str(label))
                if recorded is not None and recorded.sha256 != sha256:
                    print(f"{redist.name} {label}: kept, the copy has other bytes")
                    continue
                as_read = on_server.get((redist.name, str(label))) != sha256
                entries[str(label)] = LockEntry(sha256=sha256, size=len(data), as_read=as_read)
                store.manifests(redist.name).write(label, data)
    store.save_lock({name: entries for name, entries in lock.items() if entries})


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])
