"""A mirror on disk: served files, the lock, and staging.

The hidden folder `.mirror` is a data folder with the manifests as fetched, and has the downloads in
progress. Each file of the mirror gets its final name in one step.
"""

import contextlib
import errno
import itertools
import logging
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cudaredist.errors import InvalidFileError, ReadingFrom, UsageError, WriteError, WritingTo
from cudaredist.formats.base import Channel
from cudaredist.formats.features import LockEntry
from cudaredist.formats.mirror_lock import MIRROR_LOCK, MirrorFile, MirrorLock
from cudaredist.formats.registry import read_own_file
from cudaredist.hints import command_line
from cudaredist.locks import one_write
from cudaredist.primitives import Sha256, Version
from cudaredist.store.data_folder import Store
from cudaredist.store.files import (
    has_bytes,
    hash_of,
    is_folder,
    names_in,
    new_content,
    read_file,
    sweep,
    write_file,
)

_HIDDEN = ".mirror"

_log = logging.getLogger(__name__)


class MirrorFolder:
    """The files of one mirror."""

    def __init__(self, root: Path, *, may_write: bool = True) -> None:
        self.root = root
        self.may_write = may_write
        """Whether to write files. A dry run notes them in `would_write` instead."""
        self.would_write: set[str] = set()
        """In a dry run, the paths of the files that a run would write."""
        self.data = root / _HIDDEN
        """The data folder with the manifests as fetched."""
        self.partial = root / _HIDDEN / "partial"
        """The folder of archives until they are verified."""

    def store(self, channel: Channel) -> Store:
        """Return the data folder with the manifests of a channel."""
        return Store(self.data, channel)

    def path(self, name: str) -> Path:
        """Return the path of a file of the mirror."""
        return self.root / name

    def name_of(self, path: Path) -> str:
        """Return a path below the mirror, with slashes."""
        return path.relative_to(self.root).as_posix()

    def require_folder(self) -> None:
        """Raise `WriteError` if a file blocks the mirror's path.

        The file can be at this path or at a parent.
        """
        for path in (self.root, *self.root.parents):
            if os.path.lexists(path):
                if not is_folder(path):
                    reason = os.strerror(errno.EEXIST)
                    raise WriteError(path, FileExistsError(errno.EEXIST, reason))
                return

    # -- the lock

    def records(self) -> dict[str, MirrorFile]:
        """Return the recorded files by path.

        Raises `UsageError` if the folder is not a mirror, and `InvalidFileError`.
        """
        data = read_file(self.root / MIRROR_LOCK)
        if data is None:
            hint = f"run `{command_line('mirror sync', shlex.quote(str(self.root)))}`"
            if not self._is_new():
                hint = f"select a new or empty folder: `{command_line('mirror sync', 'mirror')}`"
            raise UsageError(f"{self.root} is not a mirror: it has no {MIRROR_LOCK}", hint=hint)
        try:
            return dict(read_own_file(data, MirrorLock).mirrored)
        except InvalidFileError as error:
            call = command_line("mirror sync", shlex.quote(str(self.root)))
            error.hint = f"run `{call}` with the releases of the mirror to create it again"
            raise

    def records_or_none(self) -> dict[str, MirrorFile]:
        """Return the recorded files by path, none if the mirror is new or its lock is invalid.

        A run then reads the files of the selected releases. Raises `UsageError` if the folder is
        not a mirror.
        """
        try:
            return {} if self._is_new() else self.records()
        except InvalidFileError as error:
            text = "%s: %s; run mirror sync for all releases of the mirror to record them again"
            _log.warning(text, self.root / MIRROR_LOCK, error)
            return {}

    def _is_new(self) -> bool:
        """Check if the folder has nothing but manifests and unfinished downloads."""
        return set(names_in(self.root)) <= {_HIDDEN}

    def save_lock(self, files: dict[str, MirrorFile]) -> None:
        """Write the lock."""
        lock = MirrorLock(schema_version=1, mirrored=dict(sorted(files.items())))
        self.write(MIRROR_LOCK, lock.canonical())

    def recorded_manifests(self, store: Store) -> Mapping[str, Mapping[str, LockEntry]]:
        """Return the record of the manifests as fetched.

        A broken one is removed. The source's manifests are then recorded again.
        """
        try:
            return store.lock().redists
        except InvalidFileError as error:
            _log.warning("%s; the manifests are recorded again", error)
            if self.may_write:
                with WritingTo(store.stored_lock_path):
                    store.stored_lock_path.unlink()
            return {}

    def remove_manifests(self, channel: Channel, labels: Iterable[tuple[str, Version]]) -> None:
        """Remove manifests of a channel and their records."""
        store = self.store(channel)
        removed = {(redist, str(label)): label for redist, label in labels}
        redists = {
            redist: {text: one for text, one in entries.items() if (redist, text) not in removed}
            for redist, entries in store.lock().redists.items()
        }
        store.save_lock({redist: entries for redist, entries in redists.items() if entries})
        for (redist, _), label in removed.items():
            self.remove(store.manifests(redist).path_of(label))

    # -- files

    def write(self, name: str, data: bytes) -> None:
        """Write a file. A dry run notes it if its bytes differ."""
        path = self.path(name)
        if self.may_write:
            write_file(path, data)
        elif not has_bytes(path, data):
            self.would_write.add(name)

    def put(self, source: Path, names: Iterable[str]) -> None:
        """Give a verified file its final names, as hard links. A dry run notes missing links."""
        for name in names:
            path = self.path(name)
            with WritingTo(path), one_write():
                if os.path.lexists(path) and os.path.samestat(path.lstat(), source.stat()):
                    continue
                if not self.may_write:
                    self.would_write.add(name)
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                with new_content(path) as temporary:
                    os.link(source, temporary)

    def intact(self, files: Mapping[str, MirrorFile], *, checksum: bool) -> Iterator[str]:
        """Yield the paths of files that agree with their records.

        A file with the recorded size and time is not read, unless `checksum` is true.
        """
        hashes: dict[int, Sha256 | None] = {}
        for name, file in files.items():
            with contextlib.suppress(OSError):
                about = self.path(name).lstat()
                if not stat.S_ISREG(about.st_mode) or about.st_size != file.size:
                    continue
                if checksum or about.st_mtime_ns != file.mtime_ns:
                    if about.st_ino not in hashes:
                        hashes[about.st_ino] = self.hash_at(name)
                    if hashes[about.st_ino] != file.sha256:
                        continue
                yield name

    def time_of(self, name: str) -> int | None:
        """Return the time of a file's last modification, None if it is missing."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return self.path(name).lstat().st_mtime_ns
        return None

    def hash_at(self, name: str) -> Sha256 | None:
        """Return the SHA-256 of a regular file, None if it is missing. Raises `ReadError`."""
        path = self.path(name)
        if path.is_symlink() or not path.is_file():
            return None
        with ReadingFrom(path):
            return hash_of(path)

    def remove(self, path: Path) -> None:
        """Remove a file, and the folders that become empty. Raises `WriteError`."""
        with WritingTo(path):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for folder in itertools.takewhile(lambda folder: folder != self.root, path.parents):
                folder.rmdir()

    def remove_leftovers(self) -> None:
        """Remove temporary and already linked files of killed runs. A dry run does nothing.

        No other run may write to the mirror.
        """
        if not self.may_write:
            return
        for folder, _, _ in os.walk(self.root):
            sweep(Path(folder))
        for name in names_in(self.partial):
            path = self.partial / name
            with contextlib.suppress(OSError):
                # It also has its final name.
                if path.stat().st_nlink > 1:
                    path.unlink()

    def remove_partial(self) -> None:
        """Remove downloads in progress."""
        for name in names_in(self.partial):
            self.remove(self.partial / name)

    def served(self) -> Iterator[str]:
        """Yield the path of each served file in the mirror."""
        for folder, folders, names in os.walk(self.root):
            is_root = Path(folder) == self.root
            folders[:] = sorted(name for name in folders if not (is_root and name == _HIDDEN))
            links = (name for name in folders if Path(folder, name).is_symlink())
            for name in sorted([*names, *links]):
                yield self.name_of(Path(folder, name))
