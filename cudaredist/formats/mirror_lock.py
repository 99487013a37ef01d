"""The lock of a mirror: size and hash of each file that the mirror serves.

The other files of a mirror are generated from it.
"""

from typing import Annotated

from pydantic import Field

from cudaredist.formats.base import (
    Count,
    HexSha256,
    Label,
    OwnFile,
    OwnModel,
    RedistName,
    optional,
)
from cudaredist.primitives import NVIDIA_CHANNEL_PATTERN, PLAIN_PATH_PATTERN

MIRROR_LOCK = "mirror.json"
"""The name of the lock in a mirror."""

MirrorPath = Annotated[str, Field(pattern=PLAIN_PATH_PATTERN, description="Path below the mirror")]


class ListedRelease(OwnModel):
    """A release in a channel of NVIDIA's second server."""

    redist: RedistName
    release: Label
    nvidia_channel: Annotated[str, Field(pattern=NVIDIA_CHANNEL_PATTERN)]


class MirrorFile(OwnModel):
    """One manifest, archive or wheel of a mirror, or a wheel's metadata."""

    size: Count
    sha256: HexSha256
    mtime_ns: int | None = optional("Time of the last modification; absent: not recorded")
    requires_python: str | None = optional("Python versions of a wheel; absent: every version")
    lists: ListedRelease | None = optional(
        "Release of a manifest in `releases.json`; absent: not in it"
    )
    yanked: bool = optional("Whether the index marks the wheel as yanked", default=False)


class MirrorLock(OwnFile):
    """`mirror.json`: size and hash of each file that a mirror serves.

    Index pages and `SHA256SUMS` are generated from it. If a file of the mirror is not in it, no
    page lists the file.
    """

    mirrored: dict[MirrorPath, MirrorFile] = Field(
        description="Manifests, archives, wheels and their metadata by path below the mirror"
    )
