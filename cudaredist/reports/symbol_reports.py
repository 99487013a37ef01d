"""The report of update-symbols, and what other reports state about symbols."""

from typing import Literal

from pydantic import Field

from cudaredist.reports.report import ArchiveName, ErrorReport, ManifestStatus, Report
from cudaredist.schema.base import OwnModel


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
    label: str
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
    releases: int
    known: int = Field(description="Archives that the tables had already, or without libraries")
    archives: tuple[SymbolArchive, ...] = Field(description="All others")
    manifests: tuple[BrokenManifest, ...] = ()
    archives_read: int
    fetched_bytes: int = Field(description="Bytes of archives that were read from a source")


class SymbolHit(OwnModel):
    """One symbol of one library, and the releases of a package that export it."""

    symbol: str
    demangled: str | None = Field(default=None, description="A readable form; absent: not asked")
    version: str = Field(default="", description="`@@V` for a default version, else `@V`")
    library: str
    redist: str
    package: str
    platform: str
    variant: str | None
    stub: bool = Field(default=False, description="Only for linking")
    first: str
    last: str
    releases: str = Field(description="Labels and ranges of those that are local")
    is_newest: bool = Field(description="Whether the newest release with the library exports it")
