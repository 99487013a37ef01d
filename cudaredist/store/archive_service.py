"""Fetch, verify and read archives.

All commands open archives here. The facts of an archive, including the extracts for tables, are
cached by its hash. So process-manifests, both tables, `bump` and `materialize` never need the same
archive twice.
"""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from cudaredist.archives.members import Members
from cudaredist.archives.open_archive import open_archive
from cudaredist.binaries.file_content import Scratch
from cudaredist.errors import (
    IncompleteError,
    InvalidArchiveError,
    ReadingFrom,
    UsageError,
    WriteError,
)
from cudaredist.features.facts import Facts
from cudaredist.features.gather import gather
from cudaredist.hints import again
from cudaredist.private import private_size
from cudaredist.progress import NO_PROGRESS, Progress, total_size
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import MAX_ARCHIVE
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import known_facts, remember_facts
from cudaredist.store.fetch_archive import ArchiveFetch, ArchiveRequest, VerifiedArchive
from cudaredist.tasks import raise_if_stopped

_Result = TypeVar("_Result")


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
    """Archives that are read at the same time."""
    downloads: int | None = None
    """Archives that are downloaded at the same time. Default: as suits their reading."""
    progress: Progress = NO_PROGRESS
    keep_archives: bool = False
    max_fetched: int | None = None
    """The limit of bytes to fetch."""
    max_archive: int = MAX_ARCHIVE
    """The limit of bytes of an archive of unknown size."""
    opened: int = 0
    """Archives opened so far."""
    fetched: int = 0
    """Bytes fetched so far."""
    _locks: defaultdict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._reading = threading.Semaphore(self.jobs)
        # With more downloads at once, the first ones would end later, and nothing could be read.
        self._downloading = threading.Semaphore(self.downloads or max(2, self.jobs // 4))

    @property
    def threads(self) -> int:
        """The number of archives in progress. Two more are downloaded while others are read."""
        has_server = any(sources.has_server for sources in self.chains.values())
        return self.jobs + 2 if has_server and self.jobs > 1 else self.jobs

    def examine(self, request: ArchiveRequest, *, again: bool = False) -> Examined:
        """Return an archive's facts, from the cache if possible.

        With `again`, cached facts are ignored and replaced. Raises the same errors as `read`.
        """
        with self._mutex:
            lock = self._locks[request.sha256] if request.sha256 else threading.Lock()
        with lock:
            facts = None if again else self.known(request.sha256)
            if facts is not None:
                self.progress.done()
                return Examined(facts, is_read=False)
            facts = self._gather(request)
            if self.cache is not None:
                remember_facts(self.cache, request.sha256, facts)
            return Examined(facts, is_read=True)

    def sized(self, requests: Sequence[ArchiveRequest]) -> list[ArchiveRequest]:
        """Add sizes from the sources to requests without one."""
        unknown = [request for request in requests if request.size is None]
        paths: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for request in unknown:
            paths[request.bases].extend(request.paths)
        sizes: dict[str, int] = {}
        for bases, paths_of_bases in paths.items():
            sizes |= self.chains[bases].sizes(paths_of_bases)

        def with_size(request: ArchiveRequest) -> ArchiveRequest:
            if request.size is not None:
                return request
            stated = (sizes[path] for path in request.paths if path in sizes)
            return request._replace(size=next(stated, None))

        return list(map(with_size, requests))

    def expect(self, sizes: Sequence[int | None]) -> None:
        """Begin a run over archives of these sizes. The size of a cached archive is 0."""
        self.progress.expect(len(sizes), total_size(sizes))

    def known(self, sha256: str | None) -> Facts | None:
        """Return an archive's facts from the cache, or None."""
        return None if self.cache is None else known_facts(self.cache, sha256)

    def read(
        self,
        request: ArchiveRequest,
        use: Callable[[Members], _Result],
        *,
        keep_at: Path | None = None,
        is_temporary: bool = False,
    ) -> _Result:
        """Return the result of `use` for the members of a verified archive.

        `keep_at` is the path to keep the archive at. If the archive is already there, it is not
        fetched. If `is_temporary`, only an interrupted download is kept. After trying every source,
        raises `SourceError` or `ArchiveMismatchError`. Also raises `InvalidArchiveError`,
        `WriteError` if there is no space, and `StoppedError`.
        """
        with self._fetched(request, keep_at, is_temporary=is_temporary) as archive:
            try:
                # Materialize downloads one more archive while others are read.
                with self._reading, ReadingFrom(archive.location):
                    result = use(open_archive(request.name, archive.file))
            except InvalidArchiveError as error:
                archive.check_unchanged()
                raise InvalidArchiveError(archive.location, error.reason) from error
            archive.check_unchanged()
            return result

    def fetch(self, request: ArchiveRequest, keep_at: Path) -> None:
        """Keep an archive at a path, verified but not opened.

        Raises what `read` raises.
        """
        with self._fetched(request, keep_at):
            pass

    def kept_at(self, request: ArchiveRequest) -> Path | None:
        """Return the path of an archive in the cache, or None."""
        if self.cache is None or request.sha256 is None:
            return None
        path = self.cache.archive_path(request.sha256, request.suffix)
        return path if private_size(path) is not None else None

    def count_opened(self) -> None:
        """Count an archive that was read in part."""
        with self._mutex:
            self.opened += 1

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

    @contextlib.contextmanager
    def _fetched(
        self, request: ArchiveRequest, keep_at: Path | None, *, is_temporary: bool = False
    ) -> Iterator[VerifiedArchive]:
        """Fetch and verify an archive, and open its file."""
        raise_if_stopped(self.stop)
        number, is_done = self.progress.begin(request.name, request.size), False
        fetch = ArchiveFetch(
            request=request,
            sources=self.chains[request.bases],
            keep_at=keep_at,
            is_temporary=is_temporary,
            folder=None if self.cache is None else self.cache.temporary_folder(),
            max_size=self.max_archive,
            slot=self._downloading,
            count=self.count_fetched,
            advance=partial(self.progress.advance, number),
        )
        try:
            with contextlib.closing(fetch.run()) as archive:
                yield archive
            is_done = True
        finally:
            self.progress.end(number, is_done=is_done)
            with self._mutex:
                self.opened += 1

    def _gather(self, request: ArchiveRequest) -> Facts:
        stored = self.kept_at(request)
        keep_at = stored or self._new_path(request)
        is_temporary = stored is None and not self.keep_archives
        folder = None if self.cache is None else self.cache.temporary_folder()
        with contextlib.closing(Scratch(folder)) as scratch:
            use = partial(gather, storage=scratch, is_wheel=request.name.endswith(".whl"))
            return self.read(request, use, keep_at=keep_at, is_temporary=is_temporary)

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
