"""The report of validate."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import Report


class FileVerdict(OwnModel):
    """The verdict of validate on a file."""

    path: str
    kind: str | None = Field(description="`manifest`, or the name of a schema")
    valid: bool
    summary: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = Field(
        default=(),
        description="Invariants of a package set that were not fully checked, with reasons",
    )
    exit_code: int


class ValidateReport(Report):
    """The result of validate."""

    command: Literal["validate"] = "validate"
    files: tuple[FileVerdict, ...]
