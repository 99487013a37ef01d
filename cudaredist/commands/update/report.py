"""The reports of update-nvcc-compat, update-gpus, update-symbols, update-api and others."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.report import ArchiveName, Report
from cudaredist.formats.tables import TableFinding


class SymbolArchive(ArchiveName):
    """One archive of a run of update-symbols that was not known, or failed."""

    status: Literal["read", "cached", "failed"]
    libraries: int = Field(default=0, description="Shared libraries in it")
    unread: tuple[str, ...] = Field(
        default=(), description="Libraries whose symbols could not be read, by path"
    )
    error: ErrorReport | None = None


class BrokenManifest(OwnModel):
    """A manifest that could not be read."""

    redist: str
    release: str
    error: ErrorReport


class SymbolReport(Report):
    """The result of update-symbols."""

    command: Literal["update-symbols"] = "update-symbols"
    status: ManifestStatus
    tables: int = Field(description="Libraries with a table")
    changed: tuple[str, ...] = Field(description="Libraries whose table is written, or would be")
    removed: tuple[str, ...] = Field(description="Libraries that no release has any more")
    unnamed: tuple[str, ...] = Field(
        default=(), description="Libraries without a table: their name cannot be that of a file"
    )
    releases: tuple[str, ...] = Field(description="Selected releases, such as cuda 13.5.0")
    known: int = Field(description="Archives that the tables had already, or without libraries")
    archives: tuple[SymbolArchive, ...] = Field(description="All others")
    manifests: tuple[BrokenManifest, ...] = ()
    archives_read: int
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")


class UnreadHeader(OwnModel):
    """A header that does not parse."""

    path: str
    reason: str


class ApiArchive(ArchiveName):
    """One archive of a run of update-api that was not known, or failed."""

    status: Literal["read", "cached", "failed"]
    headers: int = Field(default=0, description="Headers in it")
    unread: tuple[UnreadHeader, ...] = Field(default=(), description="Headers that do not parse")
    error: ErrorReport | None = None


class ApiReport(Report):
    """The result of update-api."""

    command: Literal["update-api"] = "update-api"
    status: ManifestStatus
    tables: int = Field(description="Packages with a table")
    changed: tuple[str, ...] = Field(description="Packages whose table is written, or would be")
    removed: tuple[str, ...] = Field(description="Packages that no release has any more")
    releases: tuple[str, ...] = Field(description="Selected releases, such as cuda 13.5.0")
    known: int = Field(description="Archives that the tables had already")
    archives: tuple[ApiArchive, ...] = Field(description="All others with an API")
    manifests: tuple[BrokenManifest, ...] = ()
    archives_read: int
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")


ReleaseStatus = Literal["read", "known", "stands", "held-back", "failed"]


class ReleaseOutcome(OwnModel):
    """The outcome for a CUDA release in an update of a table."""

    release: str
    status: ReleaseStatus = Field(
        description="read: from an archive in this run; known: from the cache or the table; "
        "stands: the table's entry is from the redist channel; held-back: its bounds changed or "
        "are lower, so the table's entry, if any, stays unchanged"
    )
    package: str | None = Field(default=None, description="The package with the archive")
    archive_sha256: str | None = None
    bounds: str | None = Field(
        default=None, description="Its compilers or capabilities, if the table is new"
    )
    error: ErrorReport | None = None


class TableReport(Report):
    """The result of update-nvcc-compat and update-gpus."""

    command: Literal["update-nvcc-compat", "update-gpus"]
    table: str = Field(description="The table's name below the data folder")
    status: ManifestStatus
    releases: tuple[ReleaseOutcome, ...]
    findings: tuple[TableFinding, ...]
    held_back: tuple[str, ...] = Field(
        default=(),
        description="Releases with changed or lower bounds. --replace writes them",
    )
    diff: tuple[str, ...] = Field(description="The table's changes, as unified diff")
    archives_read: int
    fetched_bytes: int = Field(description="Bytes of archives from a source")


BulletinStatus = Literal["new", "known", "changed", "replaced", "failed"]


class BulletinOutcome(OwnModel):
    """The outcome for a bulletin in update-advisories."""

    bulletin: str
    status: BulletinStatus = Field(
        description="changed: the table still has the known version. --replace writes the new one"
    )
    version: str | None = None
    known_version: str | None = Field(default=None, description="The version in the table")
    changed: str | None = Field(default=None, description="Day of the newest change")
    vulnerabilities: int = Field(default=0, description="Vulnerabilities in our products")
    unmapped: tuple[str, ...] = Field(default=(), description="Other products, as stated")
    undecided: tuple[str, ...] = Field(
        default=(),
        description="Unmapped products with the name of a supported one, without a decision",
    )
    error: ErrorReport | None = None


class AdvisoryReport(Report):
    """The result of update-advisories."""

    command: Literal["update-advisories"] = "update-advisories"
    table: str = Field(description="The table's name below the data folder")
    status: ManifestStatus
    bulletins: tuple[BulletinOutcome, ...] = Field(description="All bulletins of the source")
    total_bulletins: int = Field(description="Bulletins in the table")
    total_vulnerabilities: int = Field(description="Entries of the table")
