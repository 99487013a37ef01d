"""Rows of the index for templates, by the names of their columns."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cudaredist.commands.query.report import Cell, QueryReport
from cudaredist.commands.query.run_query import run_query
from cudaredist.errors import IncompleteError, UsageError
from cudaredist.exporters.template import Ask
from cudaredist.store.facts_index import Index

MAX_ROWS = 1000
"""Rows of a query of a template, by default."""


def rows_by_name(report: QueryReport) -> Sequence[Mapping[str, Cell]]:
    """Return rows with their columns by name.

    Raises `UsageError` for two columns of one name, and `IncompleteError` if rows are missing: a
    file that is written from them would look complete.
    """
    twice = [name for name, number in Counter(report.columns).items() if number > 1]
    if twice:
        hint = f"name one of them with AS, for example `{twice[0]} AS other_{twice[0]}`"
        raise UsageError(f"two columns have the name {twice[0]}", hint=hint)
    if report.limit is not None:
        warning = next(report.warnings())
        hint = "use a higher --max-rows or --max-seconds, or select fewer rows"
        raise IncompleteError(f"the template is not rendered: {warning}", hint=hint)
    return [dict(zip(report.columns, row, strict=True)) for row in report.rows]


def row_reader(index: Index, *, max_rows: int, max_seconds: float) -> Ask:
    """Return the function that answers the queries of a template."""

    def ask(sql: str, seconds: float) -> Sequence[Mapping[str, Cell]]:
        limit = min(seconds, max_seconds)
        return rows_by_name(run_query(index, sql, max_rows=max_rows, max_seconds=limit))

    return ask
