"""The report of runfile add."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.report import Report
from cudaredist.formats.runfile_records import Runfile


class AddedRunfile(OwnModel):
    """A runfile and the outcome for its record."""

    release: str
    platform: str
    record: Runfile
    status: ManifestStatus


class RunfileReport(Report):
    """The result of runfile."""

    command: Literal["runfile"] = "runfile"
    runfiles: tuple[AddedRunfile, ...] = Field(description="One for each platform of a release")
    path: str = Field(description="The file of records, below the data folder")


def runfile_text(report: RunfileReport) -> Iterator[str]:
    """Yield the records that were written."""
    for added in report.runfiles:
        record = added.record
        place = f"cuda {added.release}  {added.platform}"
        yield f"{place}  {added.status}  {record.size:,} bytes"
        yield f"  {record.sri}"
        yield f"  {record.url or 'address unknown; name it with --url'}"
