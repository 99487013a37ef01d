"""Reports of mirror: sync, verify and prune."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from cudaredist.commands.download.report import RedistOutcome
from cudaredist.errors import EXIT_INCOMPLETE, EXIT_INTEGRITY
from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.outcomes import ManifestOutcome
from cudaredist.formats.report import BaseFinding, Report

ArchiveCopy = Literal[
    "copied", "would-copy", "would-link", "present", "repaired", "would-repair", "failed"
]
"""`would-link`: a run makes the path a hard link of a file that the mirror has."""


class MirroredArchive(OwnModel):
    """The outcome of one archive or wheel."""

    path: str = Field(description="Path below the mirror")
    status: ArchiveCopy
    size: int | None = None
    error: ErrorReport | None = None


class MirrorSyncReport(Report):
    """The result of mirror sync."""

    command: Literal["mirror sync"] = "mirror sync"
    folder: str
    redists: tuple[RedistOutcome, ...]
    manifests: tuple[ManifestOutcome, ...]
    archives: tuple[MirroredArchive, ...]
    errors: tuple[ErrorReport, ...] = Field(description="Errors of the run, not of one item")
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")
    missing_bytes: int = Field(
        description="With --check, the bytes to fetch for missing and damaged archives, minus "
        "partial downloads"
    )
    unknown_sizes: int = Field(
        description="With --check, the number of these archives without a stated size"
    )
    other_files: tuple[str, ...] = Field(
        description="With --check, the paths of other files that a run would change: published "
        "manifests, metadata of wheels, index pages, SHA256SUMS, locks, temporary files of killed "
        "runs, and folders that not all users can open"
    )
    is_dry_run: bool
    compared_by: Literal["size and time", "checksum"] = Field(
        description="The comparison of existing files with the lock"
    )


DefectKind = Literal["missing", "altered", "wrong-link", "not-linked", "mode", "extra", "lock"]


class MirrorDefect(BaseFinding[DefectKind]):
    """One defect of a mirror."""

    exit_codes: ClassVar[Mapping[str, int]] = {
        "missing": EXIT_INCOMPLETE,
        "altered": EXIT_INTEGRITY,
        "wrong-link": EXIT_INTEGRITY,
        "lock": EXIT_INTEGRITY,
    }

    path: str
    message: str
    hint: str
    exit_code: int = Field(description="Exit code of the command if this is the only defect")


class MirrorVerifyReport(Report):
    """The result of mirror verify."""

    command: Literal["mirror verify"] = "mirror verify"
    folder: str
    files: int = Field(description="Recorded files")
    contents: int = Field(description="Distinct contents of these files")
    size: int = Field(description="Bytes of the distinct contents")
    defects: tuple[MirrorDefect, ...]


class MirrorPruneReport(Report):
    """The result of mirror prune."""

    command: Literal["mirror prune"] = "mirror prune"
    folder: str
    releases: tuple[str, ...] = Field(
        description="Kept releases, such as cuda 13.0.2. For the other channel, the channel "
        "follows: cuda 13.0.2 (wheels)"
    )
    removed: tuple[str, ...] = Field(
        description="Removed files, or with --check the files to remove"
    )
    kept: int = Field(description="Recorded files that stay")
    freed_bytes: int
    other_files: tuple[str, ...] = Field(
        description="With --check, the paths of locks, index pages and SHA256SUMS that a run would "
        "write, and of unfinished downloads that it would remove"
    )
    is_dry_run: bool
