"""The report of download-manifests."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel, optional
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.outcomes import ManifestOutcome
from cudaredist.formats.report import Report


class RedistOutcome(OwnModel):
    """The outcome for a redistributable: listed, absent or failed."""

    redist: str
    status: Literal["listed", "absent", "failed"]
    source: str | None = None
    newest: str | None = None
    listed: int = 0
    gone: tuple[str, ...] = ()
    channels: dict[str, tuple[str, ...]] = optional(
        "Releases of each channel of NVIDIA's second server. Absent: none, or not asked", {}
    )
    moved: tuple[str, ...] = optional("Local releases that left their channel", ())
    error: ErrorReport | None = None


class DownloadReport(Report):
    """The result of download-manifests."""

    command: Literal["download-manifests"] = "download-manifests"
    redists: tuple[RedistOutcome, ...]
    manifests: tuple[ManifestOutcome, ...]
    is_lock_changed: bool = Field(
        description="Whether the lock changed, or would change if files were written"
    )
    errors: tuple[ErrorReport, ...] = Field(description="Failures that concern no single item")
