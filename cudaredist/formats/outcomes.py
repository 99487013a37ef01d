"""Outcomes for one manifest, for several reports."""

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import ErrorReport, ManifestStatus


class FeatureOutcome(OwnModel):
    """The outcome for a manifest's feature file."""

    redist: str
    release: str
    status: ManifestStatus
    archives: int = Field(default=0, description="Number of archives in the manifest")
    examined: int = Field(default=0, description="Number of archives in the feature file")
    failed: int = 0
    skipped: int = Field(default=0, description="Number of archives that the options exclude")
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None


class ManifestOutcome(OwnModel):
    """The outcome for a manifest."""

    redist: str
    release: str
    status: ManifestStatus
    source: str | None = Field(default=None, description="The source that answered. Null: none")
    size: int | None = None
    sha256: str | None = None
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None
