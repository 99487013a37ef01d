"""The reports of process-manifests."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.outcomes import FeatureOutcome
from cudaredist.formats.report import ArchiveName, Report

ArchiveStatus = Literal["examined", "known", "would-examine", "failed", "skipped"]


class ArchiveOutcome(ArchiveName):
    """The outcome for an archive of a manifest."""

    size: int | None = Field(description="Bytes. Null: not in the manifest")
    sha256: str | None
    status: ArchiveStatus = Field(
        description="examined: inspected in this run; known: from the cache or the feature file"
    )
    reason: str | None = Field(default=None, description="The reason for skipping it")
    error: ErrorReport | None = None


class ProcessReport(Report):
    """The result of process-manifests."""

    command: Literal["process-manifests"] = "process-manifests"
    manifests: tuple[FeatureOutcome, ...]
    archives: tuple[ArchiveOutcome, ...]
    fetched_bytes: int = Field(description="Bytes of archives from a source")
