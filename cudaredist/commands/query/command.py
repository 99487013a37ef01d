"""query: ask the index of all facts in SQL."""

from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    cache_dir_option,
    format_option,
    output_flag,
    output_path_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command

QueryFormat: TypeAlias = Literal["table", "csv", "json", "markdown"]


class QueryOptions(Options):
    """Options of query."""

    typical = ("tables", "format", "output", "max_rows", "data_dir")

    sql: str | None = argument("One SELECT statement of SQLite.", metavar="[SQL]")
    tables: bool = output_flag("List the tables and columns.")
    format: QueryFormat = format_option("Output: table, csv, json or markdown.", default="table")
    output: Path | None = output_path_option("Write the database to a file for other programs.")
    max_rows: int = select_option("Rows to print.", min=1, default=1000)
    max_seconds: float = select_option(
        "Seconds until the query ends.", min=0.1, max=86400, default=10
    )
    cache_dir: Path | None = cache_dir_option()
    data: Data = field(default_factory=Data)


REFUSED: tuple[Refusal[QueryOptions], ...] = (
    (
        lambda o: not (o.sql or o.tables or o.output),
        "query requires SQL, --tables or --output",
        "run `cudaredist query --tables`",
    ),
    (lambda o: o.sql and o.tables, "SQL cannot be combined with --tables", ["--tables"]),
    (lambda o: o.tables and o.output, "--tables cannot be combined with --output", ["--tables"]),
    (lambda o: o.sql and o.output, "SQL cannot be combined with --output", ["--output"]),
    (
        lambda o: o.output and o.format != "table",
        "--format cannot be combined with --output",
        ["--format"],
    ),
)


@command(QueryOptions, REFUSED)
def query(options: QueryOptions, session: Session) -> int:
    """Ask the index of all facts in SQL.

    Examples:

        cudaredist query "SELECT label, date FROM releases WHERE redist = 'nccl'"
        cudaredist query --tables
        cudaredist query --output facts.db

    The index has all facts of the data folder and of the shipped data: releases, archives, files,
    libraries, device code, symbols, GPUs and host compilers. Queries only read. The exit code is 3
    if a limit of rows or time ends the query, and 5 if a file of the data is broken, so that its
    facts are missing.
    """
    from cudaredist.commands.query.report import QUERY_TEXTS
    from cudaredist.commands.query.run_query import list_tables, run_query, write_database

    if options.tables:
        report = list_tables()
    else:
        index = session.open_index(options.data, options.cache_dir)
        if options.output is not None:
            report = write_database(index, options.output)
        else:
            sql, rows, seconds = options.sql or "", options.max_rows, options.max_seconds
            report = run_query(index, sql, max_rows=rows, max_seconds=seconds)
    texts = QUERY_TEXTS.get(options.format)
    return session.finish(report, texts, warnings=report.warnings())
