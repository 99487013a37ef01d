"""The report of drop."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import Report


class DroppedFile(OwnModel):
    """A file that has a part of a release."""

    path: str
    status: Literal["removed", "written", "would-remove", "would-write"]


class DropReport(Report):
    """The result of drop."""

    command: Literal["drop"] = "drop"
    releases: tuple[str, ...] = Field(description="Such as cuda@12.6.3")
    files: tuple[DroppedFile, ...]
    remaining: tuple[str, ...] = Field(
        description="Places that still name a release, for a maintainer to change"
    )
