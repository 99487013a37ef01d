"""The interface of archive readers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

MemberKind: TypeAlias = Literal["file", "directory", "symlink", "hardlink", "other"]
"""`other` means devices, pipes and other members without content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits against hostile archives, far above those of real archives."""

    ratio: int = 400
    """Unpacked bytes per packed byte, above `floor`."""
    floor: int = 64 << 20
    """Unpacked bytes that even the smallest archive may have."""
    members: int = 1_000_000
    parts: int = 100_000
    """Compressed streams of a file, and blocks of xz. Even empty ones take time."""
    header: int = 1 << 20
    """Bytes of one member's headers (long names, pax records)."""
    name: int = 4096
    """Bytes of a member's name or link target."""
    names: int = 128 << 20
    """Bytes of all names and link targets together. Callers usually keep them in memory."""
    dictionary: int = 512 << 20
    """Bytes of the dictionary of xz or zstd. See `memory` for the shared part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of an archive.

    Its name is the original one, safe or not.
    """

    name: str
    kind: MemberKind
    mode: int
    """Permission bits with set-id and sticky, 0 if the format has none."""
    size: int
    """Bytes of content. 0 if the member is not a file or only the archive's end states its size."""
    target: str | None = None
    """The original target of a link: relative to a symlink's folder, or a hard link's member."""


class ArchiveReader(Protocol):
    """One pass over an archive's members and their contents.

    A member's content is valid until the next member is requested. Iterating raises
    `InvalidArchiveError` if the archive violates its format or exceeds a limit. If iterating ends
    without an error, all bytes of the archive were read and are consistent.
    """

    def __iter__(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        """Yield each member with the chunks of its content.

        Unread content is skipped.
        """

    @property
    def corrections(self) -> Mapping[int, Member]:
        """Return more complete members from the archive's end, by position.

        They are known after iterating: a zip's directory, with modes and links, is at its end.
        """

    def close(self) -> None:
        """End the pass, and release its threads and shared memory.

        If an archive is not read to its end, others may have to wait until it is closed.
        """
