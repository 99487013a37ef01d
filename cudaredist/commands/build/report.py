"""The report of build."""

from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.packageset import Diagnostic, Status
from cudaredist.formats.report import Report

SetStatus: TypeAlias = ManifestStatus | Literal["removed", "would-remove"]


class SetOutcome(OwnModel):
    """The outcome for a package set."""

    cuda: str
    platform: str
    name: str | None = Field(default=None, description="Name of a declared set. Null: none")
    status: SetStatus = Field(description="`removed`: no longer declared")
    path: str | None = Field(
        default=None, description="Relative to the output folder. Null: not written"
    )
    size: int = 0
    counts: dict[Status, int] = Field(
        default={}, description="Number of packages by status, without aliases"
    )
    capabilities: tuple[str, ...] = Field(
        default=(), description="Requested capabilities. Empty: the default, or failed"
    )
    requested: tuple[str, ...] = Field(
        default=(), description="Releases of --redist and --also, such as cudnn 9.13.0"
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
