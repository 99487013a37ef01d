"""The lock of a mirror: size and hash of each file that the mirror serves.

The other files of a mirror are generated from it.
"""

from typing import Annotated, Self

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from pydantic import Field, model_validator

from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.field_types import Count, HexSha256, Label
from cudaredist.formats.names import RedistName
from cudaredist.primitives import NVIDIA_CHANNEL_PATTERN, PLAIN_PATH_PATTERN
from cudaredist.wheels import SIMPLE
from cudaredist.words import shown

MIRROR_LOCK = "mirror.json"
"""The name of the lock in a mirror."""
METADATA_SUFFIX = ".metadata"
"""What the name of a wheel's metadata adds to that of the wheel."""

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

    @model_validator(mode="after")
    def _check_wheels(self) -> Self:
        """Refuse paths in the package index that are not those of wheels or their metadata."""
        for path in self.mirrored:
            folder, _, below = path.partition("/")
            if folder == SIMPLE and not _is_wheel_path(below):
                raise ValueError(f"{shown(path)} is not the path of a wheel")
        return self


def _is_wheel_path(path: str) -> bool:
    """Check if a path below the package index is that of a wheel, or of its metadata."""
    project, _, name = path.partition("/")
    try:
        parse_wheel_filename(name.removesuffix(METADATA_SUFFIX))
    except InvalidWheelFilename:
        return False
    return bool(project) and "/" not in name
