"""The report of site."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.report import Report


class SiteReport(Report):
    """The result of site."""

    command: Literal["site"] = "site"
    output: str
    is_check: bool = Field(default=False, description="Whether nothing was written, with --check")
    pages: int
    files: int = Field(description="All files of the site, but for their list")
    size: int = Field(description="Bytes of these files")
    written: int = Field(description="Files that are new or changed")
    removed: int = Field(description="Files of an earlier run that are no longer part of the site")
