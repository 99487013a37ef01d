"""The cache of HTTP validators, facts and archives."""

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from cudaredist.errors import CudaRedistError, UsageError, WriteError, WritingTo
from cudaredist.jsontext import canonical_json, load_json
from cudaredist.primitives import Sha256, sha256_of
from cudaredist.private import (
    discard,
    make_private_folders,
    open_private,
    private_size,
    refuse_shared_folder,
)
from cudaredist.store.files import write_file
from cudaredist.store.temporary_folders import (
    remove_unlocked,
    temporary_folder,
    user_temporary_folder,
)

_log = logging.getLogger(__name__)

_DAY = 86400
_is_temporary = re.compile(r"\.?[0-9a-f]{64}\.[0-9a-f]{12}\.tmp").fullmatch
"""Matches the names of temporary files, also those of earlier versions without the first dot."""
_is_partial = re.compile(r"[0-9a-f]{64}.*\.part", re.DOTALL).fullmatch
_is_entry = re.compile(r"[0-9a-f]{64}").fullmatch


class Cache:
    """A cache that users may delete at any time."""

    def __init__(self, root: Path) -> None:
        """Raise `UsageError` if others can write to the folder."""
        refuse_shared_folder(root)
        self._root = root
        self._warned = threading.Event()

    def etag(self, location: str, sha256: str) -> str | None:
        """Return the ETag that a location sent for exactly these bytes."""
        data = self.get("http", sha256_of(location.encode()))
        entry = None if data is None else load_json(data)
        return entry["etag"] if entry and entry["sha256"] == sha256 else None

    def remember(self, location: str, sha256: str, etag: str) -> None:
        """Store the ETag that a location sent for these bytes."""
        # A URL may contain characters that file names must not contain. Its hash does not.
        key = sha256_of(location.encode())
        self.put("http", key, canonical_json({"sha256": sha256, "etag": etag}))

    def get(self, kind: str, sha256: Sha256) -> bytes | None:
        """Return an entry for the bytes with this hash.

        A kind is, for example, `facts/1`. Return None if the entry is missing or damaged, or was
        stored for other bytes. Entries of version 0.2 have only the hash of their data.
        """
        try:
            with open_private(self._entry_path(kind, sha256)) as file:
                digest, _, data = file.read().partition(b"\n")
        except OSError:
            return None
        is_intact = digest in {_entry_digest(kind, sha256, data), sha256_of(data).encode()}
        return data if is_intact else None

    def put(self, kind: str, sha256: Sha256, data: bytes) -> None:
        """Store an entry for the bytes with this hash.

        If the cache cannot be written, log a warning once instead of raising an error.
        """
        entry = b"%b\n%b" % (_entry_digest(kind, sha256, data), data)
        write = partial(write_file, data=entry, durable=False)
        self._replace(self._entry_path(kind, sha256), write)

    def stored_index(self, key: str) -> Path | None:
        """Return the path of the newest index with a key, None if there is none.

        First removes the indexes that killed runs did not complete.
        """
        paths: dict[int, Path] = {}
        for cache in self._of_indexes():
            remove_unlocked(cache._root / "index")  # noqa: SLF001 - of this class
            path = cache._entry_path("index", key)  # noqa: SLF001
            with contextlib.suppress(OSError):
                if private_size(path) is not None:
                    paths[path.stat().st_mtime_ns] = path
        return paths[max(paths)] if paths else None

    def store_index(self, key: str, write: Callable[[Path], None]) -> Path | None:
        """Replace an index by a file that a function writes, and return its path.

        If the cache cannot be written, the index is in the user's temporary folder, and a warning
        names it when it is new. If that cannot be written either, log a warning once, and return
        None.
        """
        errors: list[CudaRedistError] = []
        for cache in self._of_indexes():
            path = cache._entry_path("index", key)  # noqa: SLF001 - of this class
            is_new = private_size(path) is None
            try:
                cache._replace_index(path, write)  # noqa: SLF001
            except (WriteError, UsageError) as error:
                errors.append(error)
                continue
            if errors and is_new:
                message = "the index is in %s, because the cache cannot be written: %s"
                _log.warning(message, cache._root, errors[0])  # noqa: SLF001
            return path
        self._warn(errors[0])
        return None

    def index_note(self, index: Path) -> bytes:
        """Return the note about an index, empty if there is none."""
        with contextlib.suppress(OSError), open_private(_note_path(index)) as file:
            return file.read()
        return b""

    def store_index_note(self, index: Path, note: bytes) -> None:
        """Store a note about an index, unless its folder cannot be written."""
        with contextlib.suppress(WriteError):
            write_file(_note_path(index), note, durable=False)

    def _of_indexes(self) -> "Iterator[Cache]":
        """Yield the caches for indexes: this one, and that of the user's temporary folder.

        The second one is left out if another user prepared the folder.
        """
        yield self
        folder = user_temporary_folder()
        if folder != self._root:
            with contextlib.suppress(UsageError):
                yield Cache(folder)

    def _replace_index(self, path: Path, write: Callable[[Path], None]) -> None:
        """Replace an index. Raises `WriteError` and `UsageError`."""
        self._prepare(path)
        with WritingTo(path), temporary_folder(self._root / "index") as folder:
            temporary = folder / path.name
            write(temporary)
            temporary.replace(path)

    def _replace(self, path: Path, write: Callable[[Path], object]) -> None:
        try:
            self._prepare(path)
            write(path)
        except (WriteError, UsageError) as error:
            self._warn(error)

    def _prepare(self, path: Path) -> None:
        """Create the folder of an entry, and remove a foreign file from its path.

        Raises `WriteError` and `UsageError`.
        """
        make_private_folders(self._root, path.parent)
        if private_size(path) is None:
            discard(path)

    def _warn(self, error: CudaRedistError) -> None:
        """Log once that the cache cannot be written."""
        if not self._warned.is_set():
            self._warned.set()
            _log.warning("continuing without a cache: %s", error)

    def sweep(self) -> None:
        """Remove old temporary files, partial archives and facts of folders.

        Files with other names stay. They may belong to another program.
        """
        now = time.time()
        # Unlike rglob, walk skips folders that another run removes at the same time.
        for folder, _, names in os.walk(self._root):
            # The audited folders may be temporary, so their paths never return.
            is_of_folders = Path(folder).is_relative_to(self._root / "folders")
            for name in names:
                if _is_temporary(name):
                    age = _DAY
                elif _is_partial(name) or (is_of_folders and _is_entry(name)):
                    age = 30 * _DAY
                else:
                    continue
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    if now - path.lstat().st_mtime > age:
                        path.unlink()

    def archive_path(self, sha256: Sha256, suffix: str) -> Path:
        """Return the path for the complete archive with this hash."""
        return self._root / "archives" / sha256[:2] / f"{sha256}{suffix}"

    def new_archive_path(self, sha256: Sha256, suffix: str) -> Path:
        """Return the path of an archive, and create its folder.

        Raises `WriteError` and `UsageError`.
        """
        path = self.archive_path(sha256, suffix)
        make_private_folders(self._root, path.parent)
        return path

    def temporary_folder(self) -> Path | None:
        """Return the folder for unnamed files, None if the cache cannot be written."""
        with contextlib.suppress(WriteError):
            make_private_folders(self._root, self._root)
        return self._root if os.access(self._root, os.W_OK) else None

    def _entry_path(self, kind: str, key: str) -> Path:
        return self._root / kind / key[:2] / key


def _note_path(index: Path) -> Path:
    return index.with_name(f"{index.name}.verified")


def _entry_digest(kind: str, key: str, data: bytes) -> bytes:
    """Return the hash of an entry, which is not valid under another name."""
    return sha256_of(b"%b/%b\n%b" % (kind.encode(), key.encode(), data)).encode()
