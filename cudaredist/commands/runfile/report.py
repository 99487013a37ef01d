"""The report of runfile add."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.report import Report
from cudaredist.formats.runfile_records import Runfile


class RunfileReport(Report):
    """The result of runfile."""

    command: Literal["runfile"] = "runfile"
    release: str
    platform: str
    record: Runfile
    path: str = Field(description="The file of records, below the data folder")
    status: ManifestStatus


def runfile_text(report: RunfileReport) -> Iterator[str]:
    """Yield the record that was written."""
    record = report.record
    yield f"cuda {report.release}  {report.platform}  {report.status}  {record.size:,} bytes"
    yield f"  {record.sri}"
    yield f"  {record.url or 'address unknown; name it with --url'}"
