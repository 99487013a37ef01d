"""What every source offers, and the values it answers with."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cudaredist.primitives import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How hard and how long to try; the same for every source of a run."""

    timeout: float = 30.0
    """Seconds that one attempt at a listing or a manifest may take altogether, and that the next
    bytes of an archive may be waited for."""

    retries: int = 3
    """Further attempts after a failure that may pass."""

    longest_wait: float = 120.0
    """Seconds that all pauses between the attempts at one file may add up to."""

    allow_http: bool = False
    """Whether plain http may go to machines other than this one."""

    offline: bool = False
    """Whether sources that need the network are refused."""

    stop: threading.Event = field(default_factory=threading.Event)
    """Set to end waiting and reading soon, in every thread."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The manifests that one source has in one or more folders of a redistributable."""

    source: str
    """The source that answered, fit for messages."""
    folders: dict[Version, str]
    """For each label the folder under the source's root in which its manifest lies."""
    sources: dict[Version, str]
    """For each label the source that lists it."""
    is_complete: bool
    """Whether every source was heard about the labels wanted, so that a missing one is gone."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A file's bytes, or word that the bytes held are still the ones served."""

    source: str
    """The source that answered, fit for messages."""
    data: bytes | None
    """The bytes; None where those that came with the ETag sent are still served."""
    etag: str | None = None
    """What the server gave to ask later whether it still serves exactly these bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes of a file, and how long the whole of it is."""

    data: bytes
    start: int
    total: int
    etag: str | None = None
    """What stands for exactly this file, where the server gives something."""


class Source(Protocol):
    """One place that manifests come from."""

    @property
    def name(self) -> str:
        """The address or folder, without credentials."""

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return the labels of the manifests in a folder under the root.

        Raises `NotAtSourceError` where there is no such folder, `EmptyIndexError` where a listing
        is there but names no manifest, and other `SourceError`s.
        """

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:
        """Return the bytes of a file under the root, or word that `etag` still stands for it.

        Raises `TooLargeError` beyond `limit` bytes, and `SourceError`.
        """

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a file under the root from byte `start` on, in chunks as they come.

        A connection that breaks is taken up again where it broke. Raises `SourceError`, and
        `CannotResumeError` where what was yielded so far cannot be continued: the file changed, or
        the source cannot begin in the middle. `size`, where given, is what the file must have;
        a source that knows of another raises `ArchiveMismatchError` before the first byte.
        """

    def part(self, path: str, start: int | None, length: int, etag: str | None = None) -> Part:
        """Return `length` bytes of a file from `start` on; the last ones where that is None.

        Raises `SourceError`, also where the source serves files only as a whole, or where `etag`
        no longer stands for the file.
        """

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:
        """Return the sizes of the files that the source lists with one, by path.

        Raises `SourceError`.
        """

    def place_of(self, path: str) -> str:
        """Return the address or path of a file under the root, without credentials."""

    def close(self) -> None:
        """Give back connections."""


def redacted(location: str) -> str:
    """Return an address, however malformed, without user name and password."""
    return re.sub(r"^(\s*[A-Za-z][A-Za-z0-9+.-]*:/*).*@", r"\1", location, flags=re.DOTALL)


def without_credentials(location: str) -> str:
    """Return an address that was found usable, without user name and password."""
    return re.sub(r"^\s*([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@", r"\1", location)
