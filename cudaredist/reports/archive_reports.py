"""Reports of the commands that read archives: process-manifests, the two tables, materialize."""

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
    """One archive of a manifest, with its size."""

    size: int | None = Field(description="Bytes; null: the manifest does not say")


class ArchiveOutcome(ArchivePlace):
    """What became of one archive of one manifest."""

    sha256: str | None
    status: ArchiveStatus = Field(
        description="examined: fetched and read now; known: from the cache or the feature file"
    )
    reason: str | None = Field(default=None, description="Why it was skipped")
    error: ErrorReport | None = None


class FeatureOutcome(OwnModel):
    """What became of one manifest's feature file."""

    redist: str
    release: str
    status: ManifestStatus
    archives: int = Field(default=0, description="Archives the manifest names")
    examined: int = Field(default=0, description="Of those, how many the feature file describes")
    failed: int = 0
    skipped: int = Field(default=0, description="Left out by a choice of this run")
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None


class ProcessReport(Report):
    """The result of process-manifests."""

    command: Literal["process-manifests"] = "process-manifests"
    manifests: tuple[FeatureOutcome, ...]
    archives: tuple[ArchiveOutcome, ...]
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")


class PeekedArchive(ArchivePlace):
    """What the names in one zip archive tell, which nothing was proved of."""

    fetched: int = Field(description="Bytes that were read to know")
    verified: Literal[False] = False
    outputs: dict[OutputName, OutputFiles] | None = Field(description="Null: see the error")
    undecided_libraries: int = Field(
        default=0,
        description="`.lib` files, counted as static; import libraries among them belong to lib",
    )
    error: ErrorReport | None = None


class PeekReport(Report):
    """The result of process-manifests --peek."""

    command: Literal["process-manifests --peek"] = "process-manifests --peek"
    manifests: tuple[FeatureOutcome, ...] = Field(description="Those that could not be read")
    archives: tuple[PeekedArchive, ...]
    left_out: int = Field(description="Archives that are no zip, which cannot be peeked into")


ReleaseStatus = Literal["read", "known", "stands", "held-back", "failed"]


class ReleaseOutcome(OwnModel):
    """What became of one CUDA release in a run of update-nvcc-compat or update-gpus."""

    release: str
    status: ReleaseStatus = Field(
        description="read: from an archive now; known: from the cache or the table; stands: the "
        "table has it from the redist channel; held-back: its bounds changed or go down, and the "
        "table keeps what it has of it, or goes without it"
    )
    package: str | None = Field(default=None, description="Whose archive it was found in")
    archive_sha256: str | None = None
    error: ErrorReport | None = None


class TableFinding(OwnModel):
    """Something about a table that a maintainer has to look at."""

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
    """The result of update-nvcc-compat and of update-gpus."""

    command: Literal["update-nvcc-compat", "update-gpus"]
    table: str = Field(description="The table's name below the data folder")
    status: ManifestStatus
    releases: tuple[ReleaseOutcome, ...]
    findings: tuple[TableFinding, ...]
    held_back: tuple[str, ...] = Field(
        default=(),
        description="Releases whose bounds changed or go down, which --accept-changed takes",
    )
    diff: tuple[str, ...] = Field(description="What changes in the table, as unified diff")
    archives_read: int
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")


class ToolkitReport(Report):
    """The result of materialize."""

    command: Literal["materialize"] = "materialize"
    root: str
    status: Literal["written", "unchanged", "verified", "altered", "removed"]
    cuda: str | None = Field(description="Null: nothing was laid out yet")
    platform: str | None
    layout: Literal["merged", "split"] | None
    packages: tuple[str, ...]
    files: int
    size: int = Field(description="Bytes of all files")
    fetched_bytes: int = Field(description="Of the network; what was at hand does not count")
    problems: tuple[str, ...] = Field(description="Files and links that are not as laid out")
    foreign: tuple[str, ...] = Field(description="Files in the root that are not ours")
