"""The report of check."""

from typing import Literal

from pydantic import Field

from cudaredist.commands.versions.report import LineReport
from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import Report

FindingKind = Literal[
    "stale",
    "stale-set",
    "closure",
    "missing-file",
    "unrecorded",
    "gone",
    "left-channel",
    "platform-lost",
    "no-features",
    "stale-features",
    "orphan-features",
    "legacy-features",
    "archive-notes",
    "unknown-redist",
    "table-missing",
    "table-lacks",
    "not-canonical",
    "nothing-held",
    "driver",
    "doubtful-wheels",
    "absent",
    "unreachable",
    "unreadable",
    "changed-upstream",
    "edited-locally",
    "invalid",
]


class Finding(OwnModel):
    """A problem or note for a maintainer."""

    kind: FindingKind
    exit_code: int = Field(description="The exit code for this finding alone. 0: a note")
    redist: str | None
    release: str | None
    path: str | None = Field(description="The file, relative to the data folder")
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()


class CheckReport(Report):
    """The result of check."""

    command: Literal["check"] = "check"
    offline: bool
    sources: dict[str, str] = Field(description="The source that answered, by redistributable")
    lines: tuple[LineReport, ...]
    findings: tuple[Finding, ...]
