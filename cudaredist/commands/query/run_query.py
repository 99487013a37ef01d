"""query: run a statement that only reads the index."""

import math
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from cudaredist.commands.query.report import Cell, Limit, QueryReport
from cudaredist.errors import (
    EXIT_CONTENT,
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    ReadError,
    UsageError,
    WritingTo,
    worst_exit_code,
)
from cudaredist.formats.names import ManifestStatus
from cudaredist.hints import again, command_line
from cudaredist.private import open_file
from cudaredist.store.facts_index import Index
from cudaredist.store.files import write_output
from cudaredist.store.index_schema import PARTS, index_schema, missing_part
from cudaredist.store.temporary_folders import temporary_folder

_TABLE = re.compile(r"\n\n((?:-- .*\n)++)CREATE (?:TABLE|VIEW) (\w+)[^;]*")
_COLUMN = re.compile(r"^    (\w+) ([A-Z]+)(.*?),?(?: -- (.*))?$", re.MULTILINE)
_COLUMN_OF_VIEW = re.compile(r"^    \S.* AS (\w+),? -- (.*)$", re.MULTILINE)
_REFERENCE = re.compile(r"REFERENCES (\w+)")


def list_tables() -> QueryReport:
    """Return a row for each table and each column, with its meaning."""
    columns = ("table", "column", "type", "meaning")
    return QueryReport(columns=columns, rows=tuple(_rows()), exit_code=EXIT_OK)


def _rows() -> Iterator[tuple[str, str | None, str | None, str]]:
    meanings: dict[str, str] = {}
    types: dict[str, str] = {}
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(index_schema())
        for match in _TABLE.finditer(index_schema()):
            table = match[2]
            yield table, None, None, " ".join(match[1].replace("-- ", "").split())
            # Other columns of a view have the meaning and type that they have in the tables above
            # it. Releases of SQLite state different types for expressions.
            for name, kind, definition, comment in _COLUMN.findall(match[0]):
                types[name], meanings[name] = kind, _meaning(definition, comment)
            meanings |= dict(_COLUMN_OF_VIEW.findall(match[0]))
            for _, name, *_ in database.execute(f"PRAGMA table_info({table})"):
                yield table, name, types.get(name), meanings[name]


def _meaning(definition: str, comment: str) -> str:
    other_table = _REFERENCE.search(definition)
    parts = []
    if other_table:
        parts.append(f"row of `{other_table[1]}`")
    elif "PRIMARY KEY" in definition:
        parts.append("row")
    if comment:
        parts.append(comment)
    return "; ".join(parts)


_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_is_about_all_parts = re.compile(r"documents|sqlite_|pragma_", re.IGNORECASE).search
"""Matches a statement about all documents or tables, so that none of them can be missing."""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR}
_POWERFUL = {"load_extension", "fts3_tokenizer"}
_TABLES_OF_JSON = "SELECT 1 FROM json_each('1'), json_tree('1')"
"""Creates the tables of these two functions, which a restricted query cannot."""
_LONGEST_VALUE = 64 << 10
"""Bytes of a value, four times the longest in the data.

No limit of time interrupts a function. `instr` takes 0.03 s for two such values, and 28 s for two
of half a megabyte.
"""
_MOST_FUNCTIONS = 100
"""Uses of functions in a statement, all of which may run between two checks of the time."""
_REASONS = {
    sqlite3.SQLITE_AUTH: "queries only read, so use SELECT",
    sqlite3.SQLITE_TOOBIG: f"a value has more than {_LONGEST_VALUE:,} bytes",
}
_LARGEST_RESULT = 64 << 20
"""Characters of text in all rows."""
_STEPS = 200
"""Steps of a query between two checks of the time, which are a few rows."""
_FORMAT, _APPLICATION = b"SQLite format 3\0", b"CUDR"
"""The beginning of a database, and the index's own mark in byte 68."""


def run_query(index: Index, sql: str, *, max_rows: int, max_seconds: float) -> QueryReport:
    """Return the rows of a SELECT statement, up to a limit.

    Raises `UsageError` for a wrong statement, and for one that does not only read.
    """
    if _is_about_all_parts(sql):
        index.database.add_parts(PARTS)
    columns, rows, limit = index.database.read(
        lambda database: _execute(database, sql, max_rows, max_seconds)
    )
    return _report(index, columns=columns, rows=tuple(rows), limit=limit)


def write_database(index: Index, output: Path) -> QueryReport:
    """Write the index to a new file, or to that of an earlier run.

    Raises `UsageError` for any other file, `ReadError` and `WriteError`.
    """
    try:
        with open_file(output, follow=True) as file:
            header = file.read(72)
        if not header.startswith(_FORMAT) or header[68:] != _APPLICATION:
            hint = f"run `{again(output='new.db')}`"
            raise UsageError(f"{output} is not a database of cudaredist; it was kept", hint=hint)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ReadError(output, error) from error
    with temporary_folder() as folder:
        path = folder / "facts.db"
        # The message must not name a folder that is removed before the user can look at it.
        with WritingTo(folder.parent / "temporary file"):
            index.database.write(path)
            data = path.read_bytes()
    write_output(output, data)
    return _report(index, output=str(output), size=len(data))


def written_report(
    report: QueryReport, output: Path, size: int, status: ManifestStatus
) -> QueryReport:
    """Return the report of a query whose rows a template wrote to a file."""
    is_stale = EXIT_FINDINGS if status == "would-write" else EXIT_OK
    code = worst_exit_code((report.exit_code, is_stale))
    written = report.changed(output=str(output), size=size, status=status, exit_code=code)
    return written.changed(columns=(), rows=())


def _report(
    index: Index,
    limit: Limit | None = None,
    **fields: Any,  # noqa: ANN401 - the fields of the report
) -> QueryReport:
    broken = tuple(document.error for document in index.unreadable())
    codes = (EXIT_INCOMPLETE if limit else EXIT_OK, EXIT_CONTENT if broken else EXIT_OK)
    code = worst_exit_code(codes)
    return QueryReport(limit=limit, unreadable=broken, exit_code=code, **fields)


def _execute(
    database: sqlite3.Connection, sql: str, max_rows: int, max_seconds: float
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]], Limit | None]:
    """Return the columns, the rows, and the limit that ended the query."""
    deadline = time.monotonic() + max_seconds
    columns: tuple[str, ...] = ()
    rows: list[tuple[Cell, ...]] = []
    size = 0
    database.execute(_TABLES_OF_JSON)
    authorizer = _Authorizer()
    database.set_authorizer(authorizer)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    database.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    database.text_factory = lambda data: data.decode(errors="backslashreplace")
    try:
        with closing(database.execute(sql)) as cursor:
            columns = tuple(column[0] for column in cursor.description or ())
            for row in cursor:
                if len(rows) == max_rows:
                    return columns, rows, "rows"
                cells = tuple(map(_cell, row))
                size += sum(len(cell) for cell in cells if isinstance(cell, str))
                if size > _LARGEST_RESULT:
                    return columns, rows, "size"
                rows.append(cells)
    except UnicodeEncodeError as error:
        raise _refusal("it is not in UTF-8") from error
    except (sqlite3.Error, sqlite3.Warning) as error:
        if missing_part(error, database) is not None:
            raise
        _require_end_of_time(error, deadline, authorizer)
        return columns, rows, "time"
    finally:
        database.set_progress_handler(None, 0)
        database.set_authorizer(None)
    if not columns:
        raise _refusal("the statement is empty")
    return columns, rows, None


def _require_end_of_time(
    error: sqlite3.Error | sqlite3.Warning, deadline: float, authorizer: "_Authorizer"
) -> None:
    """Raise the error of a statement, unless the limit of time ended it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        raise error
    if authorizer.functions > _MOST_FUNCTIONS:
        raise _refusal(f"it uses more than {_MOST_FUNCTIONS} functions") from error
    if code != sqlite3.SQLITE_INTERRUPT:
        raise _refusal(_REASONS.get(code, str(error))) from error
    if time.monotonic() <= deadline:
        raise KeyboardInterrupt from error


def _refusal(reason: str) -> UsageError:
    hint = f"for tables and columns, run `{command_line('query', '--tables')}`"
    return UsageError(f"invalid SQL: {reason}", hint=hint)


class _Authorizer:
    """Allows a statement to read, but not to change, attach or load anything."""

    def __init__(self) -> None:
        self.functions = 0

    def __call__(self, action: int, _: str | None, name: str | None, *__: object) -> int:
        self.functions += action == sqlite3.SQLITE_FUNCTION
        is_safe = action in _READS and name not in _POWERFUL and self.functions <= _MOST_FUNCTIONS
        return sqlite3.SQLITE_OK if is_safe else sqlite3.SQLITE_DENY


def _cell(value: Cell | bytes) -> Cell:
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
