"""Reports of the commands about package sets: build, export, explain set, bump."""

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
    """What became of one package set."""

    cuda: str
    platform: str
    status: ManifestStatus
    path: str | None = Field(default=None, description="Below the output folder; null: none")
    size: int = 0
    counts: dict[Status, int] = Field(
        default={}, description="Packages by status, other names not counted"
    )
    diagnostics: tuple[Diagnostic, ...] = ()
    error: ErrorReport | None = None
    exit_code: int


class SkippedRelease(OwnModel):
    """A local CUDA release that no set can be built for."""

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
    index: ManifestStatus | None = Field(default=None, description="Null: one file has no index")


class SummarizedPackage(OwnModel):
    """One available package of a set."""

    package: str
    version: str
    redist: str
    outputs: tuple[OutputName, ...]
    size: dict[OutputName, int] = Field(description="Unpacked bytes by output; empty: not examined")
    coverage: dict[str, Coverage] = Field(description="By capability")


class OutputTotal(OutputFiles):
    """One output of all packages of a set together."""

    output: OutputName


class MissingPackage(OwnModel):
    """A package that a set does not have."""

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
    library_bytes: int = Field(description="All outputs of packages with an output lib")
    library_lib_bytes: int = Field(description="Their outputs lib alone")
    missing: tuple[MissingPackage, ...]
    diagnostics: tuple[Diagnostic, ...]


ReleaseState = Literal["bumped", "would-bump", "incomplete", "failed"]


class BumpedRelease(OwnModel):
    """One release that a bump brings, or would bring, into a data folder."""

    redist: str
    old: str | None = Field(
        description="Newest label held before, of its line if any; null: none before it"
    )
    new: str
    status: ReleaseState = Field(
        description="incomplete: its manifest is held, and something of it failed"
    )
    files: tuple[str, ...] = Field(default=(), description="Its files, below the data folder")
    diff: DiffReport | None = Field(default=None, description="Null: there is none before it")


class BumpedSet(OwnModel):
    """One package set, built anew from the data and judged."""

    cuda: str
    platform: str
    counts: dict[Status, int] = Field(default={})
    path: str | None = Field(default=None, description="Where it was written; null: it was not")
    problems: tuple[str, ...] = Field(description="Invariants that it breaks, and what failed")
    warnings: tuple[str, ...] = ()
    exit_code: int


class BumpReport(Report):
    """The result of bump."""

    command: Literal["bump"] = "bump"
    releases: tuple[BumpedRelease, ...]
    errors: tuple[ErrorReport, ...] = Field(description="Everything that failed, of all stages")
    findings: tuple[str, ...] = Field(
        default=(), description="What a maintainer has to look at, besides the package sets"
    )
    features: tuple[FeatureOutcome, ...] = ()
    tables: tuple[TableReport, ...] = ()
    sets: tuple[BumpedSet, ...] = ()
    fetched_bytes: int = Field(default=0, description="Bytes of archives, read from a source")


class ExportedFile(OwnModel):
    """One file of an export."""

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
    """One cell in which nixpkgs' tables and ours differ."""

    table: Literal["compilers", "capabilities", "releases", "manifests"]
    cell: str = Field(description="Such as 13.4.gcc.maxMajorVersion")
    nixpkgs: str | bool | None = Field(description="Null: it has none")
    cudaredist: str | bool | None = Field(description="Null: it has none")
    reason: str = Field(description="What our value comes from")


class TableDiffReport(Report):
    """The result of export nixpkgs --diff."""

    command: Literal["export"] = "export"
    format: Literal["nixpkgs"] = "nixpkgs"
    checkout: str
    cells: tuple[TableCell, ...]
