"""The report of versions."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel, optional
from cudaredist.formats.report import ErrorReport, Report

LineStatus = Literal["current", "stale", "new", "not-held", "local-only", "unknown"]


class LineReport(OwnModel):
    """A release line of a redistributable, compared to upstream."""

    redist: str
    line: str
    held: str | None = Field(description="Newest local label. Null: none")
    upstream: str | None = Field(description="Newest label upstream. Null: none or unknown")
    missing: tuple[str, ...] = Field(
        description="Labels upstream that are newer than all local ones"
    )
    status: LineStatus
    early_access: tuple[str, ...] = optional("Labels of early-access releases", ())

    @property
    def is_behind(self) -> bool:
        """Whether upstream has a newer release or a new line."""
        return self.status in {"stale", "new"}


class VersionsReport(Report):
    """The result of versions."""

    command: Literal["versions"] = "versions"
    lines: tuple[LineReport, ...]
    releases: dict[str, tuple[str, ...]] = Field(
        description="Releases upstream (offline: local releases), oldest first. Absent: unknown"
    )
    dates: dict[str, dict[str, str]] = Field(
        default={}, description="Day of local releases, by redistributable and release"
    )
    channels: dict[str, dict[str, tuple[str, ...]]] = Field(
        default={},
        description="Releases of each channel of NVIDIA's second server, by redistributable",
    )
    moved: dict[str, dict[str, str]] = Field(
        default={}, description="Local releases that left their channel, by redistributable"
    )
    absent: tuple[str, ...] = Field(default=(), description="Redistributables without a source")
    hint: str | None = Field(
        default=None, description="Why there are no releases, with a command. Null: there are some"
    )
    errors: tuple[ErrorReport, ...] = ()
