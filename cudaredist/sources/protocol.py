"""The interface of every source and the values it returns."""

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from cudaredist.errors import CudaRedistError, UsageError
from cudaredist.hints import redacted
from cudaredist.primitives import Version, label_of_manifest_name
from cudaredist.words import shown

if TYPE_CHECKING:
    from cudaredist.sources.releases import NvidiaChannelRelease

_log = logging.getLogger(__name__)

_is_address = re.compile(r"\s*([a-z][a-z0-9+.-]+://|(https?|file):)", re.IGNORECASE).match

WHEELS = "wheels:"
"""The location of NVIDIA's wheels in the package indexes of pip."""
MAX_ARCHIVE = 16 << 30
"""The default limit of bytes of an archive of unknown size. NVIDIA's largest have about 7 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of time and retries for a run. The defaults are those of `cli/options.py`."""

    timeout: float = 30.0
    """Maximum seconds of one attempt at a listing or a manifest, and of the wait for the next bytes
    of an archive."""

    retries: int = 3
    """Further attempts after a transient failure."""

    longest_wait: float = 120.0
    """Maximum seconds of all pauses between the attempts at one file."""

    allow_http: bool = False
    """Whether plain http to other machines is allowed."""

    offline: bool = False
    """Whether sources that require the network are refused."""

    stop: threading.Event = field(default_factory=threading.Event)
    """Set to stop waiting and reading in every thread."""


class NvidiaChannelQuery(NamedTuple):
    """The releases of NVIDIA's second server to list."""

    product: str
    nvidia_channels: frozenset[str]
    """The selected ones."""
    preview_folder: str
    """The folder with early-access releases of a server without `releases.json`."""
    recorded: Mapping[Version, str]
    """The NVIDIA channel of each local release from `releases.json`. They are always listed."""
    is_known: bool
    """Whether to request `releases.json` without a look at `channels.json`."""


class Listing(NamedTuple):
    """The manifests of a redistributable in folders and NVIDIA channels."""

    source: str
    """The name of the first source that answered, for messages."""
    folders: dict[Version, str]
    """The folder of each listed manifest, relative to the source's root."""
    sources: dict[Version, str]
    """The source that lists each label."""
    is_complete: bool
    """Whether no source failed. If so, a requested label that is missing exists at no source."""
    releases: Mapping[Version, "NvidiaChannelRelease"] = {}
    """The releases of selected NVIDIA channels, also those that are in `folders`."""
    nvidia_channels: Mapping[str, tuple[str, ...]] = {}
    """The labels of all NVIDIA channels, selected or not."""
    previews: frozenset[Version] = frozenset()
    """The labels that are early access."""
    failures: tuple[CudaRedistError, ...] = ()
    """The failures of NVIDIA's second server. What the others listed is kept."""

    @property
    def labels(self) -> tuple[Version, ...]:
        """All listed labels, in ascending order."""
        return tuple(sorted({*self.folders, *self.releases}))

    def is_preview(self, label: Version) -> bool:
        """Check if a listed release is early access."""
        return label in self.previews


class Delivery(NamedTuple):
    """The answer of a source to a request for a file."""

    source: str
    """The name of the source, for messages."""
    data: bytes | None
    """The bytes. None if the file still has the ETag of the request."""
    etag: str | None = None
    """The file's strong ETag, if the server sent one. A later request can use it."""
    is_generated: bool = False
    """Whether the source made the manifest from wheels. Then not every index has its date."""
    doubts: tuple[str, ...] = ()
    """Reasons why a generated manifest may have other wheels than the release."""


class Part(NamedTuple):
    """Some bytes of a file and its total size."""

    data: bytes
    start: int
    total: int
    etag: str | None = None
    """The file's strong ETag, if the server sent one."""


PartReader: TypeAlias = Callable[[int | None, int, str | None], Part]
"""Returns some bytes of a file: from an offset, or the last ones. The third value is the ETag."""


class SourceFile(NamedTuple):
    """A large file of a source."""

    place: str
    """The address or path, without credentials."""
    stream: Callable[[int], Iterator[bytes]]
    """Yields the file's bytes from an offset. Raises what `Source.stream` raises."""
    path: Path | None = None
    """The path of a local file that can be read in place."""
    part: PartReader | None = None
    """Reads some bytes of a remote file, if its source can do that."""


class Source(Protocol):
    """A source of manifests and archives."""

    name: str
    """The address or folder, without credentials."""

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return the labels of the manifests in a folder.

        Raises `NotAtSourceError` if the folder does not exist, `EmptyIndexError` if its listing
        contains no manifest, and other `SourceError`s.
        """

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:
        """Return a file, without its bytes if `etag` is valid.

        Raises `SourceError`, and `TooLargeError` if the file has more than `limit` bytes.
        """

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a file from byte `start` in chunks.

        If the connection breaks, the source resumes at the same byte. Raises `SourceError`, and
        `CannotResumeError` if resuming is impossible because the file changed or the source only
        serves whole files. If the source knows that the file does not have `size` bytes, it raises
        `ArchiveMismatchError` before the first byte.
        """

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:  # noqa: ARG002 - of some sources
        """Return the sizes of the files that the source lists.

        By default, none, because manifests state the sizes. Raises `SourceError`.
        """
        return {}

    def place_of(self, path: str) -> str:
        """Return a file's address or path, without credentials."""

    def local_path(self, path: str) -> Path | None:  # noqa: ARG002 - of some sources
        """Return the path of a file that can be read in place. By default, none."""
        return None

    def part_reader(self, path: str) -> PartReader | None:  # noqa: ARG002 - of some sources
        """Return a function to read some bytes of a remote file. By default, none."""
        return None

    def close(self) -> None:
        """Close connections."""


def check_locations(locations: Sequence[str]) -> None:
    """Refuse malformed addresses with passwords.

    They would be used as folders and shown in messages. If a password contains a space, the address
    was split in a list. Raises `UsageError`.
    """
    text = " ".join(locations)
    for location in locations:
        is_suspect = "@" in location and not _is_address(location) and redacted(text) != text
        if is_suspect and not os.path.lexists(location):
            hint = "use https://host/folder; write a space in a password as %20"
            raise UsageError(f"{redacted(text)} is neither an address nor a folder", hint=hint)


def without_credentials(location: str) -> str:
    """Return a valid address without user name and password."""
    return re.sub(r"^\s*([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@", r"\1", location)


def listed_label(name: str) -> Version | None:
    """Return the label of a listed manifest, or None for other names.

    Names with an invalid label, such as `redistrib_13.1.0-rc1.json`, are logged.
    """
    label = label_of_manifest_name(name)
    if label is None and name.startswith("redistrib_") and name.endswith(".json"):
        _log.info("%s is ignored, because its name has no valid label", shown(name))
    return label
