"""The interface of archive readers, and their limits."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, NoReturn, TypeAlias

from cudaredist.errors import InvalidArchiveError
from cudaredist.words import shown

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
    streams: int = 100_000
    """Compressed streams of a file. Even empty ones take time."""
    header: int = 1 << 20
    """Bytes of one member's headers (long names, pax records)."""
    name: int = 4096
    """Bytes of a member's name or link target."""
    names: int = 128 << 20
    """Bytes of all names and link targets together. Callers usually keep them in memory."""
    dictionary: int = 64 << 20
    """Bytes of the dictionary of xz or zstd. `xz -9` and `zstd --ultra -20` require this size."""
    directory: int = 16 << 20
    """Bytes of a zip's directory. In memory, it takes up to ten times as many."""


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
    """Bytes of content, 0 if the member is not a file."""
    target: str | None = None
    """The original target of a link: relative to a symlink's folder, or a hard link's member."""


Members: TypeAlias = Iterator[tuple[Member, Iterator[bytes]]]
"""One pass over an archive's members and the chunks of their contents.

A member's content is valid until the next member is requested, and unread content is skipped.
Iterating raises `InvalidArchiveError` if the archive violates its format or exceeds a limit. If it
ends without an error, all bytes of all members were read and are consistent.
"""


class NameLimits:
    """Counts an archive's members and names, and enforces the limits."""

    def __init__(self, archive: str, limits: Limits) -> None:
        self._archive = archive
        self._limits = limits
        self._members = 0
        self._bytes = 0

    def count_member(self, name: bytes) -> None:
        """Count a member and its name."""
        self._members += 1
        if self._members > self._limits.members:
            self._refuse(f"has more than {self._limits.members:,} members")
        self.count_name(name)

    def count_name(self, name: bytes) -> None:
        """Count a name or link target. Callers keep all of them in memory."""
        if len(name) > self._limits.name:
            self._refuse(f"has a name of {len(name):,} bytes: {shown(text_of(name))}")
        self._bytes += len(name)
        if self._bytes > self._limits.names:
            self._refuse(f"its names take more than {self._limits.names:,} bytes")

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidArchiveError(self._archive, reason)


def text_of(name: bytes) -> str:
    """Decode UTF-8, with lone surrogates for invalid bytes.

    The standard library's tarfile does the same.
    """
    return name.decode("utf-8", "surrogateescape")


def file_size(file: BinaryIO) -> int:
    """Return the size of an open file, and go to its beginning."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size
