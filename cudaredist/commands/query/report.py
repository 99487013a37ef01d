"""The report of query."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from cudaredist.cli.text import columns, markdown_table
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.plain_report import PlainReport
from cudaredist.words import printable

Cell: TypeAlias = str | int | float | None
Limit: TypeAlias = Literal["rows", "time", "size"]
_LIMITS: dict[Limit, str] = {
    "rows": "--max-rows",
    "time": "--max-seconds",
    "size": "the limit of 64 MiB of text",
}


class QueryReport(PlainReport):
    """The result of query."""

    command: Literal["query"] = "query"
    columns: tuple[str, ...] = ()
    rows: Annotated[
        tuple[tuple[Cell, ...], ...],
        Field(description="Bytes are hexadecimal, and infinity is a text"),
    ] = ()
    limit: Annotated[
        Limit | None,
        Field(description="The limit that ended the query. Null: the rows are complete"),
    ] = None
    unreadable: Annotated[
        tuple[str, ...], Field(description="Errors of broken files, whose facts are missing")
    ] = ()
    output: Annotated[
        str | None,
        Field(description="The file with the database, or with the text of the template"),
    ] = None
    size: Annotated[int | None, Field(description="Bytes of this file")] = None
    status: Annotated[
        ManifestStatus | None, Field(description="The outcome for the file of a template")
    ] = None

    def warnings(self) -> Iterator[str]:
        """Yield the reasons for missing rows."""
        if self.limit is not None:
            yield f"rows are missing: {_LIMITS[self.limit]} ended the query"
        yield from (f"facts are missing: {error}" for error in self.unreadable)


def query_table(report: QueryReport) -> Iterator[str]:
    """Yield the rows in columns, or the written file."""
    if report.output is not None and report.size is not None:
        size = f"{report.size / 1e6:.1f} MB"
        yield f"{report.output}: {size if report.status is None else report.status}"
    elif report.columns:
        yield from columns([[printable(cell) for cell in row] for row in _rows(report)])


def query_csv(report: QueryReport) -> Iterator[str]:
    """Yield the lines of the rows as CSV. A value with line breaks has several lines."""
    for row in _rows(report):
        text = io.StringIO(newline="")
        # Older versions of Python do not quote line breaks that are not in the terminator.
        csv.writer(text, lineterminator="\r\n").writerow(row)
        yield from text.getvalue().removesuffix("\r\n").split("\n")


def query_markdown(report: QueryReport) -> Iterator[str]:
    """Yield the rows as a Markdown table."""
    yield from markdown_table(_rows(report))


def _rows(report: QueryReport) -> list[list[str]]:
    """Return the rows as text, the columns' names first. Null is empty."""
    rows = ([*report.columns], *report.rows)
    return [["" if cell is None else str(cell) for cell in row] for row in rows]


QUERY_TEXTS: dict[str, Callable[[QueryReport], Iterable[str]]] = {
    "table": query_table,
    "csv": query_csv,
    "markdown": query_markdown,
}
