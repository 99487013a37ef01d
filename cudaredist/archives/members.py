"""What every reader of archives offers: members in the order in which they lie in the stream."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

MemberKind: TypeAlias = Literal["file", "directory", "symlink", "hardlink", "other"]
"""`other` stands for devices, pipes and all else that has no content of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that no honest archive comes near; each one is there against a hostile archive."""

    ratio: int = 400
    """Unpacked bytes per packed byte, above `floor`."""
    floor: int = 64 << 20
    """Unpacked bytes that any archive may have, however small it is."""
    members: int = 1_000_000
    header: int = 1 << 20
    """Bytes that one member's headers may take (long names, pax records)."""
    name: int = 4096
    """Bytes of a member's name or link target."""
    names: int = 128 << 20
    """Bytes of all names and link targets together, which a reader's caller usually keeps."""
    dictionary: int = 512 << 20
    """Bytes of the dictionary that xz or zstd may require; see `memory` for what is shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of an archive; its name is as it stands there, safe or not."""

    name: str
    kind: MemberKind
    mode: int
    """Permission bits with set-id and sticky; 0 where the format states none."""
    size: int
    """Bytes of content; 0 for all but files, and where only the archive's end states it."""
    target: str | None = None
    """Where a link leads, as it stands there: from a symlink's folder, or a hard link's name."""


class ArchiveReader(Protocol):
    """One pass over an archive: members with their content, each valid until the next is asked for.

    Iterating raises `InvalidArchiveError` at whatever breaks a rule of the format or a limit; only
    when it ends without an error were all bytes of the archive read and consistent.
    """

    def __iter__(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        """Yield each member with the chunks of its content; unread content is passed over."""

    @property
    def corrections(self) -> Mapping[int, Member]:
        """Return, after iterating, members that the archive's end described better, by position.

        A zip's directory, with modes and links, stands behind all content.
        """

    def close(self) -> None:
        """End the pass, and give back its threads and shared memory.

        Until then, an archive that was not read to its end may keep others waiting.
        """
