"""The reports of nixpkgs."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.report import ExportedFile, Report
from cudaredist.nixpkgs.cells import TableCell


class NixpkgsReport(Report):
    """The result of nixpkgs."""

    command: Literal["nixpkgs"] = "nixpkgs"
    files: tuple[ExportedFile, ...]


class NixpkgsDiffReport(Report):
    """The result of nixpkgs --diff."""

    command: Literal["nixpkgs"] = "nixpkgs"
    checkout: str
    cells: tuple[TableCell, ...] = Field(description="The cells to change")
    kept: tuple[TableCell, ...] = Field(
        description="The cells that stay: only nixpkgs has them, or its release is newer"
    )
