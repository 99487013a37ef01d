"""The report of bump."""

from typing import Literal

from pydantic import Field

from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.update.report import TableReport
from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.outcomes import FeatureOutcome
from cudaredist.formats.packageset import Status
from cudaredist.formats.report import Report

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
