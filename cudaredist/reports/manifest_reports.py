"""Reports of download-manifests, check, validate, versions and schema."""

from typing import Literal

from pydantic import Field

from cudaredist.reports.report import Answer, ErrorReport, ManifestStatus, Report
from cudaredist.schema.base import OwnModel
from cudaredist.schema.runfile_records import Runfile


class ManifestOutcome(OwnModel):
    """The outcome for a manifest."""

    redist: str
    release: str
    status: ManifestStatus
    source: str | None = Field(default=None, description="The source that answered. Null: none")
    size: int | None = None
    sha256: str | None = None
    warnings: tuple[str, ...] = ()
    error: ErrorReport | None = None


class RedistOutcome(OwnModel):
    """The outcome for a redistributable: listed, absent or failed."""

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
        description="Whether the lock changed, or would change if files were written"
    )
    errors: tuple[ErrorReport, ...] = Field(description="Failures that concern no single item")


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
    """A problem or note for a maintainer."""

    kind: FindingKind
    exit_code: int = Field(description="The exit code for this finding alone. 0: a note")
    redist: str | None
    release: str | None
    path: str | None = Field(description="The file, relative to the data folder")
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()


LineStatus = Literal["current", "stale", "new", "not-held", "local-only", "unknown"]


class LineReport(OwnModel):
    """A release line of a redistributable, compared to upstream."""

    redist: str
    line: str
    held: str | None = Field(description="Newest local label. Null: none")
    upstream: str | None = Field(description="Newest label upstream. Null: none or unknown")
    missing: tuple[str, ...] = Field(
        description="Labels upstream that are newer than all local ones"
    )
    status: LineStatus

    @property
    def is_behind(self) -> bool:
        """Whether upstream has a newer release or a new line."""
        return self.status in {"stale", "new"}


class CheckReport(Report):
    """The result of check."""

    command: Literal["check"] = "check"
    offline: bool
    sources: dict[str, str] = Field(description="The source that answered, by redistributable")
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
    """The verdict of validate on a file."""

    path: str
    kind: str | None = Field(description="`manifest`, or the name of a schema")
    valid: bool
    summary: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = Field(
        default=(),
        description="Invariants of a package set that were not fully checked, with reasons",
    )
    exit_code: int


class ValidateReport(Report):
    """The result of validate."""

    command: Literal["validate"] = "validate"
    files: tuple[FileVerdict, ...]


class ListedSchema(OwnModel):
    """A JSON Schema in the list of `schema`."""

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
        description="Releases upstream (offline: local releases), oldest first. Absent: unknown"
    )
    absent: tuple[str, ...] = Field(default=(), description="Redistributables without a source")
    errors: tuple[ErrorReport, ...] = ()


class SiteReport(Report):
    """The result of site."""

    command: Literal["site"] = "site"
    output: str
    pages: int
    files: int = Field(description="All files of the site, but for their list")
    size: int = Field(description="Bytes of these files")
    written: int = Field(description="Files that are new or changed")
    removed: int = Field(description="Files of an earlier run that are no longer part of the site")
