"""Store archives: resume partial ones, and rename verified ones."""

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

from cudaredist.errors import CannotResumeError, WriteError, WritingTo
from cudaredist.locks import lock_handle
from cudaredist.private import ForeignFileError, discard, open_private, private_size
from cudaredist.sources.folder import reading
from cudaredist.sources.protocol import ByteStream

_log = logging.getLogger(__name__)

_CHUNK = 1 << 18
_WRITE = os.O_RDWR | os.O_CREAT
_ATTEMPTS = 100


class PartialArchive:
    """An archive that is being stored as `<name>.part`.

    After verification, the caller renames it with `complete`. A temporary file only serves to
    resume: if the disk is full or another run has the lock, the bytes are not written.

    On a network file system, locks may be missing or work on one machine only. Then two runs may
    write the same bytes to the same offsets, and one of them may remove or rename the file.
    `complete` detects that.
    """

    def __init__(self, path: Path, *, is_temporary: bool = False) -> None:
        self._path = path
        self._is_temporary = is_temporary
        self._part = _part_of(path)
        self.is_done = False
        """Whether another run finished the archive while this one waited for the lock."""
        self.resumed = 0
        """The number of bytes that earlier runs stored."""
        self._received = 0

    def __enter__(self) -> Self:
        with WritingTo(self._part):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(_ATTEMPTS):
                self._file = self._open()
                _lock(self._file, wait=not self._is_temporary)
                self.is_done = private_size(self._path) is not None
                if self.is_done or self._is_current():
                    return self
                # Another run has renamed or removed the file.
                self._file.close()
            raise OSError(errno.ESTALE, "other runs keep removing it")

    def _open(self) -> BinaryIO:
        with contextlib.suppress(ForeignFileError):
            return open_private(self._part, _WRITE)
        discard(self._part)
        return open_private(self._part, _WRITE)

    def _is_current(self) -> bool:
        with contextlib.suppress(OSError, ValueError):  # the file is missing, or closed already
            return os.path.samestat(self._part.lstat(), os.fstat(self._file.fileno()))
        return False

    def __exit__(self, *_: object) -> None:
        # The buffer may not fit on the disk. The next run resumes from the bytes on the disk.
        with contextlib.suppress(OSError):
            self._file.close()

    def through(self, stream: ByteStream, size: int | None) -> ByteStream:
        """Return a stream of the stored bytes and the rest.

        The rest is read from `stream` and stored. Raises `WriteError` before the first write if the
        disk has no space for an archive of a known size, and `CannotResumeError` if the file is
        lost.
        """

        def chunks(_: int) -> Iterator[bytes]:
            self._file.seek(0)
            while chunk := self._stored_chunk():
                self.resumed += len(chunk)
                yield chunk
            self._received = self.resumed
            if self.resumed == size:
                return
            is_writing, required = True, 0 if size is None else size - self.resumed
            for chunk in stream(self.resumed):
                self._received += len(chunk)
                try:
                    if is_writing:
                        self._require_space(required)
                        required = 0
                        self._file.write(chunk)
                        self._file.flush()
                except OSError as error:
                    if error.errno == errno.ESTALE:
                        raise self._lost() from error
                    if not self._is_temporary:
                        raise WriteError(self._part, error) from error
                    _log.info("%s: cannot resume if interrupted: %s", self._part.name, error)
                    is_writing = False
                    self.forget()
                yield chunk

        return chunks

    def _stored_chunk(self) -> bytes:
        try:
            return self._file.read(_CHUNK)
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> CannotResumeError:
        return CannotResumeError(str(self._part), "another run removed or changed the file")

    def _require_space(self, size: int) -> None:
        """Raise `OSError` if the disk has less free space."""
        if size > 0 and (free := shutil.disk_usage(self._part.parent).free) < size:
            reason = f"{size:,} bytes required, {free:,} bytes free"
            raise OSError(errno.ENOSPC, reason)

    def forget(self) -> None:
        """Remove the stored bytes.

        The file is not truncated, because a run on another machine may be writing to it.
        """
        with contextlib.suppress(OSError):
            if self._is_current():
                self._part.unlink()
            self._file.close()

    def complete(self) -> None:
        """Give the archive its final name.

        Raises `WriteError`, and `CannotResumeError` if another run removed or changed the file.
        """
        try:
            os.fsync(self._file.fileno())
            size = os.fstat(self._file.fileno()).st_size
            if size == self._received and self._is_current():
                if os.name == "nt":
                    # Windows cannot rename an open file. On other systems, closing it here would
                    # release the lock too early.
                    self._file.close()
                self._part.replace(self._path)
        except OSError as error:
            if error.errno not in {errno.ESTALE, errno.ENOENT}:
                raise WriteError(self._path, error) from error
        # Another run may have renamed it.
        if private_size(self._path) != self._received:
            self.forget()
            raise self._lost()


def kept_bytes(keep_at: Path) -> int:
    """Return the number of stored bytes of an archive, complete or partial."""
    sizes = (private_size(path) for path in (keep_at, _part_of(keep_at)))
    return next((size for size in sizes if size is not None), 0)


def remove_part(keep_at: Path) -> None:
    """Remove an archive's partial file, unless another run writes it."""
    part = _part_of(keep_at)
    with contextlib.suppress(OSError, ForeignFileError), open_private(part, os.O_RDWR) as file:
        _lock(file, wait=False)
        part.unlink()


def _part_of(path: Path) -> Path:
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


def stream_of(path: Path) -> ByteStream:
    """Return a stream of a file of this user."""

    def chunks(start: int) -> Iterator[bytes]:
        with reading(path), open_private(path) as file:
            file.seek(start)
            while chunk := file.read(_CHUNK):
                yield chunk

    return chunks
