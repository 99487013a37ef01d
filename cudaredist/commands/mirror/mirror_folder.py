"""A mirror on disk: served files, the lock, and staging.

The hidden folder `.mirror` is a data folder with the manifests as fetched, and has the downloads in
progress. Each file of the mirror gets its final name in one step.

A folder of the mirror can be a link, for example to another disk. If known files of the mirror are
below a link, it is a folder of the mirror. Other files in it are not part of the mirror, because
another program may have put them there.
"""

import contextlib
import errno
import itertools
import logging
import os
import shlex
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from cudaredist.errors import (
    InvalidFileError,
    ReadError,
    ReadingFrom,
    UsageError,
    WriteError,
    WritingTo,
)
from cudaredist.formats.lock import LockEntry
from cudaredist.formats.mirror_lock import MIRROR_LOCK, MirrorFile, MirrorLock
from cudaredist.formats.names import Channel
from cudaredist.formats.registry import read_own_file
from cudaredist.hints import command_line
from cudaredist.locks import one_write
from cudaredist.primitives import Sha256, Version
from cudaredist.private import private_size
from cudaredist.store.data_folder import Store
from cudaredist.store.files import (
    has_bytes,
    hash_of,
    is_folder,
    names_in,
    new_content,
    read_file,
    remove_file,
    temporary_files,
    write_file,
)
from cudaredist.store.kept_archive import part_of

_HIDDEN = ".mirror"

_log = logging.getLogger(__name__)


class MirrorFolder:
    """The files of one mirror."""

    def __init__(self, root: Path, *, may_write: bool = True) -> None:
        self.root = root
        self.may_write = may_write
        """Whether to write files. A dry run notes them in `would_change` instead."""
        self.would_change: set[str] = set()
        """In a dry run, the paths of the files that a run would write or remove."""
        self.data = root / _HIDDEN
        """The data folder with the manifests as fetched."""
        self.partial = root / _HIDDEN / "partial"
        """The folder of archives until they are verified."""
        self._shared: set[Path] = set()
        """The files and folders that all users can read."""

    def store(self, channel: Channel) -> Store:
        """Return the data folder with the manifests of a channel."""
        return Store(self.data, channel)

    def path(self, name: str) -> Path:
        """Return the path of a file of the mirror."""
        return self.root / name

    def name_of(self, path: Path) -> str:
        """Return a path below the mirror, with slashes."""
        return path.relative_to(self.root).as_posix()

    def require_folder(self, folder: Path | None = None) -> None:
        """Raise `WriteError` if a file blocks the path of a folder, by default the mirror's.

        The file can be at this path or at a parent.
        """
        path = _existing(self.root if folder is None else folder)
        if not is_folder(path):
            raise WriteError(path, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))

    def require_file(self, path: Path) -> None:
        """Raise the `WriteError` of a run if a folder blocks the path of a file.

        A file at the path of one of its folders blocks it, too.
        """
        self.require_folder(path.parent)
        if is_folder(path) and not path.is_symlink():
            raise WriteError(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))

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
        if self.may_write:
            store.save_lock({redist: entries for redist, entries in redists.items() if entries})
        elif redists != store.lock().redists:
            self.would_change.add(self.name_of(store.lock_path))
        for (redist, _), label in removed.items():
            self.remove(store.manifests(redist).path_of(label))

    # -- files

    def write(self, name: str, data: bytes) -> None:
        """Write a file that all users can read. A dry run notes it if that changes the file."""
        path = self.path(name)
        if self.may_write:
            write_file(path, data)
        elif not has_bytes(path, data):
            self.require_file(path)
            self.would_change.add(name)
        self._share(path)

    def put(self, source: Path, names: Iterable[str], intact: Collection[str] = ()) -> None:
        """Give a verified file its final names, as hard links that all users can read.

        Links to a file on another disk are impossible. There, the first name becomes a copy unless
        it is `intact`, and the others are links to it. A dry run notes the names that change.
        """
        source = Path(os.path.realpath(source))
        disk_of_source = source.stat().st_dev
        originals = {disk_of_source: source}
        """The file to link to on each disk."""
        for name in names:
            path = self.path(name)
            with WritingTo(path), one_write():
                if self.may_write:
                    path.parent.mkdir(parents=True, exist_ok=True)
                disk = _existing(path.parent).stat().st_dev
                if name in intact:
                    originals.setdefault(disk, path)
                original = originals.setdefault(disk, source)
                if not _is_same(original, path):
                    if self.may_write:
                        _link_or_copy(original, path, is_intact=name in intact)
                    else:
                        self.require_file(path)
                        self.would_change.add(name)
                if disk != disk_of_source and original is source:
                    originals[disk] = path
            self._share(path)

    def _share(self, path: Path) -> None:
        """Let all users read a file and open the folders of the mirror that contain it.

        A dry run notes the files and folders whose mode changes.
        """
        folders = itertools.takewhile(lambda folder: folder != self.root, path.parents)
        for one in (path, *folders):
            if one in self._shared:
                continue
            mode = mode_for_all_users(one)
            if mode is not None and self.may_write:
                with WritingTo(one):
                    one.chmod(mode)
            elif mode is not None:
                self.would_change.add(self.name_of(one))
            self._shared.add(one)

    def intact(self, files: Mapping[str, MirrorFile], *, checksum: bool) -> Iterator[str]:
        """Yield the paths of files that agree with their records.

        A file with the recorded size and time is not read, unless `checksum` is true.
        """
        hashes: dict[tuple[int, int], Sha256 | None] = {}
        for name, file in files.items():
            with contextlib.suppress(OSError):
                about = self.path(name).lstat()
                if not stat.S_ISREG(about.st_mode) or about.st_size != file.size:
                    continue
                if checksum or about.st_mtime_ns != file.mtime_ns:
                    inode = about.st_dev, about.st_ino
                    if inode not in hashes:
                        hashes[inode] = self.hash_at(name)
                    if hashes[inode] != file.sha256:
                        continue
                yield name

    def is_as_recorded(self, name: str, file: MirrorFile) -> bool:
        """Check if a file has the recorded size and time, without reading it."""
        with contextlib.suppress(OSError):
            about = self.path(name).lstat()
            return (about.st_size, about.st_mtime_ns) == (file.size, file.mtime_ns)
        return False

    def time_of(self, name: str) -> int | None:
        """Return the time of a file's last modification, None if it is missing."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return self.path(name).lstat().st_mtime_ns
        return None

    def hash_at(self, name: str) -> Sha256 | None:
        """Return the SHA-256 of a regular file, None if it is missing. Raises `ReadError`."""
        return self._hash_of(self.path(name))

    def _hash_of(self, path: Path) -> Sha256 | None:
        with ReadingFrom(path), contextlib.suppress(FileNotFoundError):
            return hash_of(path) if is_regular(path) else None
        return None

    def remove(self, path: Path) -> None:
        """Remove a file, and the folders that become empty. A dry run notes it.

        Raises `WriteError`.
        """
        if not self.may_write:
            if os.path.lexists(path):
                self.would_change.add(self.name_of(path))
            return
        remove_file(path)
        with contextlib.suppress(OSError):
            for folder in itertools.takewhile(lambda folder: folder != self.root, path.parents):
                folder.rmdir()

    def remove_leftovers(self, known: Iterable[str]) -> None:
        """Remove temporary and already linked files of killed runs. A dry run notes them.

        `known` has the paths of the mirror's files. No other run may write to the mirror.
        """
        self.remove_regular(*sorted(self._leftovers(known)))

    def remove_regular(self, *paths: Path) -> None:
        """Remove files of killed runs, if they are there. A dry run notes them."""
        for path in filter(is_regular, paths):
            if self.may_write:
                with contextlib.suppress(OSError):
                    path.unlink()
            else:
                self.would_change.add(self.name_of(path))

    def _leftovers(self, known: Iterable[str]) -> Iterator[Path]:
        walks = itertools.chain(os.walk(self.root), os.walk(self.data))
        folders = {Path(folder) for folder, _, _ in walks} | {
            self.path(name).parent for name in known
        }
        for folder in folders:
            with contextlib.suppress(ReadError):
                yield from temporary_files(folder)
        for name in names_in(self.partial):
            path = self.partial / name
            # It also has its final name.
            with contextlib.suppress(OSError):
                if path.lstat().st_nlink > 1:
                    yield path

    def kept_bytes(self, partial: Path, sha256: Sha256, size: int | None) -> int:
        """Return the stored bytes of an archive, which a run does not fetch again.

        `partial` is its path until it is verified. Bytes of which a run knows that they are wrong
        do not count. Raises `WriteError` if a folder blocks the path.
        """
        part = part_of(partial)
        for path in (partial, part):
            self.require_file(path)
            stored = private_size(path)
            # A run removes files with another name first.
            if stored is None or path.lstat().st_nlink > 1 or (size is not None and stored > size):
                continue
            is_incomplete = path == part and stored != size
            if is_incomplete or self._hash_of(path) == sha256:
                return stored
        return 0

    def remove_partial(self) -> None:
        """Remove downloads in progress."""
        for name in names_in(self.partial):
            self.remove(self.partial / name)

    def linked_folders(self, known: Iterable[str]) -> set[str]:
        """Return the links that are folders of known files."""
        folders = {str(folder) for path in known for folder in PurePosixPath(path).parents}
        return {folder for folder in folders if self.path(folder).is_symlink()} - {"."}

    def served(self, known: Collection[str]) -> Iterator[str]:
        """Yield the path of each served file in the mirror.

        `known` has the paths of the mirror's files. In a linked folder, only they are served.
        """
        links = self.linked_folders(known)
        linked = [
            path for path in known if not links.isdisjoint(map(str, PurePosixPath(path).parents))
        ]
        # A folder of the mirror can also be a link to another folder below the mirror.
        targets = {os.path.realpath(self.path(path)) for path in linked}
        root = Path(os.path.realpath(self.root))
        for folder, folders, names in os.walk(root):
            is_root = Path(folder) == root
            folders[:] = sorted(name for name in folders if not (is_root and name == _HIDDEN))
            more = (name for name in folders if Path(folder, name).is_symlink())
            for path in (Path(folder, name) for name in sorted([*names, *more])):
                name = path.relative_to(root).as_posix()
                if name not in links and str(path) not in targets:
                    yield name
        yield from (path for path in linked if os.path.lexists(self.path(path)))


def mode_for_all_users(path: Path) -> int | None:
    """Return the mode with which all users can read a file or open a folder.

    None if they already can, or if it is missing.
    """
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode
        bits = 0o555 if stat.S_ISDIR(mode) else 0o444
        return None if mode & bits == bits else stat.S_IMODE(mode) | bits
    return None


def _existing(folder: Path) -> Path:
    """Return the lowest existing path of a folder and its parents, which may be a file."""
    return next(filter(os.path.lexists, (folder, *folder.parents)), folder)


def is_regular(path: Path) -> bool:
    """Check if a path is a file, not a folder or a link."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _is_same(original: Path, path: Path) -> bool:
    """Check if two paths are hard links of one file."""
    with contextlib.suppress(OSError):
        return os.path.samestat(original.lstat(), path.lstat())
    return False


def _link_or_copy(original: Path, path: Path, *, is_intact: bool) -> None:
    """Replace a path by a hard link to a file, or by a copy on another disk."""
    try:
        with new_content(path) as temporary:
            os.link(original, temporary)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        if not is_intact:
            with new_content(path) as temporary:
                shutil.copyfile(original, temporary)
                shutil.copystat(original, temporary)
                with temporary.open("rb") as file:
                    os.fsync(file.fileno())
