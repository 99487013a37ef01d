"""Fetch, verify and read archives in one pass.

All commands open archives here. The facts of an archive, including the extracts for tables, are
cached by its hash. So process-manifests, both tables, `bump` and `materialize` never need the same
archive twice.
"""

import contextlib
import hashlib
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from cudaredist.archives.members import ArchiveReader
from cudaredist.archives.open_archive import open_archive
from cudaredist.binaries.file_content import Scratch
from cudaredist.errors import (
    ArchiveMismatchError,
    CannotResumeError,
    CudaRedistError,
    IncompleteError,
    InvalidArchiveError,
    SourceError,
    TooLargeError,
    UsageError,
    WriteError,
)
from cudaredist.features.facts import Facts
from cudaredist.features.gather import gather
from cudaredist.hints import again
from cudaredist.private import private_size
from cudaredist.progress import NO_PROGRESS, Progress, total_size
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import ByteStream
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import known_facts, remember_facts
from cudaredist.store.kept_archive import PartialArchive, remove_part, stream_of
from cudaredist.tasks import raise_if_stopped

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_DRAIN_LIMIT = 16 << 30
"""The limit of bytes to read only to verify the hash of an invalid archive."""
UNSIZED_LIMIT = 8 << 30
"""The limit of bytes of an archive of unknown size. NVIDIA's largest archives have about 7 GB."""


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


class Examined(NamedTuple):
    """The facts of an archive."""

    facts: Facts
    is_read: bool
    """Whether the archive was read, because the cache did not have the facts."""


@dataclass(kw_only=True)
class ArchiveService:
    """Opens the archives of a run, from any thread."""

    chains: Mapping[tuple[str, ...], SourceChain]
    """The chains of sources, by their bases."""
    cache: Cache | None = None
    """The cache of facts and archives, if any."""
    stop: threading.Event = field(default_factory=threading.Event)
    jobs: int = 1
    """Threads of the run. The last archives use idle threads for decompression."""
    progress: Progress = NO_PROGRESS
    keep_archives: bool = False
    max_fetched: int | None = None
    """The limit of bytes to fetch."""
    pending: int = 1
    """Archives not read yet."""
    opened: int = 0
    """Archives opened so far."""
    fetched: int = 0
    """Bytes fetched so far."""
    _locks: defaultdict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def examine(self, request: ArchiveRequest) -> Examined:
        """Return an archive's facts, from the cache if possible.

        Raises the same errors as `read`.
        """
        with self._mutex:
            lock = self._locks[request.sha256] if request.sha256 else threading.Lock()
        with lock:
            facts = self.known(request.sha256)
            if facts is not None:
                self.count_done()
                self.progress.done()
                return Examined(facts, is_read=False)
            facts = self._gather(request)
            if self.cache is not None:
                remember_facts(self.cache, request.sha256, facts)
            return Examined(facts, is_read=True)

    def sized(self, requests: Sequence[ArchiveRequest]) -> list[ArchiveRequest]:
        """Add sizes from the sources to requests without one."""
        unknown = [request for request in requests if request.size is None]
        sizes: dict[str, int] = {}
        for bases in {request.bases for request in unknown}:
            of_bases = (request.paths for request in unknown if request.bases == bases)
            sizes |= self.chains[bases].sizes([*chain.from_iterable(of_bases)])

        def sized(request: ArchiveRequest) -> ArchiveRequest:
            stated = (sizes[path] for path in request.paths if path in sizes)
            return request._replace(size=next(stated, None)) if request.size is None else request

        return list(map(sized, requests))

    def expect(self, sizes: Sequence[int | None]) -> None:
        """Begin a run over archives of these sizes. The size of a cached archive is 0."""
        self.pending = len(sizes)
        self.progress.expect(len(sizes), total_size(sizes))

    def known(self, sha256: str | None) -> Facts | None:
        """Return an archive's facts from the cache, or None."""
        return None if self.cache is None else known_facts(self.cache, sha256)

    def read(
        self,
        request: ArchiveRequest,
        use: Callable[[ArchiveReader], _Result],
        *,
        keep_at: Path | None = None,
    ) -> _Result:
        """Return the result of `use` for a verified archive.

        `use` must read to the end, and may be called again. `keep_at` is the path to keep the
        archive at; if the archive is already there, it is not fetched. After trying every source,
        raises `SourceError`, `ArchiveMismatchError` or `InvalidArchiveError`. Also raises
        `WriteError` if the archive cannot be kept, and `StoppedError`.
        """
        return _Reading(self, request, self._opened(request, use), keep_at).run()

    def fetch(self, request: ArchiveRequest, keep_at: Path) -> None:
        """Keep an archive at a path, verified but not opened.

        Raises what `read` raises.
        """
        _Reading(self, request, partial(deque, maxlen=0), keep_at).run()

    def kept_at(self, request: ArchiveRequest) -> Path | None:
        """Return the path of an archive in the cache, or None."""
        if self.cache is None or request.sha256 is None:
            return None
        path = self.cache.archive_path(request.sha256, request.suffix)
        return path if private_size(path) is not None else None

    def count_fetched(self, size: int) -> None:
        """Count fetched bytes.

        Raises `IncompleteError` above the limit of `--max-download`.
        """
        with self._mutex:
            self.fetched += size
        limit = self.max_fetched
        if limit is not None and self.fetched > limit:
            self.stop.set()
            more = again(max_download=2 * limit)
            raise IncompleteError(
                f"the download exceeds --max-download {limit:,} bytes",
                hint="select fewer components with --component, or increase --max-download; the "
                f"next run reuses the files of this one: `{more}`",
            )

    @property
    def threads(self) -> int:
        """The number of threads for the decompression of one archive."""
        return max(1, self.jobs // max(1, self.pending))

    def count_done(self, opened: int = 0) -> None:
        """Count an archive that is not pending any more."""
        with self._mutex:
            self.opened += opened
            self.pending -= 1

    def _opened(
        self, request: ArchiveRequest, use: Callable[[ArchiveReader], _Result]
    ) -> Callable[[Iterator[bytes]], _Result]:
        """Return a function that opens the bytes of an archive and passes the reader to `use`."""

        def use_bytes(chunks: Iterator[bytes]) -> _Result:
            reader = open_archive(request.name, chunks, size=request.size, jobs=self.threads)
            with contextlib.closing(reader):
                return use(reader)

        return use_bytes

    def _gather(self, request: ArchiveRequest) -> Facts:
        stored = self.kept_at(request)
        keep_at = stored or self._new_path(request)
        is_temporary = stored is None and not self.keep_archives
        folder = None if self.cache is None else self.cache.temporary_folder()
        with contextlib.closing(Scratch(folder)) as scratch:
            use = partial(gather, storage=scratch, is_wheel=request.name.endswith(".whl"))
            reading = _Reading(self, request, self._opened(request, use), keep_at, is_temporary)
            facts = reading.run()
        if keep_at is not None and is_temporary:
            remove_part(keep_at)
        return facts

    def _new_path(self, request: ArchiveRequest) -> Path | None:
        """Return the path to store an archive at, or None.

        Without `keep_archives`, the file is temporary: an interrupted download resumes from it.
        Raises `WriteError` if `keep_archives` is set and the folder cannot be created.
        """
        if self.cache is None or request.sha256 is None:
            return None
        if not self.keep_archives and not self.chains[request.bases].has_server:
            return None
        try:
            return self.cache.new_archive_path(request.sha256, request.suffix)
        except (WriteError, UsageError):
            if self.keep_archives:
                raise
            return None


def _too_large(location: str, size: int | None) -> CudaRedistError:
    """Return the error for an archive that is larger than its size, or than any archive."""
    if size is None:
        return TooLargeError(location, UNSIZED_LIMIT)
    return ArchiveMismatchError(location, "size", f"{size:,}", "larger")


@dataclass(slots=True)
class _Reading(Generic[_Result]):
    """An archive that is being read."""

    service: ArchiveService
    request: ArchiveRequest
    use: Callable[[Iterator[bytes]], _Result]
    keep_at: Path | None
    is_temporary: bool = False
    number: int = 0
    """The number in the progress."""

    def run(self) -> _Result:
        """Read the stored archive, else fetch it from a source."""
        service, request = self.service, self.request
        raise_if_stopped(service.stop)
        self.number, is_done = service.progress.begin(request.name, request.size), False
        try:
            result = self._from_kept()
            if result is None:
                sources = service.chains[request.bases]
                result = sources.consume(request.paths, self._from_source, size=request.size)
            is_done = True
        finally:
            service.progress.end(self.number, is_done=is_done)
            service.count_done(opened=1)
        return result

    def _from_kept(self) -> _Result | None:
        """Read the stored archive.

        Return None if it is missing, unreadable or damaged.
        """
        path = self.keep_at
        if path is None or private_size(path) is None:
            return None
        try:
            return self._once(str(path), stream_of(path))
        except (ArchiveMismatchError, SourceError) as error:
            _log.warning("fetching the stored archive again: %s", error)
            with contextlib.suppress(OSError):
                path.unlink()
            return None

    def _from_source(self, location: str, stream: ByteStream) -> _Result:
        """Read an archive from a source, and store it if necessary."""

        def counted(start: int) -> Iterator[bytes]:
            for chunk in stream(start):
                self.service.count_fetched(len(chunk))
                yield chunk

        if self.keep_at is None:
            return self._once(location, counted)
        with contextlib.ExitStack() as stack:
            try:
                part = PartialArchive(self.keep_at, is_temporary=self.is_temporary)
                stack.enter_context(part)
            except WriteError as error:
                if not self.is_temporary:
                    raise
                _log.info("%s: cannot resume if interrupted: %s", self.request.name, error)
                return self._once(location, counted)
            return self._through_file(part, location, counted)

    def _through_file(self, part: PartialArchive, location: str, stream: ByteStream) -> _Result:
        """Read and store an archive, resuming from the bytes of earlier runs.

        Raises `CannotResumeError` if the stored bytes are damaged.
        """
        if part.is_done:
            # Another run has finished it while this one waited.
            kept = self._from_kept()
            if kept is None:
                raise CannotResumeError(location, "the stored archive is damaged")
            return kept
        try:
            result = self._once(location, part.through(stream, self.request.size))
        except (ArchiveMismatchError, InvalidArchiveError, CannotResumeError) as error:
            part.forget()
            if not part.resumed:
                raise
            # The bytes of the interrupted run may be the damaged ones.
            raise CannotResumeError(location, "the stored bytes are damaged") from error
        if not self.is_temporary:
            part.complete()
        return result

    def _once(self, location: str, stream: ByteStream) -> _Result:
        """Read an archive once, from its first byte, and verify it."""
        size, sha256, progress = self.request.size, self.request.sha256, self.service.progress
        digest, count = hashlib.sha256(), 0

        def chunks() -> Iterator[bytes]:
            nonlocal count
            for chunk in stream(0):
                digest.update(chunk)
                count += len(chunk)
                if count > (UNSIZED_LIMIT if size is None else size):
                    raise _too_large(location, size)
                progress.advance(self.number, len(chunk))
                yield chunk

        def check() -> None:
            if size not in {None, count}:
                raise ArchiveMismatchError(location, "size", f"{size:,}", f"{count:,} bytes")
            if sha256 not in {None, digest.hexdigest()}:
                raise ArchiveMismatchError(location, "SHA-256", sha256, digest.hexdigest())

        passing = chunks()
        try:
            try:
                result = self.use(passing)
            except InvalidArchiveError as error:
                # An invalid archive with the right hash is NVIDIA's defect. With the wrong hash,
                # it is damaged.
                if sha256 is not None:
                    deque(takewhile(lambda _: count <= _DRAIN_LIMIT, passing), maxlen=0)
                    check()
                raise InvalidArchiveError(location, error.reason) from error
            check()
        except BaseException:
            progress.advance(self.number, -count)
            raise
        return result
