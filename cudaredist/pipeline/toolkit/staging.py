"""The folder beside a toolkit root in which everything is made, and how the root changes place."""

import contextlib
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from cudaredist.errors import CudaRedistError, UsageError, WriteError, WritingTo
from cudaredist.locks import is_at, lock_if_free, locked_folder

_log = logging.getLogger(__name__)

TEMPORARY = ".tmp"
"""What the name of a folder ends with whose content is not proved yet."""
_OWNER_ONLY = 0o700
_NO_FOLDER = -100
"""What stands for a folder where paths are whole: `AT_FDCWD`."""
_RENAME_EXCHANGE = 2


class Workshop:
    """What lies beside a root while it is made: archives, their content, the new root, the old one.

    A run that was interrupted leaves it, and the next one goes on in it. Only one run is in it at a
    time.
    """

    def __init__(self, root: Path) -> None:
        if not root.name:
            raise UsageError(f"{root} cannot be a toolkit root", hint="name a folder below it")
        self.root = root
        self.folder = root.with_name(f".{root.name}.cudaredist")
        self.archives = self.folder / "archives"
        """Content of archives, each in a folder named by its hash."""
        self.fetched = self.folder / "fetched"
        """Archives as they come from a server, until their content is unpacked."""
        self.new = self.folder / "root"
        self._old = self.folder / "old"
        """The root that was there before, until the new one has its place."""
        self._rubbish = self.folder / "rubbish"

    def is_there(self) -> bool:
        """Say whether a run left something, or is at work."""
        return os.path.lexists(self.folder)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Wait until no other run is at work here, then make the folder and keep others out.

        A root that an interrupted run had put aside is back in its place then, and what it had not
        finished is gone. Afterwards nothing is left that is of no use to a later run. Raises
        `WriteError`, and `UsageError` where the folder is somebody else's.
        """
        missing = [place for place in self.folder.parents if not os.path.lexists(place)]
        try:
            handle = self._lock()
        except CudaRedistError as error:
            _remove_empty(missing)
            raise _with_hint(error) from error.__cause__
        try:
            self._recover()
            if handle is not None:
                self._sweep()
            yield
        except CudaRedistError as error:
            self._leave(handle, missing)
            raise _with_hint(error) from error.__cause__
        # An interruption ends the process: threads may be at work here until it does.
        self._leave(handle, missing)

    def clear_if_idle(self) -> None:
        """Take away what an interrupted run left, unless another run is at work."""
        with contextlib.suppress(UsageError):
            self._refuse_foreign()
            handle = lock_if_free(self.folder)
            if handle is not None:
                if is_at(self.folder, handle):
                    self.clear()
                os.close(handle)

    def clear(self) -> None:
        """Take everything away."""
        if os.path.lexists(self._old) and not os.path.lexists(self.root):
            # Never the only root there is.
            return
        remove_tree(self.folder)

    def put(self) -> None:
        """Give the new root its place; what was there before goes away afterwards.

        Both exchange their names in one step where the system can do that. Elsewhere there is no
        root for a moment; a run that is killed just then leaves the old one, and `locked` brings it
        back. Raises `WriteError`.
        """
        with WritingTo(self.root):
            if not os.path.lexists(self.root):
                self.new.rename(self.root)
            elif not _exchange(self.new, self.root):
                self._replace()
        for before in (self.new, self._old):
            with contextlib.suppress(OSError):
                self.discard(before)
        self.clear()

    def _replace(self) -> None:
        """Put the old root aside, and the new one in its place."""
        remove_tree(self._old)
        self.root.rename(self._old)
        try:
            self.new.rename(self.root)
        except BaseException:
            self._recover()
            raise

    def discard(self, folder: Path) -> None:
        """Take a whole folder away, from one moment to the next for everyone else.

        Raises `OSError` where it cannot be moved.
        """
        remove_tree(self._rubbish)
        if os.path.lexists(folder):
            # A folder that is half deleted must never be taken for a root.
            folder.rename(self._rubbish)
        remove_tree(self._rubbish)

    def _recover(self) -> None:
        if os.path.lexists(self._old) and not os.path.lexists(self.root):
            with WritingTo(self.root):
                self._old.rename(self.root)

    def _sweep(self) -> None:
        """Take away what a killed run had not finished, since nobody can go on with it."""
        for folder in (self.new, self._rubbish, *self.archives.glob(f"*{TEMPORARY}")):
            remove_tree(folder)

    def _leave(self, handle: int | None, missing: list[Path]) -> None:
        """Leave only what a later run can use, and let others in."""
        # Once it is cleared, a folder of that name is another run's.
        if (handle is None or is_at(self.folder, handle)) and not self._is_of_use():
            self.clear()
        if handle is not None:
            os.close(handle)
        _remove_empty(missing)

    def _is_of_use(self) -> bool:
        """Say whether an archive was finished here, or a part of one fetched."""
        with contextlib.suppress(OSError):
            if any(not place.name.endswith(TEMPORARY) for place in self.archives.iterdir()):
                return True
        with contextlib.suppress(OSError):
            return any(place.lstat().st_size for place in self.fetched.iterdir())
        return False

    def _lock(self) -> int | None:
        """Return the locked folder's descriptor; None if folders cannot be locked."""
        self._refuse_foreign()
        handle = locked_folder(self.folder, mode=_OWNER_ONLY, made=self.root)
        # Another user may have been faster.
        self._refuse_foreign()
        return handle

    def _refuse_foreign(self) -> None:
        """Raise `UsageError` for a link, a file or another user's folder."""
        try:
            about = self.folder.lstat()
        except OSError:
            return
        is_own = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
        if not stat.S_ISDIR(about.st_mode) or not is_own:
            raise UsageError(
                f"{self.folder}, where the root would be made, is no folder of yours",
                hint="take it away, or name another folder with --root",
            )


def _with_hint(error: CudaRedistError) -> CudaRedistError:
    """Return an error whose hint fits toolkit roots."""
    if isinstance(error, WriteError):
        error.hint = "make room or permission there, or choose another folder with --root"
    return error


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders exchange their names in one step; return False where that cannot be done.

    Not every file system can, and of the systems only Linux has this call.
    """
    import ctypes  # noqa: PLC0415 - only where a root is replaced

    try:
        call = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    places = (os.fsencode(one.absolute()), os.fsencode(other.absolute()))
    failed: int = call(_NO_FOLDER, places[0], _NO_FOLDER, places[1], _RENAME_EXCHANGE)
    return failed == 0


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        # Not where something lies in it.
        with contextlib.suppress(OSError):
            folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Take away a folder, what is read-only in it included; warns where something stays."""
    if folder.is_symlink():
        with contextlib.suppress(OSError):
            folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        return
    for place, folders, _ in os.walk(folder):
        for path in (Path(place), *(Path(place) / name for name in folders)):
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(_OWNER_ONLY)
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        _log.warning("could not take away %s", folder)
