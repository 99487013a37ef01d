"""Reports of the commands about manifests: download-manifests, check, validate, versions."""

from typing import Literal

from pydantic import Field

from cudaredist.reports.report import Answer, ErrorReport, ManifestStatus, Report
from cudaredist.schema.base import OwnModel
from cudaredist.schema.runfile_records import Runfile


class ManifestOutcome(OwnModel):
    """What became of one manifest."""

    redist: str
    release: str
    status: ManifestStatus
    source: str | None = Field(default=None, description="The source that answered; null: none did")
    size: int | None = None
    sha256: str | None = None
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None


class RedistOutcome(OwnModel):
    """What became of one redistributable: listed, absent or failed."""

    redist: str
    status: Literal["listed", "absent", "failed"]
    source: str | None = None
    newest: str | None = None
    listed: int = 0
    gone: tuple[str, ...] = ()
    error: ErrorReport | None = None


class DownloadReport(Report):
    """The result of download-manifests."""

    command: Literal["download-manifests"] = "download-manifests"
    redists: tuple[RedistOutcome, ...]
    manifests: tuple[ManifestOutcome, ...]
    is_lock_changed: bool = Field(
        description="Whether the lock's records changed, or would have where nothing was written"
    )
    errors: tuple[ErrorReport, ...] = Field(description="What failed besides single items")


FindingKind = Literal[
    "stale",
    "missing-file",
    "unrecorded",
    "gone",
    "platform-lost",
    "no-features",
    "stale-features",
    "orphan-features",
    "legacy-features",
    "unknown-redist",
    "table-missing",
    "table-lacks",
    "not-canonical",
    "nothing-held",
    "absent",
    "unreachable",
    "unreadable",
    "changed-upstream",
    "edited-locally",
    "invalid",
]


class Finding(OwnModel):
    """One thing that is not as it should be, or that a maintainer should know."""

    kind: FindingKind
    exit_code: int = Field(description="What this alone makes the command exit with; 0 is a note")
    redist: str | None
    release: str | None
    path: str | None = Field(description="File below the data folder that it is about")
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()


LineStatus = Literal["current", "stale", "new", "not-held", "local-only", "unknown"]


class LineReport(OwnModel):
    """One release line of one redistributable, held against upstream."""

    redist: str
    line: str
    held: str | None = Field(description="Newest label held; null: none")
    upstream: str | None = Field(description="Newest label listed; null: none, or not asked")
    missing: tuple[str, ...] = Field(description="Labels listed, newer than the newest held")
    status: LineStatus

    @property
    def is_behind(self) -> bool:
        """Whether upstream has a release of it that a maintainer would want."""
        return self.status in {"stale", "new"}


class CheckReport(Report):
    """The result of check."""

    command: Literal["check"] = "check"
    offline: bool
    sources: dict[str, str] = Field(description="Which source answered, by redistributable")
    lines: tuple[LineReport, ...]
    findings: tuple[Finding, ...]


class RunfileReport(Report):
    """The result of runfile."""

    command: Literal["runfile"] = "runfile"
    release: str
    platform: str
    record: Runfile
    path: str = Field(description="The file of records, below the data folder")
    status: ManifestStatus


class FileVerdict(OwnModel):
    """What validate found in one file."""

    path: str
    kind: str | None = Field(description="`manifest`, or the name of one of our schemas")
    valid: bool
    summary: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = Field(
        default=(), description="Invariants of a package set that were not checked in full, and why"
    )
    exit_code: int


class ValidateReport(Report):
    """The result of validate."""

    command: Literal["validate"] = "validate"
    files: tuple[FileVerdict, ...]


class ListedSchema(OwnModel):
    """One JSON Schema that `schema` prints."""

    name: str
    summary: str


class SchemaReport(Answer):
    """The result of schema without NAME."""

    command: Literal["schema"] = "schema"
    schemas: tuple[ListedSchema, ...]


class VersionsReport(Report):
    """The result of versions."""

    command: Literal["versions"] = "versions"
    lines: tuple[LineReport, ...]
    releases: dict[str, tuple[str, ...]] = Field(
        description="Upstream, or offline those held; oldest first; absent: not known"
    )
    absent: tuple[str, ...] = Field(default=(), description="Redistributables no source has")
    errors: tuple[ErrorReport, ...] = ()
