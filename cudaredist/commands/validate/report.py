"""The report of validate."""

from collections.abc import Iterator
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


def validate_text(report: ValidateReport, *, with_warnings: bool = True) -> Iterator[str]:
    """Yield the verdict, problems and warnings of each file."""
    for verdict in report.files:
        yield f"{verdict.path}: {verdict.summary}"
        yield from (f"    {problem}" for problem in verdict.problems)
        if with_warnings:
            yield from (f"    warning: {warning}" for warning in verdict.warnings)
        yield from (f"    not checked: {names}" for names in verdict.unchecked)
