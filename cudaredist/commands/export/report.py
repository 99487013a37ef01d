"""The report of export."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.report import ExportedFile, Report
from cudaredist.nixpkgs.cells import TableCell


class ExportReport(Report):
    """The result of export."""

    command: Literal["export"] = "export"
    format: str
    files: tuple[ExportedFile, ...]


class TableDiffReport(Report):
    """The result of export nixpkgs --diff."""

    command: Literal["export"] = "export"
    format: Literal["nixpkgs"] = "nixpkgs"
    checkout: str
    cells: tuple[TableCell, ...] = Field(description="The cells to change")
    kept: tuple[TableCell, ...] = Field(description="The cells that only nixpkgs has")
