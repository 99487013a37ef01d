"""Fetch an archive to a file, and verify it there.

Only a verified file is opened as an archive: no byte of an archive with a known hash is read before
the hash is right. A file in a local folder is verified and read in place. Everything else is
downloaded first, to the path where the archive is kept, to a partial file in the cache, or to an
unnamed file.
"""

import contextlib
import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from cudaredist.archives.members import file_size
from cudaredist.errors import (
    ArchiveMismatchError,
    CannotResumeError,
    CudaRedistError,
    IntegrityError,
    SourceError,
    TooLargeError,
    WriteError,
)
from cudaredist.primitives import sha256_of_file
from cudaredist.private import open_file, open_private, private_size
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.folder import reading
from cudaredist.sources.protocol import SourceFile
from cudaredist.sources.whole_file import restarting
from cudaredist.store.kept_archive import PartialArchive, UnnamedArchive

_log = logging.getLogger(__name__)

_Storage: TypeAlias = PartialArchive | UnnamedArchive


class ArchiveRequest(NamedTuple):
    """An archive to read. It is pickled for Dask workers."""

    name: str
    """The archive's file name. Its suffix is the format."""
    paths: tuple[str, ...]
    """The paths to try below a source's root."""
    sha256: str | None
    size: int | None
    bases: tuple[str, ...] = ()
    """The sources, in the order to try."""

    @property
    def suffix(self) -> str:
        """The suffix of the name, for example `.tar.xz`."""
        stem, dot, last = self.name.rpartition(".")
        return f".tar{dot}{last}" if stem.endswith(".tar") else f"{dot}{last}"


class VerifiedArchive:
    """An open archive with the right size and hash."""

    def __init__(self, file: BinaryIO, location: str, close: Callable[[], None]) -> None:
        self.file = file
        self.location = location
        """The archive's address or path, for messages."""
        self.close = close
        """Close the file, and remove it if it is temporary."""
        self._state = _state_of(file)
        self._sha256: str | None = None

    def verify(self, size: int | None, sha256: str | None) -> None:
        """Raise `ArchiveMismatchError` if the size or hash differs from a known one."""
        actual_size = file_size(self.file)
        if size is not None and size != actual_size:
            actual = f"{actual_size:,} bytes"
            raise ArchiveMismatchError(self.location, "size", f"{size:,}", actual)
        if sha256 is not None:
            actual = sha256_of_file(self.file)
            if actual != sha256:
                raise ArchiveMismatchError(self.location, "SHA-256", sha256, actual)
        self._sha256 = sha256

    def check_unchanged(self) -> None:
        """Raise `IntegrityError` if somebody changed the file since it was opened.

        Without locks, another run may have written the same bytes again. That is no change.
        """
        if _state_of(self.file) == self._state:
            return
        self.file.seek(0)
        if self._sha256 is None or sha256_of_file(self.file) != self._sha256:
            hint = "run the command again when nothing writes to the file"
            raise IntegrityError(f"{self.location} changed while it was read", hint=hint)


def _state_of(file: BinaryIO) -> tuple[int, int]:
    about = os.fstat(file.fileno())
    return about.st_size, about.st_mtime_ns


@dataclass(slots=True, kw_only=True)
class ArchiveFetch:
    """One archive to fetch and verify."""

    request: ArchiveRequest
    sources: SourceChain
    keep_at: Path | None
    """The path to keep the archive at, or None."""
    is_temporary: bool
    """Whether `keep_at` only serves to resume an interrupted download."""
    folder: Path | None
    """The folder of an unnamed file. Default: the system's temporary folder."""
    max_size: int
    """The limit of bytes if the archive's size is not known."""
    slot: threading.Semaphore
    """Limits the downloads at the same time."""
    count: Callable[[int], None]
    """Called with the number of bytes that were fetched."""
    advance: Callable[[int], None]
    """Called with the number of bytes of progress."""
    _received: int = 0
    """The bytes of the download, with those of earlier runs."""

    def run(self) -> VerifiedArchive:
        """Open the kept archive, else fetch it from the first good source."""
        kept = self._kept()
        if kept is not None:
            return kept
        request = self.request
        return self.sources.consume(request.paths, self._from_source, size=request.size)

    def _kept(self) -> VerifiedArchive | None:
        """Open the kept archive.

        Return None if it is missing, unreadable or damaged.
        """
        path = self.keep_at
        if path is None or private_size(path) is None:
            return None
        try:
            with reading(path):
                return self._verified(open_private(path), str(path))
        except (ArchiveMismatchError, SourceError) as error:
            _log.warning("fetching the stored archive again: %s", error)
            with contextlib.suppress(OSError):
                path.unlink()
            return None

    def _from_source(self, source: SourceFile) -> VerifiedArchive:
        """Fetch the archive from one source. Restart a download that cannot resume."""
        if source.path is not None and (self.keep_at is None or self.is_temporary):
            with reading(source.path):
                archive = self._verified(open_file(source.path, follow=True), source.place)
                self.count(file_size(archive.file))
                return archive
        return restarting(source.place, lambda: self._downloaded(source))

    def _verified(self, file: BinaryIO, location: str) -> VerifiedArchive:
        """Verify a local file."""
        archive = VerifiedArchive(file, location, file.close)
        try:
            archive.verify(self.request.size, self.request.sha256)
        except BaseException:
            file.close()
            raise
        self.advance(file_size(file))
        return archive

    def _downloaded(self, source: SourceFile) -> VerifiedArchive:
        """Download the archive, beginning with the bytes of earlier runs, and verify it.

        Raises `CannotResumeError` if these bytes are damaged or the source cannot resume.
        """
        storage = self._open_storage()
        if storage.is_done:
            # Another run has finished it while this one waited.
            storage.close()
            kept = self._kept()
            if kept is None:
                raise CannotResumeError(source.place, "the stored archive is damaged")
            return kept
        close = storage.forget if self.is_temporary else storage.close
        self._received = resumed = 0
        try:
            with _file_errors(storage):
                resumed = file_size(storage.file)
                with self.slot:
                    self._download(storage, source, resumed)
                archive = VerifiedArchive(storage.file, source.place, close)
                archive.verify(self.request.size, self.request.sha256)
                if not self.is_temporary:
                    storage.complete()
                    archive.file = storage.file
        except BaseException as error:
            self.advance(-self._received)
            is_wrong = isinstance(error, ArchiveMismatchError | TooLargeError)
            if is_wrong or isinstance(error, CannotResumeError):
                storage.forget()
            storage.close()
            if resumed and is_wrong:
                reason = "the stored bytes are damaged"
                raise CannotResumeError(source.place, reason) from error
            raise
        return archive

    def _open_storage(self) -> _Storage:
        """Open the file to download to."""
        if self.keep_at is None:
            return UnnamedArchive(self.folder)
        if not self.is_temporary:
            return PartialArchive(self.keep_at)
        try:
            return PartialArchive(self.keep_at, wait=False)
        except WriteError as error:
            _log.info("%s: cannot resume if interrupted: %s", self.request.name, error)
            return UnnamedArchive(self.folder)

    def _download(self, storage: _Storage, source: SourceFile, resumed: int) -> None:
        """Append the rest of the archive to a file.

        Raises `WriteError` if the disk has no space, before the first write if the size is known.
        """
        size = self.request.size
        self._received = resumed
        self.advance(resumed)
        if resumed == size:
            return
        free = shutil.disk_usage(storage.part.parent).free
        if size is not None and size - resumed > free:
            raise _full_disk(storage.part, f"{size - resumed:,} bytes required", free)
        storage.file.seek(resumed)
        for chunk in source.stream(resumed):
            self._received += len(chunk)
            self.advance(len(chunk))
            self.count(len(chunk))
            if self._received > (self.max_size if size is None else size):
                raise _too_large(source.place, size, self.max_size)
            if self._received - resumed > free:
                raise _full_disk(storage.part, "an archive of unknown size", free)
            storage.file.write(chunk)
            # After a kill, the next run resumes after this chunk.
            storage.file.flush()
        if file_size(storage.file) != self._received:
            raise _changed(storage)


@contextlib.contextmanager
def _file_errors(storage: _Storage) -> Iterator[None]:
    """Convert errors of the stored file."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ESTALE:
            raise _changed(storage) from error
        raise WriteError(storage.part, error) from error


def _changed(storage: _Storage) -> CannotResumeError:
    return CannotResumeError(str(storage.part), "another run removed or changed the file")


def _full_disk(path: Path, required: str, free: int) -> WriteError:
    return WriteError(path, OSError(errno.ENOSPC, f"{required}, {free:,} bytes free"))


def _too_large(location: str, size: int | None, limit: int) -> CudaRedistError:
    """Return the error for an archive that is larger than its size, or than any archive."""
    if size is None:
        return TooLargeError(location, limit)
    return ArchiveMismatchError(location, "size", f"{size:,}", "larger")
