"""Models of the lock."""

from typing import Annotated

from pydantic import Field

from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.field_types import HexSha256, Label
from cudaredist.formats.names import RedistName
from cudaredist.primitives import ADDRESS_PATTERN, NVIDIA_CHANNEL_PATTERN, PREVIEW


class LockEntry(OwnModel):
    """The record of a downloaded manifest."""

    sha256: HexSha256 = Field(description="SHA-256 of the published manifest")
    size: Annotated[int, Field(gt=0)] = Field(description="Size of the published manifest in bytes")
    gone: bool = optional("Upstream no longer lists the label. Absent: it does", default=False)
    as_read: bool = optional(
        "Recorded from a copy that was never compared with NVIDIA's server. Absent: it was",
        default=False,
    )
    nvidia_channel: Annotated[str, Field(pattern=NVIDIA_CHANNEL_PATTERN)] | None = optional(
        "Channel of NVIDIA's second server with the release. Absent: not from its releases.json"
    )
    address: Annotated[str, Field(pattern=ADDRESS_PATTERN)] | None = optional(
        "Path of the manifest below the root of NVIDIA's second server. Absent: the usual path"
    )

    @property
    def is_preview(self) -> bool | None:
        """Whether the release is early access by its channel, None without a channel."""
        return None if self.nvidia_channel is None else self.nvidia_channel == PREVIEW


class Lock(OwnFile):
    """`lock.json`: hashes of downloaded manifests, to detect changes."""

    redists: dict[RedistName, dict[Label, LockEntry]] = Field(
        description="By name of the redistributable, then by label"
    )
