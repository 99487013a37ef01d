"""The report of query as text."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator

from cudaredist.cli.text import columns, markdown_table
from cudaredist.commands.query.report import QueryReport
from cudaredist.errors import printable


def query_table(report: QueryReport) -> Iterator[str]:
    """Yield the rows in columns, or the written file."""
    if report.output is not None and report.size is not None:
        yield f"{report.output}: {report.size / 1e6:.1f} MB"
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
