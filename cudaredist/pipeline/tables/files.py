"""The one file of a release that a table is made from: found, proved, read, remembered.

Which archive has it is told by the cache where it knows the archive, and else by reading the
smallest one first. Whatever archive is read, the files of both tables are taken out of it, so that
the second table need not read it again.
"""

import hashlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from cudaredist.errors import (
    ContentError,
    CudaRedistError,
    IncompleteError,
    StoppedError,
    TooLargeError,
)
from cudaredist.manifests import Archive
from cudaredist.pipeline.features.plan import Subject, known_facts
from cudaredist.pipeline.features.process import FeatureRun, Job
from cudaredist.tables.gpus import PTXAS_PATHS, Capability, PtxasScan
from cudaredist.tables.nvcc_compat import HEADER_PATH

_Content = TypeVar("_Content")
Families: TypeAlias = Mapping[Capability, str]

_HEADER_LIMIT = 4 << 20
_WHEEL_TOP = re.compile(r"(?:nvidia/)?[^/]+/")
_ANY_TOP = re.compile(r"[^/]+/")


@dataclass(frozen=True, slots=True)
class FoundFile(Generic[_Content]):
    """A file of a proved archive, and what was read of it."""

    path: str
    """Below the archive's top directory."""
    sha256: str
    content: _Content


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[_Content]):
    """A file that a table is made from, and how it is read."""

    cache_kind: str
    packages: tuple[str, ...]
    """In whose archives it may be."""
    paths: tuple[str, ...]
    """How its path ends, one for each system."""
    take: Callable[[Iterator[bytes]], tuple[str, _Content | CudaRedistError]]
    """Makes hash and content of its bytes; what is wrong with them is returned."""
    to_bytes: Callable[[_Content], bytes]
    from_bytes: Callable[[bytes], _Content]

    def is_at(self, name: str) -> bool:
        """Say whether a member of an archive is the file."""
        return name.endswith(tuple(f"/{path}" for path in self.paths))


@dataclass(frozen=True, slots=True, kw_only=True)
class Find(Generic[_Content]):
    """Where a release's file was found."""

    archive: Archive
    file: FoundFile[_Content]
    is_read: bool
    """Whether an archive was read for it just now."""


def _take_header(content: Iterator[bytes]) -> tuple[str, bytes | CudaRedistError]:
    digest, kept = hashlib.sha256(), bytearray()
    for chunk in content:
        digest.update(chunk)
        kept += chunk[: _HEADER_LIMIT + 1 - len(kept)]
    if len(kept) > _HEADER_LIMIT:
        return digest.hexdigest(), TooLargeError(HEADER_PATH, _HEADER_LIMIT)
    return digest.hexdigest(), bytes(kept)


def _take_ptxas(content: Iterator[bytes]) -> tuple[str, Families | CudaRedistError]:
    digest, scan = hashlib.sha256(), PtxasScan()
    for chunk in content:
        digest.update(chunk)
        scan.feed(chunk)
    try:
        return digest.hexdigest(), scan.finish()
    except CudaRedistError as error:
        return digest.hexdigest(), error


def _families_to_bytes(families: Families) -> bytes:
    return json.dumps({str(name): family for name, family in families.items()}).encode()


def _families_from_bytes(data: bytes) -> Families:
    return {Capability.parse(name): family for name, family in json.loads(data).items()}


HEADER: Kind[bytes] = Kind(
    cache_kind="host-config/1",
    packages=("cuda_crt", "cuda_nvcc"),
    paths=(HEADER_PATH,),
    take=_take_header,
    to_bytes=bytes,
    from_bytes=bytes,
)
PTXAS: Kind[Families] = Kind(
    cache_kind="ptxas/1",
    packages=("cuda_nvcc",),
    paths=PTXAS_PATHS,
    take=_take_ptxas,
    to_bytes=_families_to_bytes,
    from_bytes=_families_from_bytes,
)


@dataclass(kw_only=True)
class Finder:
    """Finds the files of releases, for all threads of a run."""

    run: FeatureRun
    threads: int = 1
    """Threads that one archive's decompression may use."""
    archives_read: int = 0
    fetched: int = 0
    """Bytes that came from sources."""
    _locks: defaultdict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def find(
        self, subject: Subject, kind: Kind[_Content], held: str | None
    ) -> Find[_Content] | None:
        """Return a release's file; None where the table has it from an archive that is still named.

        `held` is the hash of the archive that the table has it from. Raises `CudaRedistError` where
        no archive has it, or one that may have it cannot be read.
        """
        candidates = _candidates(subject, kind)
        of_table = [archive for archive in candidates if archive.sha256 == held]
        others = [archive for archive in candidates if archive.sha256 != held]
        if of_table and _recalled(self.run, kind, of_table[0]) is None:
            return None
        for archive in (*of_table, *others):
            found, is_read = self._look(subject, kind, archive)
            if found is not None:
                return Find(archive=archive, file=found, is_read=is_read)
        names, packages = " or ".join(kind.paths), " and ".join(kind.packages)
        raise ContentError(f"none of the {len(candidates)} archives of {packages} has {names}")

    def _look(
        self, subject: Subject, kind: Kind[_Content], archive: Archive
    ) -> tuple[FoundFile[_Content] | None, bool]:
        """Return an archive's file, None where it has none, and whether it was read now."""
        with self._mutex:
            lock = self._locks[str(archive.sha256)]
        with lock:
            known = _recalled(self.run, kind, archive)
            if known is not None:
                return next(iter(known), None), False
            if self.run.stop.is_set():
                raise StoppedError
            return self._read(subject, kind, archive), True

    def _read(
        self, subject: Subject, kind: Kind[_Content], archive: Archive
    ) -> FoundFile[_Content] | None:
        """Read an archive, remember what is in it for either table, and return this one's file."""
        job = Job(wanted=subject.wanted(archive), bases=subject.target.bases, users=[])
        number = self.run.progress.begin(job.wanted.name, job.wanted.size)
        try:
            advance = partial(self.run.progress.advance, number)
            examination = self.run.examination(job, advance)
            examination = replace(examination, threads=self.threads, fetched=self._count_fetched)
            members = examination.members(job.wanted, _taker)
        finally:
            self.run.progress.end(number)
        with self._mutex:
            self.archives_read += 1
        for each in _KINDS:
            _remember(self.run, each, archive, _choose(each, archive, members))
        found = _choose(kind, archive, members)
        if found is not None and isinstance(found.content, CudaRedistError):
            raise found.content
        return found

    def _count_fetched(self, size: int) -> None:
        with self._mutex:
            self.fetched += size


_KINDS: tuple[Kind[Any], ...] = (HEADER, PTXAS)


def _taker(name: str) -> Callable[[Iterator[bytes]], tuple[str, Any]] | None:
    return next((kind.take for kind in _KINDS if kind.is_at(name)), None)


def _choose(
    kind: Kind[_Content], archive: Archive, members: Mapping[str, tuple[str, Any]]
) -> FoundFile[_Content] | None:
    """Return the file of a kind among the members that were taken, the one nearest to the top."""
    names = sorted(filter(kind.is_at, members), key=lambda name: (len(name), name))
    if not names:
        return None
    top = _WHEEL_TOP if archive.relative_path.endswith(".whl") else _ANY_TOP
    path = names[0].removeprefix("./")
    match = top.match(path)
    path = path[match.end() :] if match and path != kind.paths[0] else path
    readable = path.encode("ascii", "backslashreplace").decode("ascii")
    sha256, content = members[names[0]]
    return FoundFile(path=readable, sha256=sha256, content=content)


def _candidates(subject: Subject, kind: Kind[Any]) -> list[Archive]:
    """Return the archives that may have the file, the smallest first.

    Raises `IncompleteError` where the manifest names none whose bytes can be proved.
    """
    named = [a for a in subject.manifest.archives if a.package in kind.packages]
    proved = {archive.sha256: archive for archive in named if archive.sha256 is not None}
    if not proved:
        what = "states no hash of any" if named else "names no"
        raise IncompleteError(f"the manifest {what} archive of {' or '.join(kind.packages)}")
    unknown = float("inf")
    return sorted(
        proved.values(),
        key=lambda archive: (
            unknown if archive.size is None else archive.size,
            archive.relative_path,
        ),
    )


def _recalled(
    run: FeatureRun, kind: Kind[_Content], archive: Archive
) -> tuple[FoundFile[_Content], ...] | None:
    """Return the file that the cache knows of; nothing where it knows of none, None: not known."""
    sha256 = str(archive.sha256)
    kept = run.cache.get(kind.cache_kind, sha256)
    if kept is not None:
        head, _, content = kept.partition(b"\n")
        about = json.loads(head)
        if about is None:
            return ()
        return (FoundFile(about["path"], about["file_sha256"], kind.from_bytes(content)),)
    facts = known_facts(run.cache, sha256)
    if facts is None:
        return None
    has_it = any(entry.kind == "file" and kind.is_at(entry.name) for entry in facts.members)
    return None if has_it else ()


def _remember(
    run: FeatureRun, kind: Kind[_Content], archive: Archive, found: FoundFile[_Content] | None
) -> None:
    """Keep what an archive has; a file that was not understood is read again next time."""
    if found is None:
        run.cache.put(kind.cache_kind, str(archive.sha256), b"null\n")
    elif not isinstance(found.content, CudaRedistError):
        about = json.dumps({"path": found.path, "file_sha256": found.sha256}).encode()
        data = b"%b\n%b" % (about, kind.to_bytes(found.content))
        run.cache.put(kind.cache_kind, str(archive.sha256), data)
