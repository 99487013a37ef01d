"""Outcomes for one manifest, for several reports."""

from pydantic import Field

from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.report import ReleaseName


class FeatureOutcome(ReleaseName):
    """The outcome for a manifest's feature file."""

    status: ManifestStatus
    archives: int = Field(default=0, description="Number of archives in the manifest")
    examined: int = Field(default=0, description="Number of archives in the feature file")
    failed: int = 0
    skipped: int = Field(default=0, description="Number of archives that the options exclude")
    notes: int | None = Field(
        default=None,
        description="Number of notes on unusual contents of its archives, such as links to "
        "nothing. Null: no file was read, because the feature file was complete",
    )
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None


class ManifestOutcome(ReleaseName):
    """The outcome for a manifest."""

    status: ManifestStatus
    source: str | None = Field(default=None, description="The source that answered. Null: none")
    size: int | None = None
    sha256: str | None = None
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None
