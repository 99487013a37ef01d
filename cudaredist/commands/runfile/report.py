"""The report of runfile."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.report import ManifestStatus, Report
from cudaredist.formats.runfile_records import Runfile


class RunfileReport(Report):
    """The result of runfile."""

    command: Literal["runfile"] = "runfile"
    release: str
    platform: str
    record: Runfile
    path: str = Field(description="The file of records, below the data folder")
    status: ManifestStatus
