"""The report of site."""

from typing import Annotated, Literal

from pydantic import Field

from cudaredist.formats.plain_report import PlainReport


class SiteReport(PlainReport):
    """The result of site."""

    command: Literal["site"] = "site"
    output: str
    is_check: Annotated[bool, Field(description="Whether nothing was written, with --check")] = (
        False
    )
    pages: int
    files: Annotated[int, Field(description="All files of the site, but for their list")]
    size: Annotated[int, Field(description="Bytes of these files")]
    written: Annotated[int, Field(description="Files that are new or changed")]
    removed: Annotated[
        int, Field(description="Files of an earlier run that are no longer part of the site")
    ]
