"""Reports of the commands that read archives."""

from typing import Literal

from pydantic import Field

from cudaredist.reports.report import (
    ArchiveName,
    ErrorReport,
    ManifestStatus,
    OutputFiles,
    Report,
)
from cudaredist.schema.base import OutputName, OwnModel

ArchiveStatus = Literal["examined", "known", "would-examine", "failed", "skipped"]


class ArchivePlace(ArchiveName):
    """An archive of a manifest, with its size."""

    size: int | None = Field(description="Bytes. Null: not in the manifest")


class ArchiveOutcome(ArchivePlace):
    """The outcome for an archive of a manifest."""

    sha256: str | None
    status: ArchiveStatus = Field(
        description="examined: inspected in this run; known: from the cache or the feature file"
    )
    reason: str | None = Field(default=None, description="The reason for skipping it")
    error: ErrorReport | None = None


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


class ProcessReport(Report):
    """The result of process-manifests."""

    command: Literal["process-manifests"] = "process-manifests"
    manifests: tuple[FeatureOutcome, ...]
    archives: tuple[ArchiveOutcome, ...]
    fetched_bytes: int = Field(description="Bytes of archives from a source")


class PeekedArchive(ArchivePlace):
    """The unverified outputs of a zip archive, from its file names."""

    fetched: int = Field(description="Bytes read from the source")
    verified: Literal[False] = False
    outputs: dict[OutputName, OutputFiles] | None = Field(description="Null: see `error`")
    undecided_libraries: int = Field(
        default=0,
        description="Number of `.lib` files, listed as static. Import libraries would be in lib",
    )
    error: ErrorReport | None = None


class PeekReport(Report):
    """The result of process-manifests --peek."""

    command: Literal["process-manifests --peek"] = "process-manifests --peek"
    manifests: tuple[FeatureOutcome, ...] = Field(description="The unreadable manifests")
    archives: tuple[PeekedArchive, ...]
    left_out: int = Field(description="Number of archives in other formats than zip")


ReleaseStatus = Literal["read", "known", "stands", "held-back", "failed"]


class ReleaseOutcome(OwnModel):
    """The outcome for a CUDA release in an update of a table."""

    release: str
    status: ReleaseStatus = Field(
        description="read: from an archive in this run; known: from the cache or the table; "
        "stands: the table's entry is from the redist channel; held-back: its bounds changed or "
        "are lower, so the table's entry, if any, stays unchanged"
    )
    package: str | None = Field(default=None, description="The package with the archive")
    archive_sha256: str | None = None
    error: ErrorReport | None = None


class TableFinding(OwnModel):
    """A finding about a table, for review by a maintainer."""

    kind: Literal[
        "goes-down",
        "changed",
        "overlay-lacks",
        "family-differs",
        "patches-differ",
        "gone-in-between",
    ]
    about: str = Field(description="The CUDA release or the capability")
    message: str


class TableReport(Report):
    """The result of update-nvcc-compat and update-gpus."""

    command: Literal["update-nvcc-compat", "update-gpus"]
    table: str = Field(description="The table's name below the data folder")
    status: ManifestStatus
    releases: tuple[ReleaseOutcome, ...]
    findings: tuple[TableFinding, ...]
    held_back: tuple[str, ...] = Field(
        default=(),
        description="Releases with changed or lower bounds. --accept-changed writes them",
    )
    diff: tuple[str, ...] = Field(description="The table's changes, as unified diff")
    archives_read: int
    fetched_bytes: int = Field(description="Bytes of archives from a source")


class ToolkitReport(Report):
    """The result of materialize."""

    command: Literal["materialize"] = "materialize"
    root: str
    status: Literal["written", "unchanged", "verified", "altered", "removed"]
    cuda: str | None = Field(description="Null: nothing is installed")
    platform: str | None
    layout: Literal["merged", "split"] | None
    packages: tuple[str, ...]
    files: int
    size: int = Field(description="Bytes of all files")
    fetched_bytes: int = Field(description="Bytes from the network, without local archives")
    problems: tuple[str, ...] = Field(description="Altered files and links")
    foreign: tuple[str, ...] = Field(
        description="Files in the root that cudaredist did not install"
    )
