"""schema: print the JSON Schemas of data files, manifests and reports."""

from cudaredist.cli.options import Options, argument
from cudaredist.cli.session import Session, command
from cudaredist.errors import EXIT_OK


def complete_schema(incomplete: str) -> list[str]:
    """Complete the name of a schema in a shell."""
    return [name for name in _summaries() if name.startswith(incomplete)]


class SchemaOptions(Options):
    """Options of schema."""

    typical = ("json",)

    name: str | None = argument(
        "Kind of file, or report-COMMAND. Default: list all.",
        metavar="[NAME]",
        autocompletion=complete_schema,
    )


@command(SchemaOptions)
def schema(options: SchemaOptions, session: Session) -> int:
    """Print the JSON Schema of a data file or report.

    Examples:

        cudaredist schema
        cudaredist schema features > feature.schema.json
        cudaredist schema report-check > check.schema.json

    Schemas exist for cudaredist's data files, NVIDIA's manifests (`manifest`), the feature files of
    nixpkgs (`legacy-features`), the reports that commands print with --json (`report-build`), and
    the report of a failed command (`report-error`).
    """
    from cudaredist.commands.schema.report import ListedSchema, SchemaReport, schemas_text
    from cudaredist.errors import find_name
    from cudaredist.formats.registry import shipped_schema

    summaries = _summaries()
    if options.name is not None:
        find_name("schema", options.name, summaries)
        session.console.result(shipped_schema(options.name))
    else:
        rows = (ListedSchema(name=name, summary=text) for name, text in summaries.items())
        session.show(SchemaReport(schemas=tuple(rows)), schemas_text)
    return EXIT_OK


def _summaries() -> dict[str, str]:
    from cudaredist.commands.schema.report import report_summaries
    from cudaredist.formats.registry import schema_summaries
    from cudaredist.formats.settings import CONFIGURATION, Configuration

    configuration = {CONFIGURATION: str(Configuration.__doc__)}
    return dict(sorted((schema_summaries() | report_summaries() | configuration).items()))
