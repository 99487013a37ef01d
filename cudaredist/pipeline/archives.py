"""The one service that opens archives: it fetches, verifies and reads each in one pass.

The facts of an archive, with the extracts that tables are made from, are cached by its hash. So
process-manifests, both tables, `bump` and `materialize` never need the same archive twice.
"""

import contextlib
import hashlib
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from cudaredist.archives.members import ArchiveReader
from cudaredist.archives.open_archive import open_archive
from cudaredist.errors import (
    ArchiveMismatchError,
    CannotResumeError,
    IncompleteError,
    InvalidArchiveError,
    SourceError,
    UsageError,
    WriteError,
)
from cudaredist.features.facts import Facts
from cudaredist.features.gather import LateTables, gather
from cudaredist.pipeline.facts_cache import known_facts, remember_facts
from cudaredist.pipeline.kept_archive import ByteStream, PartialArchive, remove_part, stream_of
from cudaredist.pipeline.tasks import raise_if_stopped
from cudaredist.private import private_size
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.source.chain import SourceChain
from cudaredist.store.cache import Cache

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_RESTARTS = 3
"""Times an archive may be begun again because it changed while it was read."""
_PASSES = 4
"""Times an archive is read for tables found too late: one leads to the next."""
_DRAIN_LIMIT = 16 << 30
"""Bytes read only to learn whether what is no archive has the hash it should have."""


class ArchiveRequest(NamedTuple):
    """One archive to read; picklable, so that it can be sent to another machine."""

    name: str
    """The archive's file name, which tells its format."""
    paths: tuple[str, ...]
    """Where it may be under a source's root."""
    sha256: str | None
    size: int | None
    bases: tuple[str, ...] = ()
    """The sources it comes from, in order."""

    @property
    def suffix(self) -> str:
        """The end of the name that tells the format: `.tar.xz`."""
        stem, dot, last = self.name.rpartition(".")
        return f".tar{dot}{last}" if stem.endswith(".tar") else f"{dot}{last}"


class Examined(NamedTuple):
    """An archive's facts, and whether it was read for them just now."""

    facts: Facts
    is_read: bool


@dataclass(kw_only=True)
class ArchiveService:
    """Opens the archives of one run, from any thread."""

    chains: Mapping[tuple[str, ...], SourceChain]
    """The sources of archives, by their bases."""
    cache: Cache | None = None
    """Where facts are cached and archives kept; None: neither."""
    stop: threading.Event = field(default_factory=threading.Event)
    jobs: int = 1
    """Threads of the run; the last archives to be read use the idle ones to decompress."""
    progress: Progress = NO_PROGRESS
    keep_archives: bool = False
    max_fetched: int | None = None
    """Bytes that sources may send in all."""
    pending: int = 1
    """Archives still to be read."""
    opened: int = 0
    """Archives opened so far."""
    fetched: int = 0
    """Bytes that sources have sent so far."""
    _locks: defaultdict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def examine(self, request: ArchiveRequest) -> Examined:
        """Return an archive's facts, from the cache if it has them.

        One pass is enough for nearly all; if a file's headers came after the tables they lead to,
        the archive is read again with those kept. Raises what `read` raises.
        """
        with self._mutex:
            lock = self._locks[request.sha256] if request.sha256 else threading.Lock()
        with lock:
            facts = self.known(request.sha256)
            if facts is not None:
                self._count_done()
                self.progress.done()
                return Examined(facts, is_read=False)
            facts = self._gathered(request)
            if self.cache is not None:
                remember_facts(self.cache, request.sha256, facts)
            return Examined(facts, is_read=True)

    def sized(self, requests: Sequence[ArchiveRequest]) -> list[ArchiveRequest]:
        """Return requests with the sizes that sources list, if manifests do not state them."""
        unknown = [request for request in requests if request.size is None]
        sizes: dict[str, int] = {}
        for bases in {request.bases for request in unknown}:
            paths = [
                path for request in unknown if request.bases == bases for path in request.paths
            ]
            sizes |= self.chains[bases].sizes(paths)
        return [
            request._replace(size=next((sizes[p] for p in request.paths if p in sizes), None))
            if request.size is None
            else request
            for request in requests
        ]

    def known(self, sha256: str | None) -> Facts | None:
        """Return the facts that the cache has of an archive."""
        return None if self.cache is None else known_facts(self.cache, sha256)

    def read(
        self,
        request: ArchiveRequest,
        use: Callable[[ArchiveReader], _Result],
        *,
        keep_at: Path | None = None,
    ) -> _Result:
        """Return what `use` makes of an archive, once its hash and size are verified.

        `use` has to read to the end, and may be called again. With `keep_at` the archive is kept
        there, or taken from there. Raises `SourceError`, `ArchiveMismatchError` and
        `InvalidArchiveError` after every source was tried, `WriteError` if it cannot be kept, and
        `StoppedError`.
        """
        with self._reading(request, keep_at) as reading:
            return reading.read(use)

    def kept_at(self, request: ArchiveRequest) -> Path | None:
        """Return the path of an archive in the cache; None if it is not there."""
        if self.cache is None or request.sha256 is None:
            return None
        path = self.cache.archive_path(request.sha256, request.suffix)
        return path if private_size(path) is not None else None

    def count_fetched(self, size: int) -> None:
        """Count bytes that a source sent; raises `IncompleteError` if they are too many."""
        with self._mutex:
            self.fetched += size
        limit = self.max_fetched
        if limit is not None and self.fetched > limit:
            self.stop.set()
            raise IncompleteError(
                f"more than --max-download {limit:,} bytes came",
                hint="name fewer components; what is there already is kept for the next run",
            )

    @property
    def threads(self) -> int:
        """Threads that the decompression of one archive may use."""
        return max(1, self.jobs // max(1, self.pending))

    def _count_done(self, opened: int = 0) -> None:
        with self._mutex:
            self.opened += opened
            self.pending -= 1

    @contextlib.contextmanager
    def _reading(
        self, request: ArchiveRequest, keep_at: Path | None, *, is_temporary: bool = False
    ) -> Iterator["_Reading"]:
        raise_if_stopped(self.stop)
        number, is_done = self.progress.begin(request.name, request.size), False
        try:
            yield _Reading(self, request, number, keep_at, is_temporary=is_temporary)
            is_done = True
        finally:
            self.progress.end(number, is_done=is_done)
            self._count_done(opened=1)

    def _gathered(self, request: ArchiveRequest) -> Facts:
        is_wheel = request.name.endswith(".whl")
        late = LateTables()
        kept = self.kept_at(request)
        keep_at = kept or self._new_path(request)
        is_temporary = kept is None and not self.keep_archives

        def use(reader: ArchiveReader) -> Facts:
            return gather(reader, is_wheel=is_wheel, late=late)

        with self._reading(request, keep_at, is_temporary=is_temporary) as reading:
            facts, known, passes = reading.read(use), 0, 1
            while known < len(late) and passes < _PASSES:
                _log.info("%s: read again for tables that had passed", request.name)
                known, passes = len(late), passes + 1
                facts = reading.read(use)
        if keep_at is not None and is_temporary:
            remove_part(keep_at)
        return facts

    def _new_path(self, request: ArchiveRequest) -> Path | None:
        """Return where to keep an archive, or its first bytes until it is examined; None: nowhere.

        An interrupted download resumes there. Raises `WriteError` if archives are to be kept and
        cannot be.
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


class _Reading:
    """One archive being read."""

    def __init__(
        self,
        service: ArchiveService,
        request: ArchiveRequest,
        number: int,
        keep_at: Path | None,
        *,
        is_temporary: bool,
    ) -> None:
        self._service = service
        self._request = request
        self._number = number
        self._keep_at = keep_at
        self._is_temporary = is_temporary

    def read(self, use: Callable[[ArchiveReader], _Result]) -> _Result:
        """Return what `use` makes of the kept archive, else of a source's."""
        kept = self._from_kept(use)
        if kept is not None:
            return kept

        def consume(place: str, stream: ByteStream) -> _Result:
            for _ in range(_RESTARTS):
                with contextlib.suppress(CannotResumeError):
                    return self._from_source(place, stream, use)
                _log.info("%s: begun again", place)
            return self._from_source(place, stream, use)

        request = self._request
        chain = self._service.chains[request.bases]
        return chain.consume(request.paths, consume, size=request.size)

    def _from_kept(self, use: Callable[[ArchiveReader], _Result]) -> _Result | None:
        """Use the archive that is kept; return None if there is none, or other bytes are."""
        path = self._keep_at
        if path is None or private_size(path) is None:
            return None
        try:
            return self._once(str(path), stream_of(path), use)
        except (ArchiveMismatchError, SourceError) as error:
            _log.warning("fetching again what was kept: %s", error)
            with contextlib.suppress(OSError):
                path.unlink()
            return None

    def _from_source(
        self, place: str, stream: ByteStream, use: Callable[[ArchiveReader], _Result]
    ) -> _Result:
        """Use what a source streams; on the way it is kept if it should be."""

        def counted(start: int) -> Iterator[bytes]:
            for chunk in stream(start):
                self._service.count_fetched(len(chunk))
                yield chunk

        path = self._keep_at
        if path is None:
            return self._once(place, counted, use)
        with contextlib.ExitStack() as stack:
            try:
                partial = stack.enter_context(PartialArchive(path, is_temporary=self._is_temporary))
            except WriteError as error:
                if not self._is_temporary:
                    raise
                _log.info("%s: cannot resume if interrupted: %s", self._request.name, error)
                return self._once(place, counted, use)
            return self._through(partial, path, place, counted, use)

    def _through(
        self,
        partial: PartialArchive,
        path: Path,
        place: str,
        stream: ByteStream,
        use: Callable[[ArchiveReader], _Result],
    ) -> _Result:
        """Use an archive whose bytes are kept on the way, after those of an earlier run."""
        if partial.is_done:
            # Another run has brought it while this one waited.
            return self._once(str(path), stream_of(path), use)
        resumed = partial.size
        through = partial.through(stream, self._request.size)
        try:
            result = self._once(place, through, use)
        except (ArchiveMismatchError, InvalidArchiveError, CannotResumeError):
            partial.forget()
            if not resumed:
                raise
            # What an earlier run left may be what was wrong.
            result = self._once(place, through, use)
        if not self._is_temporary:
            partial.complete()
        return result

    def _once(
        self, place: str, stream: ByteStream, use: Callable[[ArchiveReader], _Result]
    ) -> _Result:
        """Read an archive once, from its first byte, and verify it."""
        request, service = self._request, self._service
        proof = _Proof(request, place)
        came = 0

        def chunks() -> Iterator[bytes]:
            nonlocal came
            for chunk in stream(0):
                proof.update(chunk)
                came += len(chunk)
                service.progress.advance(self._number, len(chunk))
                yield chunk

        passing = chunks()
        try:
            try:
                reader = open_archive(
                    request.name, passing, size=request.size, jobs=service.threads
                )
                with contextlib.closing(reader):
                    result = use(reader)
            except InvalidArchiveError as error:
                # Wrong bytes are not understood either; which it is, only the hash can tell.
                if request.sha256 is not None:
                    for _ in passing:
                        if came > _DRAIN_LIMIT:
                            break
                    proof.check()
                raise InvalidArchiveError(place, error.reason) from error
            proof.check()
        except BaseException:
            service.progress.advance(self._number, -came)
            raise
        return result


class _Proof:
    """Size and SHA-256 of bytes on their way, against what the manifest states."""

    def __init__(self, request: ArchiveRequest, place: str) -> None:
        self._request = request
        self._place = place
        self._digest = hashlib.sha256()
        self._count = 0

    def update(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self._count += len(chunk)
        size = self._request.size
        if size is not None and self._count > size:
            raise ArchiveMismatchError(self._place, "size", f"{size:,}", "larger")

    def check(self) -> None:
        """Raise `ArchiveMismatchError` where the bytes are not the ones stated."""
        size, sha256 = self._request.size, self._request.sha256
        if size is not None and self._count != size:
            raise ArchiveMismatchError(self._place, "size", f"{size:,}", f"{self._count:,} bytes")
        found = self._digest.hexdigest()
        if sha256 is not None and found != sha256:
            raise ArchiveMismatchError(self._place, "SHA-256", sha256, found)
