"""Reports of build, export, explain set and bump."""

from typing import Literal

from pydantic import Field

from cudaredist.reports.answer_reports import (
    DiffReport,
)
from cudaredist.reports.archive_reports import (
    FeatureOutcome,
    TableReport,
)
from cudaredist.reports.report import Answer, ErrorReport, ManifestStatus, OutputFiles, Report
from cudaredist.schema.base import OutputName, OwnModel
from cudaredist.schema.packageset import (
    Coverage,
    Diagnostic,
    HostCompiler,
    SetDriver,
    Status,
)


class SetOutcome(OwnModel):
    """The outcome for a package set."""

    cuda: str
    platform: str
    status: ManifestStatus
    path: str | None = Field(
        default=None, description="Relative to the output folder. Null: not written"
    )
    size: int = 0
    counts: dict[Status, int] = Field(
        default={}, description="Number of packages by status, without aliases"
    )
    diagnostics: tuple[Diagnostic, ...] = ()
    error: ErrorReport | None = None
    exit_code: int


class SkippedRelease(OwnModel):
    """A local CUDA release without any possible set."""

    cuda: str
    reason: str


class BuildReport(Report):
    """The result of build."""

    command: Literal["build"] = "build"
    output: str
    sets: tuple[SetOutcome, ...]
    skipped: tuple[SkippedRelease, ...] = Field(
        default=(), description="Local releases that --cuda all skips"
    )
    index: ManifestStatus | None = Field(
        default=None, description="Null: a single file has no index"
    )


class SummarizedPackage(OwnModel):
    """An available package of a set."""

    package: str
    version: str
    redist: str
    outputs: tuple[OutputName, ...]
    size: dict[OutputName, int] = Field(
        description="Unpacked bytes by output. Empty: not inspected"
    )
    coverage: dict[str, Coverage] = Field(description="By capability")


class OutputTotal(OutputFiles):
    """The total of an output over all packages of a set."""

    output: OutputName


class MissingPackage(OwnModel):
    """An unavailable package of a set."""

    package: str
    status: Status
    reason: str


class SetSummary(Answer):
    """The result of explain set."""

    command: Literal["explain"] = "explain"
    kind: Literal["set"] = "set"
    asked: str
    attribute: str
    cuda: str
    platform: str
    channel: str
    counts: dict[Status, int]
    capabilities: tuple[str, ...]
    host_compiler: HostCompiler
    driver: SetDriver | None
    packages: tuple[SummarizedPackage, ...]
    totals: tuple[OutputTotal, ...]
    library_bytes: int = Field(description="Bytes of all outputs, for packages with the output lib")
    library_lib_bytes: int = Field(description="Bytes of the output lib")
    missing: tuple[MissingPackage, ...]
    diagnostics: tuple[Diagnostic, ...]


ReleaseState = Literal["bumped", "would-bump", "incomplete", "failed"]


class BumpedRelease(OwnModel):
    """A release that a bump adds to the data folder."""

    redist: str
    old: str | None = Field(
        description="Newest local label before, preferably of its line. Null: none"
    )
    new: str
    status: ReleaseState = Field(
        description="incomplete: its manifest is local, but a later step failed"
    )
    files: tuple[str, ...] = Field(default=(), description="Its files, relative to the data folder")
    diff: DiffReport | None = Field(default=None, description="Null: no earlier release")


class BumpedSet(OwnModel):
    """A package set, built from the data and validated."""

    cuda: str
    platform: str
    counts: dict[Status, int] = Field(default={})
    path: str | None = Field(default=None, description="Path of the file. Null: not written")
    problems: tuple[str, ...] = Field(description="Violated invariants and failures")
    warnings: tuple[str, ...] = ()
    exit_code: int


class BumpReport(Report):
    """The result of bump."""

    command: Literal["bump"] = "bump"
    releases: tuple[BumpedRelease, ...]
    errors: tuple[ErrorReport, ...] = Field(description="The failures of all steps")
    findings: tuple[str, ...] = Field(
        default=(), description="Findings for review, without those of package sets"
    )
    features: tuple[FeatureOutcome, ...] = ()
    tables: tuple[TableReport, ...] = ()
    sets: tuple[BumpedSet, ...] = ()
    fetched_bytes: int = Field(default=0, description="Bytes of archives from a source")


class ExportedFile(OwnModel):
    """A file of an export."""

    path: str
    status: ManifestStatus
    size: int
    sha256: str


class ExportReport(Report):
    """The result of export."""

    command: Literal["export"] = "export"
    format: str
    files: tuple[ExportedFile, ...]


class TableCell(OwnModel):
    """A cell that differs between the tables of nixpkgs and cudaredist."""

    table: Literal["compilers", "capabilities", "releases", "manifests"]
    cell: str = Field(description="Such as 13.4.gcc.maxMajorVersion")
    nixpkgs: str | bool | None = Field(description="Null: no value")
    cudaredist: str | bool | None = Field(description="Null: no value")
    reason: str = Field(description="The source of cudaredist's value")


class TableDiffReport(Report):
    """The result of export nixpkgs --diff."""

    command: Literal["export"] = "export"
    format: Literal["nixpkgs"] = "nixpkgs"
    checkout: str
    cells: tuple[TableCell, ...]
