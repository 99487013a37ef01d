"""The report of check."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from cudaredist.commands.versions.report import LineReport
from cudaredist.errors import EXIT_CONTENT, EXIT_INCOMPLETE, EXIT_INTEGRITY, EXIT_OK
from cudaredist.formats.report import BaseFinding, Report

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
    "vulnerability",
    "unknown-vulnerability",
    "new-bulletin",
    "changed-bulletin",
    "unknown-redist",
    "table-missing",
    "table-lacks",
    "not-canonical",
    "nothing-held",
    "driver",
    "glibc",
    "doubtful-wheels",
    "absent",
    "unreachable",
    "unreadable",
    "changed-upstream",
    "copy-differs",
    "edited-locally",
    "invalid",
]


class Finding(BaseFinding[FindingKind]):
    """A problem or note for a maintainer."""

    exit_codes: ClassVar[Mapping[str, int]] = {
        "doubtful-wheels": EXIT_OK,
        "gone": EXIT_OK,
        "legacy-features": EXIT_OK,
        "platform-lost": EXIT_OK,
        "unknown-vulnerability": EXIT_OK,
        "changed-upstream": EXIT_INTEGRITY,
        "edited-locally": EXIT_INTEGRITY,
        "invalid": EXIT_CONTENT,
        "unreachable": EXIT_INCOMPLETE,
        "unreadable": EXIT_INCOMPLETE,
    }

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
