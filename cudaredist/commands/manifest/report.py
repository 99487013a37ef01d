"""The report of manifest add."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.field_types import HexSha256
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.report import Report
from cudaredist.primitives import place_name


class AddedArchive(OwnModel):
    """An archive that was read."""

    platform: str
    variant: str | None = Field(description="Such as cuda12. Null: for every CUDA release")
    relative_path: str
    size: int
    sha256: HexSha256


class ManifestReport(Report):
    """The result of manifest."""

    command: Literal["manifest"] = "manifest"
    redist: str
    release: str
    version: str = Field(description="The version in the archives")
    path: str = Field(description="The manifest, below the data folder")
    status: ManifestStatus
    archives: tuple[AddedArchive, ...]
    next: str = Field(description="The command that adds the manifest to the data")


def manifest_text(report: ManifestReport) -> Iterator[str]:
    """Yield the archives that were read, and the next command."""
    yield f"{report.redist} {report.release}  {report.version}  {report.path}  {report.status}"
    for archive in report.archives:
        place = place_name(archive.platform, archive.variant)
        yield f"  {place}  {archive.size:,} bytes  {archive.sha256}"
    yield f"to use it, run `{report.next}`"
