"""Store archives: resume partial ones, and rename verified ones."""

import contextlib
import errno
import logging
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from cudaredist.errors import CannotResumeError, WriteError, WritingTo
from cudaredist.locks import lock_handle
from cudaredist.private import ForeignFileError, discard, open_private, open_unnamed, private_size

_log = logging.getLogger(__name__)

_WRITE = os.O_RDWR | os.O_CREAT
_ATTEMPTS = 100


class PartialArchive:
    """An archive that is being stored as `<name>.part`.

    After verification, the caller renames it with `complete`, or removes it with `forget`.

    On a network file system, locks may be missing or work on one machine only. Then two runs may
    write the same bytes to the same offsets, and one of them may remove or rename the file.
    `complete` detects that.
    """

    def __init__(self, path: Path, *, wait: bool = True) -> None:
        """Open and lock the file of an archive.

        Raises `WriteError`. Without `wait`, that includes a file that another run has locked.
        """
        self._path = path
        self.part = part_of(path)
        self.is_done = False
        """Whether another run finished the archive while this one waited for the lock."""
        with WritingTo(self.part):
            path.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(_ATTEMPTS):
                self.file = self._open()
                _lock(self.file, wait=wait)
                self.is_done = private_size(path) is not None
                if self.is_done or self._is_current():
                    return
                # Another run has renamed or removed the file.
                self.file.close()
            raise OSError(errno.ESTALE, "other runs keep removing it")

    def _open(self) -> BinaryIO:
        with contextlib.suppress(ForeignFileError):
            return open_private(self.part, _WRITE)
        discard(self.part)
        return open_private(self.part, _WRITE)

    def _is_current(self) -> bool:
        with contextlib.suppress(OSError, ValueError):  # the file is missing, or closed already
            return os.path.samestat(self.part.lstat(), os.fstat(self.file.fileno()))
        return False

    def close(self) -> None:
        """Close the file and release its lock. The next run resumes from its bytes."""
        # The buffer may not fit on the disk.
        with contextlib.suppress(OSError):
            self.file.close()

    def forget(self) -> None:
        """Remove the stored bytes, and close the file.

        The file is not truncated, because a run on another machine may be writing to it.
        """
        with contextlib.suppress(OSError):
            if self._is_current():
                self.part.unlink()
        self.close()

    def complete(self) -> None:
        """Give the archive its final name.

        Raises `WriteError`, and `CannotResumeError` if another run removed or changed the file.
        """
        size = os.fstat(self.file.fileno()).st_size
        try:
            os.fsync(self.file.fileno())
            if self._is_current():
                if os.name == "nt":
                    # Windows cannot rename an open file. On other systems, closing it here would
                    # release the lock too early.
                    self.file.close()
                self.part.replace(self._path)
                if os.name == "nt":
                    self.file = open_private(self._path)
        except OSError as error:
            if error.errno not in {errno.ESTALE, errno.ENOENT}:
                raise WriteError(self._path, error) from error
        # Another run may have renamed it.
        if private_size(self._path) != size:
            self.forget()
            reason = "another run removed or changed the file"
            raise CannotResumeError(str(self.part), reason)


class UnnamedArchive:
    """An archive in a file without a name, which cannot be resumed.

    The system removes the file when it is closed, even if the process is killed.
    """

    is_done = False

    def __init__(self, folder: Path | None) -> None:
        """Open a file in a folder, by default the system's temporary one. Raises `WriteError`."""
        self.part = Path(folder or tempfile.gettempdir(), "temporary file")
        with WritingTo(self.part):
            self.file = open_unnamed(folder)

    def close(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self.file.close()

    forget = close

    def complete(self) -> None:
        """Do nothing, because the file has no name."""


def kept_bytes(keep_at: Path) -> int:
    """Return the number of stored bytes of an archive, complete or partial."""
    sizes = (private_size(path) for path in (keep_at, part_of(keep_at)))
    return next((size for size in sizes if size is not None), 0)


def part_of(path: Path) -> Path:
    """Return the path of a partial archive."""
    return path.with_name(f"{path.name}.part")


def _lock(file: BinaryIO, *, wait: bool) -> None:
    """Lock a partial archive against other runs.

    Without `wait`, raises `BlockingIOError` if another run has the lock.
    """
    try:
        lock_handle(file.fileno(), wait=wait)
    except BlockingIOError:
        file.close()
        raise
    except OSError as error:
        _log.warning("continuing without a lock on %s: %s", file.name, error)
