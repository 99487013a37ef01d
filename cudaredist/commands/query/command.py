"""query: ask the index of all facts in SQL."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    between_option,
    cache_dir_option,
    check_option,
    format_option,
    output_flag,
    output_option,
    output_path_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command

if TYPE_CHECKING:
    from cudaredist.store.facts_index import Index

QueryFormat: TypeAlias = Literal["table", "csv", "json", "markdown"]


class QueryOptions(Options):
    """Options of query."""

    typical = ("tables", "format", "template", "output", "data_dir")

    sql: str | None = argument("One SELECT statement of SQLite.", metavar="[SQL]")
    tables: bool = output_flag("List the tables and columns.")
    format: QueryFormat = format_option("Output: table, csv, json or markdown.", default="table")
    output: Path | None = output_path_option("File for the database, or for a template's text.")
    template: str | None = output_option(
        "Render the rows with a template: a file or a name.", metavar="FILE|NAME"
    )
    between: tuple[str, str] | None = between_option()
    check: bool = check_option()
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
    (
        lambda o: o.template is not None and not o.sql,
        "--template requires SQL",
        "run `cudaredist export --list` for the queries of shipped templates",
    ),
    (
        lambda o: o.template is not None and o.format != "table",
        "--format cannot be combined with --template",
        ["--format"],
    ),
    (
        lambda o: o.between is not None and (o.template is None or o.output is None),
        "--between requires --template and --output",
        ["--between"],
    ),
    (
        lambda o: o.check and (o.template is None or o.output is None),
        "--check requires --template and --output",
        ["--check"],
    ),
    (
        lambda o: o.json and o.template is not None and o.output is None,
        "--json requires --output if there is a template",
        ["--json"],
    ),
    (
        lambda o: o.sql and o.output and o.template is None,
        "SQL cannot be combined with --output, unless there is a --template",
        ["--output"],
    ),
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
    libraries, device code, symbols, GPUs and host compilers. A Jinja template gets the result as
    `rows`, and can run more queries with `query("SELECT ...")`. Queries only read. The exit code is
    3 if a limit of rows or time ends the query, and 5 if a file of the data is broken, so that its
    facts are missing.
    """
    from cudaredist.commands.query.report import QUERY_TEXTS
    from cudaredist.commands.query.run_query import list_tables, run_query, write_database

    if options.tables:
        report = list_tables()
    else:
        index = session.open_index(options.data, options.cache_dir)
        if options.template is not None:
            return _render(options, index, session)
        if options.output is not None:
            report = write_database(index, options.output)
        else:
            sql, rows, seconds = options.sql or "", options.max_rows, options.max_seconds
            report = run_query(index, sql, max_rows=rows, max_seconds=seconds)
    texts = QUERY_TEXTS.get(options.format)
    return session.finish(report, texts, warnings=report.warnings())


def _render(options: QueryOptions, index: "Index", session: Session) -> int:
    """Render rows with a template, and print or write the text."""
    from cudaredist.commands.query.report import query_table
    from cudaredist.commands.query.run_query import run_query, written_report
    from cudaredist.commands.query.template_rows import TemplateQueries
    from cudaredist.exporters.template import read_template, render
    from cudaredist.exporters.template_output import write_text

    template = read_template(options.template or "")
    rows, seconds = options.max_rows, options.max_seconds
    sql = options.sql or ""
    report = run_query(index, sql, max_rows=rows, max_seconds=seconds)
    if not report.rows:
        session.console.warning("the query has no rows")
    hint = "use a higher --max-rows or --max-seconds, or select fewer rows"
    queries = TemplateQueries(index, rows, seconds, hint)
    text = render(template, {"rows": queries.rows_by_name(sql, report)}, queries.ask)
    if options.output is None:
        session.close()
        session.console.result(text.decode())
        return report.exit_code
    may_write = not options.check
    status, content = write_text(options.output, text, options.between, may_write=may_write)
    report = written_report(report, options.output, len(content), status)
    return session.finish(report, query_table, warnings=report.warnings())
