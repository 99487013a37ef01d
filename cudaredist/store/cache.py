"""The cache: what makes later runs cheaper, and can be deleted at any time."""

import contextlib
import hashlib
import json
import os
import threading
import time
from pathlib import Path

from cudaredist.errors import UsageError, WriteError
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import Sha256
from cudaredist.private import (
    discard,
    make_private_folders,
    open_private,
    private_size,
    refuse_shared_folder,
)
from cudaredist.store.data_folder import _log
from cudaredist.store.files import TEMPORARY_SUFFIX, write_file

_DAY = 86400


class Cache:
    """What makes later runs cheaper and can be deleted at any time."""

    def __init__(self, root: Path) -> None:
        """Raise `UsageError` for a folder of another user, or that others can write to."""
        refuse_shared_folder(root)
        self._root = root
        self._warned = threading.Event()

    def etag(self, place: str, sha256: str) -> str | None:
        """Return the ETag that a place gave for exactly these bytes."""
        data = self.get("http", _key_of(place))
        entry = None if data is None else json.loads(data)
        return entry["etag"] if entry and entry["sha256"] == sha256 else None

    def remember(self, place: str, sha256: str, etag: str) -> None:
        """Keep what a place gave for these bytes; a cache that cannot be written is no error."""
        self.put("http", _key_of(place), canonical_json({"sha256": sha256, "etag": etag}))

    def get(self, kind: str, sha256: Sha256) -> bytes | None:
        """Return what is kept of a kind, such as `facts/1`, about the bytes with that hash.

        None where there is nothing, or not exactly what was put there.
        """
        try:
            with open_private(self._entry_path(kind, sha256)) as file:
                digest, _, data = file.read().partition(b"\n")
        except OSError:
            return None
        return data if digest == _digest(data) else None

    def put(self, kind: str, sha256: Sha256, data: bytes) -> None:
        """Keep something about the bytes with that hash; failing to is a warning, once."""
        try:
            path = self._entry_path(kind, sha256)
            make_private_folders(self._root, path.parent)
            if private_size(path) is None:
                discard(path)
            write_file(path, b"%b\n%b" % (_digest(data), data), durable=False)
        except (WriteError, UsageError) as error:
            if not self._warned.is_set():
                self._warned.set()
                _log.warning("going on without a cache: %s", error)

    def sweep(self) -> None:
        """Remove what killed runs left long ago: temporary files, and archives half kept."""
        now = time.time()
        ages = {TEMPORARY_SUFFIX: _DAY, ".part": 30 * _DAY}
        # Unlike rglob, walk passes over folders that another run removes meanwhile.
        for folder, _, names in os.walk(self._root):
            for path in (Path(folder, name) for name in names):
                age = ages.get(path.suffix)
                with contextlib.suppress(OSError):
                    if age is not None and now - path.lstat().st_mtime > age:
                        path.unlink()

    def archive_path(self, sha256: Sha256, suffix: str) -> Path:
        """Return where the archive with that hash lies or would lie, as whole as published."""
        return self._root / "archives" / sha256[:2] / f"{sha256}{suffix}"

    def new_archive_path(self, sha256: Sha256, suffix: str) -> Path:
        """Return the same path, in a folder that exists. Raises `WriteError` and `UsageError`."""
        path = self.archive_path(sha256, suffix)
        make_private_folders(self._root, path.parent)
        return path

    def _entry_path(self, kind: str, key: str) -> Path:
        return self._root / kind / key[:2] / key


def _digest(data: bytes) -> bytes:
    """Return what stands in front of an entry, so that a torn or edited one does not count."""
    return hashlib.sha256(data).hexdigest().encode()


def _key_of(place: str) -> str:
    # Addresses have characters that file names may not have; their hash has none.
    return hashlib.sha256(place.encode()).hexdigest()
