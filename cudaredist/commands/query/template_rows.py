"""Rows of the index for templates, by the names of their columns."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cudaredist.commands.query.report import Cell, QueryReport
from cudaredist.commands.query.run_query import run_query
from cudaredist.errors import IncompleteError, UsageError
from cudaredist.store.facts_index import Index
from cudaredist.words import shown

_FEWER_ROWS = "select fewer rows, for example with `WHERE label = '12.9.1'`"


class TemplateQueries(NamedTuple):
    """The queries of a template, and their limits."""

    facts: Index
    max_rows: int
    max_seconds: float
    hint: str = _FEWER_ROWS
    """What to do if a query exceeds a limit."""

    def ask(self, sql: str, seconds: float) -> Sequence[Mapping[str, Cell]]:
        """Return the rows of a query in a template, which may take some seconds.

        Raises the errors of `run_query` and `rows_by_name`.
        """
        limit = min(seconds, self.max_seconds)
        report = run_query(self.facts, sql, max_rows=self.max_rows, max_seconds=limit)
        return self.rows_by_name(sql, report)

    def rows_by_name(self, sql: str, report: QueryReport) -> Sequence[Mapping[str, Cell]]:
        """Return rows with their columns by name.

        Raises `UsageError` for two columns of one name, and `IncompleteError` if rows are missing:
        a file that is written from them would look complete.
        """
        twice = [name for name, number in Counter(report.columns).items() if number > 1]
        if twice:
            hint = f"name one of them with AS, for example `{twice[0]} AS other_{twice[0]}`"
            raise UsageError(f"two columns have the name {twice[0]}", hint=hint)
        if report.limit is not None:
            reason = {
                "rows": f"it has more than {self.max_rows:,} rows",
                "time": "it takes too many seconds",
                "size": "its rows have more than 64 MiB of text",
            }[report.limit]
            raise IncompleteError(f"the query {shown(sql)} was ended: {reason}", hint=self.hint)
        return [dict(zip(report.columns, row, strict=True)) for row in report.rows]
