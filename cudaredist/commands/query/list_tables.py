"""query --tables: the tables of the index, from the comments of its schema."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from cudaredist.commands.query.report import QueryReport
from cudaredist.errors import EXIT_OK
from cudaredist.store.facts_index import index_schema

_TABLE = re.compile(r"((?:^-- .*\n)+)CREATE (?:TABLE|VIEW) (\w+)(?:[^;]*)", re.MULTILINE)
_COLUMN = re.compile(r"^    (\w+) [A-Z]+(.*?),?(?: -- (.*))?$", re.MULTILINE)
_REFERENCE = re.compile(r"REFERENCES (\w+)")


def list_tables() -> QueryReport:
    """Return a row for each table and each column, with its meaning."""
    columns = ("table", "column", "type", "meaning")
    return QueryReport(columns=columns, rows=tuple(_rows()), exit_code=EXIT_OK)


def _rows() -> Iterator[tuple[str, str | None, str | None, str]]:
    meanings: dict[str, str] = {}
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(index_schema())
        for match in _TABLE.finditer(index_schema()):
            table = match[2]
            yield table, None, None, " ".join(match[1].replace("-- ", "").split())
            # The columns of a view have the meaning that they have in the tables above it.
            meanings |= {name: _meaning(*rest) for name, *rest in _COLUMN.findall(match[0])}
            for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})"):
                yield table, name, kind or None, meanings[name]


def _meaning(definition: str, comment: str) -> str:
    row = _REFERENCE.search(definition)
    reference = f"row of `{row[1]}`" if row else "row" if "PRIMARY KEY" in definition else ""
    return "; ".join(filter(None, (reference, comment)))
