"""The report of export."""

from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import ExportedFile, Report

TableName: TypeAlias = Literal["compilers", "capabilities", "releases", "manifests"]


class ExportReport(Report):
    """The result of export."""

    command: Literal["export"] = "export"
    format: str
    files: tuple[ExportedFile, ...]


class TableCell(OwnModel):
    """A cell that differs between the tables of nixpkgs and cudaredist."""

    table: TableName
    cell: str = Field(description="Such as 13.4.gcc.maxMajorVersion")
    nixpkgs: str | bool | None = Field(description="Null: no value")
    cudaredist: str | bool | None = Field(description="Null: no value")
    is_downgrade: bool = Field(default=False, description="Whether nixpkgs has a newer release")
    reason: str = Field(description="The source of cudaredist's value")


class TableDiffReport(Report):
    """The result of export nixpkgs --diff."""

    command: Literal["export"] = "export"
    format: Literal["nixpkgs"] = "nixpkgs"
    checkout: str
    cells: tuple[TableCell, ...] = Field(description="The cells to change")
    kept: tuple[TableCell, ...] = Field(description="The cells that only nixpkgs has")
