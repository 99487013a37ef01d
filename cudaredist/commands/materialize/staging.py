"""Staging directory for a toolkit root, and the atomic swap into place."""

import contextlib
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from cudaredist.errors import CudaRedistError, UsageError, WriteError, WritingTo
from cudaredist.hints import again
from cudaredist.locks import is_at, lock_if_free, locked_folder

_log = logging.getLogger(__name__)

TEMPORARY = ".tmp"
"""Suffix of a folder whose content is not verified yet."""
_OWNER_ONLY = 0o700
_AT_FDCWD = -100
"""Makes `renameat2` read paths relative to the current folder."""
_RENAME_EXCHANGE = 2


class StagingDirectory:
    """Staging directory next to a toolkit root.

    Contains archives, their unpacked content, the new root and the old one. An interrupted run
    leaves it, and the next run resumes from it. Only one run uses it at a time.
    """

    def __init__(self, root: Path) -> None:
        # A rename of the path without links moves the folder itself.
        self.root = root = Path(os.path.realpath(root))
        if not root.name:
            hint = f"run `{again(output='cuda-toolkit')}`"
            raise UsageError(f"{root} cannot be a toolkit root", hint=hint)
        self.folder = root.with_name(f".{root.name}.cudaredist")
        self.archives = self.folder / "archives"
        """Unpacked archives, each in a folder named by its hash."""
        self.downloads = self.folder / "fetched"
        """Downloaded archives, kept until they are unpacked."""
        self.new = self.folder / "root"
        self._old = self.folder / "old"
        """The previous root, until the new one is in place."""
        self._trash = self.folder / "trash"

    def exists(self) -> bool:
        """Check if a run is active or was interrupted."""
        return os.path.lexists(self.folder)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for other runs, then create and lock the folder.

        First restores a root that an interrupted run moved aside, and removes the run's incomplete
        files. On exit, removes everything that a later run cannot use. Raises `WriteError`, and
        `UsageError` if another user owns the folder.
        """
        missing = [parent for parent in self.folder.parents if not os.path.lexists(parent)]
        try:
            handle = self._lock()
        except CudaRedistError as error:
            _remove_empty(missing)
            self._name_root(error)
            raise
        try:
            self._recover()
            if handle is not None:
                # A killed run left these incomplete.
                for folder in (self.new, self._trash, *self.archives.glob(f"*{TEMPORARY}")):
                    remove_tree(folder)
            yield
        except CudaRedistError as error:
            self._release(handle, missing)
            self._name_root(error)
            raise
        # Not in a `finally`: after an interruption, threads may use the folder until the process
        # ends.
        self._release(handle, missing)

    def clear_if_idle(self) -> None:
        """Remove the folder, unless another run is active."""
        with contextlib.suppress(UsageError):
            self._require_own_folder()
            handle = lock_if_free(self.folder)
            if handle is not None:
                if is_at(self.folder, handle):
                    self.clear()
                os.close(handle)

    def clear(self) -> None:
        """Remove the folder, unless it contains the only root."""
        if os.path.lexists(self._old) and not os.path.lexists(self.root):
            return
        remove_tree(self.folder)

    def swap_in(self) -> None:
        """Move the new root into place, and remove the previous.

        If the system supports it, the two roots exchange their names in one step. Otherwise the
        root is missing for a moment. If a run is killed at that moment, `locked` restores the
        previous root. Raises `WriteError`.
        """
        with WritingTo(self.root):
            if not (os.path.lexists(self.root) and _exchange(self.new, self.root)):
                self._replace()
        for previous in (self.new, self._old):
            with contextlib.suppress(OSError):
                self.discard(previous)
        self.clear()

    def _replace(self) -> None:
        """Replace the root, if there is one, in two renames."""
        if os.path.lexists(self.root):
            remove_tree(self._old)
            self.root.rename(self._old)
        try:
            self.new.rename(self.root)
        except BaseException:
            self._recover()
            raise

    def discard(self, folder: Path) -> None:
        """Remove a folder atomically.

        Raises `OSError` if it cannot be moved.
        """
        remove_tree(self._trash)
        if os.path.lexists(folder):
            # If the run is killed here, a half-deleted folder must not look like a root.
            folder.rename(self._trash)
        remove_tree(self._trash)

    def _recover(self) -> None:
        if os.path.lexists(self._old) and not os.path.lexists(self.root):
            with WritingTo(self.root):
                self._old.rename(self.root)

    def _release(self, handle: int | None, missing: list[Path]) -> None:
        """Remove everything useless for a later run, and unlock."""
        # If the folder was removed, another run may have created a new one with this name.
        if (handle is None or is_at(self.folder, handle)) and not self._is_resumable():
            self.clear()
        if handle is not None:
            os.close(handle)
        _remove_empty(missing)

    def _is_resumable(self) -> bool:
        """Check if a later run can use the contents.

        These are unpacked archives and partial downloads.
        """
        finished = (f for f in self.archives.glob("*") if not f.name.endswith(TEMPORARY))
        downloads = (path for path in self.downloads.glob("*") if path.lstat().st_size)
        with contextlib.suppress(OSError):
            return any(finished) or any(downloads)
        return False

    def _name_root(self, error: CudaRedistError) -> None:
        """Name a folder in the hint that still exists after the run."""
        if isinstance(error, WriteError) and isinstance(error.__cause__, OSError):
            error.hint = WriteError(self.root, error.__cause__).hint

    def _lock(self) -> int | None:
        """Lock the folder and return its descriptor.

        Returns None if folders cannot be locked.
        """
        self._require_own_folder()
        handle = locked_folder(self.folder, mode=_OWNER_ONLY, made=self.root)
        # Another user may have created it in the meantime.
        self._require_own_folder()
        return handle

    def _require_own_folder(self) -> None:
        """Raise `UsageError` for a link, a file or another user's folder."""
        try:
            about = self.folder.lstat()
        except OSError:
            return
        is_own = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
        if not stat.S_ISDIR(about.st_mode) or not is_own:
            hint = f"run `{again(output='cuda-toolkit')}` for another folder"
            problem = "is not a folder, or another user owns it"
            raise UsageError(f"staging directory {self.folder} {problem}", hint=hint)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders in one step.

    Returns False if the system or its file system does not support this. Only Linux has the call.
    """
    import ctypes  # noqa: PLC0415 - only needed if a root is replaced

    try:
        call = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    paths = (os.fsencode(first.absolute()), os.fsencode(second.absolute()))
    failure: int = call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
    return failure == 0


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        # Fails if the folder is not empty.
        with contextlib.suppress(OSError):
            folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Remove a folder, even with read-only contents.

    Logs a warning if something cannot be removed.
    """
    if folder.is_symlink():
        with contextlib.suppress(OSError):
            folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        return
    for parent, folders, _ in os.walk(folder):
        for path in (Path(parent), *(Path(parent) / name for name in folders)):
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(_OWNER_ONLY)
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        _log.warning("could not remove %s", folder)
