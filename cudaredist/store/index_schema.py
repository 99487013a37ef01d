"""The tables of the index, and its parts.

A part has the tables of one kind of document: symbols or APIs. They have most of the rows, and few
questions are about them. So the index begins without these tables, and a question about a missing
table adds its part.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from sqlite3 import Connection
from typing import Literal, TypeAlias, get_args

Part: TypeAlias = Literal["symbols", "api"]
"""The kind of its documents."""
PARTS: frozenset[Part] = frozenset(get_args(Part))
_PREFIXES: dict[Part, str] = {"symbols": "symbol", "api": "api_"}
"""The beginning of the names of a part's tables."""

_table_of = re.compile(r"^CREATE (?:TABLE|INDEX \w+ ON) (\w+)", re.MULTILINE).search
_missing_table = re.compile(r"no such table: (?:\w+\.)?(\w+)").fullmatch


def index_schema() -> str:
    """Return the commands that create the tables of the index, with their comments."""
    return (resources.files("cudaredist.store") / "facts_index.sql").read_text("utf-8")


def create_tables(connection: Connection, part: Part | None = None) -> None:
    """Create the tables of a part, by default all that belong to no part, and the views."""
    statements = (text for own, text in _statements() if own == part)
    connection.executescript("".join(statements))


@contextmanager
def without_indexes(connection: Connection) -> Iterator[None]:
    """Remove the indexes of the tables, and create them again at the end.

    To add many rows is faster without them.
    """
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    indexes = dict(connection.execute(query))
    for name in indexes:
        connection.execute(f"DROP INDEX {name}")
    yield
    for statement in indexes.values():
        connection.execute(statement)


def stored_parts(connection: Connection) -> frozenset[Part]:
    """Return the parts with tables in a database."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return frozenset(part for (name,) in rows if (part := part_of(name)))


def missing_part(error: sqlite3.Error | sqlite3.Warning, connection: Connection) -> Part | None:
    """Return the part with the table that an error misses, if the database does not have it."""
    match = _missing_table(str(error))
    part = part_of(match[1]) if match else None
    return None if part is None or part in stored_parts(connection) else part


def part_of(table: str) -> Part | None:
    """Return the part of a table, None if it belongs to no part."""
    return next((part for part, prefix in _PREFIXES.items() if table.startswith(prefix)), None)


@cache
def _statements() -> tuple[tuple[Part | None, str], ...]:
    """Return the statements of the schema with their parts. A view belongs to no part."""
    statements = []
    for text in _complete(index_schema()):
        match = _table_of(text)
        statements.append((part_of(match[1]) if match else None, text))
    return tuple(statements)


def _complete(schema: str) -> Iterator[str]:
    """Yield the statements of a schema."""
    text = ""
    for line in schema.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""
