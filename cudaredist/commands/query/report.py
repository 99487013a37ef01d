"""The report of query."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from pydantic import Field

from cudaredist.formats.report import Report

Cell: TypeAlias = str | int | float | None
Limit: TypeAlias = Literal["rows", "time", "size"]

_LIMITS: dict[Limit, str] = {
    "rows": "--max-rows",
    "time": "--max-seconds",
    "size": "the limit of 64 MiB of text",
}


class QueryReport(Report):
    """The result of query."""

    command: Literal["query"] = "query"
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = Field(
        default=(), description="Bytes are hexadecimal, and infinity is a text"
    )
    limit: Limit | None = Field(
        default=None, description="The limit that ended the query. Null: the rows are complete"
    )
    unreadable: tuple[str, ...] = Field(
        default=(), description="Errors of broken files, whose facts are missing"
    )
    output: str | None = Field(default=None, description="The file with the database")
    size: int | None = Field(default=None, description="Bytes of this file")

    def warnings(self) -> Iterator[str]:
        """Yield the reasons for missing rows."""
        if self.limit is not None:
            yield f"rows are missing: {_LIMITS[self.limit]} ended the query"
        yield from (f"facts are missing: {error}" for error in self.unreadable)
