"""The report of export."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import ExportedFile, Report
from cudaredist.nixpkgs.cells import TableCell


class ListedFormat(OwnModel):
    """A format, or a shipped template."""

    name: str
    title: str
    command_line: str | None = Field(
        default=None, description="The command with the query of a template. Null: a format"
    )


class ExportReport(Report):
    """The result of export."""

    command: Literal["export"] = "export"
    format: str | None = Field(default=None, description="Null: the formats are listed")
    files: tuple[ExportedFile, ...] = ()
    formats: tuple[ListedFormat, ...] = Field(default=(), description="Formats and templates")


class TableDiffReport(Report):
    """The result of export nixpkgs --diff."""

    command: Literal["export"] = "export"
    format: Literal["nixpkgs"] = "nixpkgs"
    checkout: str
    cells: tuple[TableCell, ...] = Field(description="The cells to change")
    kept: tuple[TableCell, ...] = Field(description="The cells that only nixpkgs has")
