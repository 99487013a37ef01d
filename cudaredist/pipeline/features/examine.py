"""One archive: fetch it, prove it, look inside, in one pass over its bytes."""

import contextlib
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self, TypeAlias, TypeVar

from cudaredist.archives import ArchiveReader, open_archive
from cudaredist.errors import (
    ArchiveMismatchError,
    CannotResumeError,
    InvalidArchiveError,
    SourceError,
    WriteError,
)
from cudaredist.features import Facts, LateTables, gather
from cudaredist.source import FolderSource, SourceChain

_log = logging.getLogger(__name__)

_Found = TypeVar("_Found")

Stream: TypeAlias = Callable[[int], Iterator[bytes]]
"""What yields a file's bytes from a byte on."""

_RESTARTS = 3
"""Times an archive may be begun again because it changed while it was read."""
_PASSES = 4
"""Times an archive is read for tables found too late: one leads to the next."""
_CHUNK = 1 << 18
_DRAIN_LIMIT = 16 << 30
"""Bytes read only to learn whether what is no archive has the hash it should have."""


class Wanted(NamedTuple):
    """One archive to be looked into; picklable, so that it can be sent to another machine."""

    name: str
    """The archive's file name, which tells its format."""
    paths: tuple[str, ...]
    """Where it may lie under a source's root."""
    sha256: str | None
    size: int | None

    @property
    def suffix(self) -> str:
        """The end of the name that tells the format: `.tar.xz`."""
        stem, dot, last = self.name.rpartition(".")
        return f".tar{dot}{last}" if stem.endswith(".tar") else f"{dot}{last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """How archives are looked into: where they come from, who is told, where they are kept."""

    sources: SourceChain
    advance: Callable[[int], None] = lambda _: None
    """Told of bytes as they come; a negative number takes back what has to come again."""
    fetched: Callable[[int], None] = lambda _: None
    """Told of bytes that a source sent."""
    keep_at: Path | None = None
    """Where the archive is kept, or was; None where it is only read."""
    threads: int = 1
    """Threads that one archive's decompression may use."""

    def facts(self, wanted: Wanted) -> Facts:
        """Return an archive's facts, once hash and size were found to be those it must have.

        One pass is enough for nearly all; where a file's headers came after the tables they lead
        to, the archive is read again with those held. Raises what `read` raises.
        """
        is_wheel = wanted.name.endswith(".whl")
        late = LateTables()

        def read(reader: ArchiveReader) -> Facts:
            return gather(reader, is_wheel=is_wheel, late=late)

        facts, known, passes = self.read(wanted, read), 0, 1
        while known < len(late) and passes < _PASSES:
            _log.info("%s: read again for tables that had passed", wanted.name)
            known, passes = len(late), passes + 1
            facts = self.read(wanted, read)
        return facts

    def members(
        self, wanted: Wanted, pick: Callable[[str], Callable[[Iterator[bytes]], _Found] | None]
    ) -> dict[str, _Found]:
        """Return what was made of the files picked by their names, by name, from proved bytes.

        `pick` gives what takes a file's content, or None. What takes it must return what is wrong
        with it and not raise: only afterwards the archive is known to be the right one. Raises
        what `read` raises.
        """

        def read(reader: ArchiveReader) -> dict[str, _Found]:
            found: dict[int, tuple[str, _Found]] = {}
            for position, (member, content) in enumerate(reader):
                take = pick(member.name) if member.kind == "file" else None
                if take is not None:
                    found[position] = member.name, take(content)
            # What a zip's directory says to be a link was none of the files meant.
            for position, member in reader.corrections.items():
                if member.kind != "file":
                    found.pop(position, None)
            return dict(found.values())

        return self.read(wanted, read)

    def read(self, wanted: Wanted, use: Callable[[ArchiveReader], _Found]) -> _Found:
        """Return what `use` makes of an archive, once hash and size are those it must have.

        `use` has to read to the end, and may be called again. Raises `SourceError`,
        `ArchiveMismatchError` and `InvalidArchiveError` after every source was tried, and
        `WriteError` where it cannot be kept.
        """
        kept = self._kept(wanted, use)
        if kept is not None:
            return kept

        def consume(place: str, stream: Stream) -> _Found:
            for _ in range(_RESTARTS):
                with contextlib.suppress(CannotResumeError):
                    return self._fetched(wanted, place, stream, use)
                _log.info("%s: begun again", place)
            return self._fetched(wanted, place, stream, use)

        return self.sources.consume(wanted.paths, consume, size=wanted.size)

    def _kept(self, wanted: Wanted, use: Callable[[ArchiveReader], _Found]) -> _Found | None:
        """Use the archive that is kept; return None where none is, or other bytes are."""
        if self.keep_at is None or not self.keep_at.exists():
            return None
        try:
            return self._once(wanted, str(self.keep_at), _stream_of(self.keep_at), use)
        except (ArchiveMismatchError, SourceError) as error:
            _log.warning("fetching again what was kept: %s", error)
            with contextlib.suppress(OSError):
                self.keep_at.unlink()
            return None

    def _fetched(
        self, wanted: Wanted, place: str, stream: Stream, use: Callable[[ArchiveReader], _Found]
    ) -> _Found:
        """Examine what a source streams; on the way it is kept where that is asked for."""

        def counted(start: int) -> Iterator[bytes]:
            for chunk in stream(start):
                self.fetched(len(chunk))
                yield chunk

        if self.keep_at is None:
            return self._once(wanted, place, counted, use)
        with _Partial(self.keep_at) as partial:
            if partial.is_done:
                # Another run has brought it while this one waited.
                return self._once(wanted, str(self.keep_at), _stream_of(self.keep_at), use)
            resumed = partial.size
            through = partial.through(counted, wanted.size)
            try:
                found = self._once(wanted, place, through, use)
            except (ArchiveMismatchError, InvalidArchiveError, CannotResumeError):
                partial.forget()
                if not resumed:
                    raise
                # What an earlier run left may be what was wrong.
                found = self._once(wanted, place, through, use)
            partial.complete()
        return found

    def _once(
        self, wanted: Wanted, place: str, stream: Stream, use: Callable[[ArchiveReader], _Found]
    ) -> _Found:
        """Read an archive once, from its first byte, and prove it."""
        proof = _Proof(wanted, place)
        came = 0

        def chunks() -> Iterator[bytes]:
            nonlocal came
            for chunk in stream(0):
                proof.update(chunk)
                came += len(chunk)
                self.advance(len(chunk))
                yield chunk

        passing = chunks()
        try:
            try:
                reader = open_archive(wanted.name, passing, size=wanted.size, jobs=self.threads)
                found = use(reader)
            except InvalidArchiveError as error:
                # Wrong bytes are not understood either; which it is, only the hash can tell.
                if wanted.sha256 is not None:
                    for _ in passing:
                        if came > _DRAIN_LIMIT:
                            break
                    proof.check()
                raise InvalidArchiveError(place, error.reason) from error
            proof.check()
        except BaseException:
            self.advance(-came)
            raise
        return found


class _Proof:
    """Size and SHA-256 of bytes on their way, against what the manifest states."""

    def __init__(self, wanted: Wanted, place: str) -> None:
        self._wanted = wanted
        self._place = place
        self._digest = hashlib.sha256()
        self._count = 0

    def update(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self._count += len(chunk)
        size = self._wanted.size
        if size is not None and self._count > size:
            raise ArchiveMismatchError(self._place, "size", f"{size:,}", "larger")

    def check(self) -> None:
        """Raise `ArchiveMismatchError` where the bytes are not the ones stated."""
        size, sha256 = self._wanted.size, self._wanted.sha256
        if size is not None and self._count != size:
            raise ArchiveMismatchError(self._place, "size", f"{size:,}", f"{self._count:,} bytes")
        found = self._digest.hexdigest()
        if sha256 is not None and found != sha256:
            raise ArchiveMismatchError(self._place, "SHA-256", sha256, found)


class _Partial:
    """An archive that is being kept: written beside its final name, renamed once proved."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = _part_of(path)
        self.is_done = False
        """Whether another run finished it while this one waited for its turn."""

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                self._file: BinaryIO = self._part.open("a+b")
                _lock(self._file)
                if self._is_still_there():
                    return self
                # Its name was taken away meanwhile: another run has renamed it.
                self._file.close()
        except OSError as error:
            raise WriteError(self._part, error) from error

    def _is_still_there(self) -> bool:
        self.is_done = self._path.exists()
        if self.is_done:
            return True
        try:
            return self._part.stat().st_ino == os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False

    def __exit__(self, *_: object) -> None:
        # What is in the buffer may not fit on the disk; what is there is enough to go on from.
        with contextlib.suppress(OSError):
            self._file.close()

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def through(self, stream: Stream, size: int | None) -> Stream:
        """Return what yields the part that is there already, then the rest, writing that down."""

        def chunks(_: int) -> Iterator[bytes]:
            start = 0
            self._file.seek(0)
            while chunk := self._file.read(_CHUNK):
                start += len(chunk)
                yield chunk
            if start == size:
                return
            for chunk in stream(start):
                try:
                    self._file.write(chunk)
                    self._file.flush()
                except OSError as error:
                    raise WriteError(self._part, error) from error
                yield chunk

        return chunks

    def forget(self) -> None:
        self._file.truncate(0)

    def complete(self) -> None:
        try:
            os.fsync(self._file.fileno())
            if os.name == "nt":
                # Windows renames no open file; elsewhere closing it would let another run in.
                self._file.close()
            self._part.replace(self._path)
        except OSError as error:
            raise WriteError(self._path, error) from error


def kept_bytes(keep_at: Path) -> int:
    """Return how much of an archive is kept, or was brought by a run that did not end well."""
    for path in (keep_at, _part_of(keep_at)):
        with contextlib.suppress(OSError):
            return path.stat().st_size
    return 0


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _lock(file: BinaryIO) -> None:
    """Wait until no other run writes the same archive."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    except (ImportError, OSError) as error:
        _log.warning("going on without a lock on %s: %s", file.name, error)


def _stream_of(path: Path) -> Stream:
    """Return what streams a file that is here."""
    return lambda start: FolderSource(path.parent).stream(path.name, start)
