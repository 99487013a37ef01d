"""Cells of tables that differ between nixpkgs and cudaredist."""

from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.base import OwnModel

ReportedTable: TypeAlias = Literal["compilers", "capabilities", "releases", "manifests"]


class TableCell(OwnModel):
    """A cell that differs between the tables of nixpkgs and cudaredist."""

    table: ReportedTable
    cell: str = Field(description="Such as 13.4.gcc.maxMajorVersion")
    nixpkgs: str | bool | None = Field(description="Null: no value")
    cudaredist: str | bool | None = Field(description="Null: no value")
    is_downgrade: bool = Field(default=False, description="Whether nixpkgs has a newer release")
    reason: str = Field(description="The source of cudaredist's value")
