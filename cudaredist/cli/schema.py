"""schema: the JSON Schemas of data files, of upstream's files and of reports."""

from cudaredist.cli.options import Options, argument
from cudaredist.cli.session import Session, command
from cudaredist.errors import EXIT_OK


def complete_schema(incomplete: str) -> list[str]:
    """Complete the name of a schema, for shells."""
    return [name for name in _summaries() if name.startswith(incomplete)]


class SchemaOptions(Options):
    """The options of schema."""

    name: str | None = argument(
        "Kind of file, or report-COMMAND.", metavar="[NAME]", autocompletion=complete_schema
    )


@command(SchemaOptions)
def schema(options: SchemaOptions, session: Session) -> int:
    """Print the JSON Schema of a kind of file or of a report; without NAME, list the kinds.

    The kinds are our data files, NVIDIA's manifests (`manifest`), the feature files that nixpkgs
    consumed (`legacy-features`), the reports that commands print with --json (`report-build`), and
    the document that replaces a report if a command ends with an error (`report-error`).

    Examples:

        cudaredist schema

        cudaredist schema features > feature.schema.json

        cudaredist schema manifest > redistrib.schema.json

        cudaredist schema report-check > check.schema.json
    """
    from cudaredist.errors import find_name
    from cudaredist.render.check_text import schemas_text
    from cudaredist.reports.manifest_reports import ListedSchema, SchemaReport
    from cudaredist.schema.registry import shipped_schema

    summaries = _summaries()
    if options.name is not None:
        find_name("schema", options.name, summaries)
        session.console.result(shipped_schema(options.name))
    else:
        listed = (ListedSchema(name=name, summary=text) for name, text in summaries.items())
        session.show(SchemaReport(schemas=tuple(listed)), schemas_text)
    return EXIT_OK


def _summaries() -> dict[str, str]:
    from cudaredist.reports.report_kinds import report_summaries
    from cudaredist.schema.registry import schema_summaries

    return dict(sorted((schema_summaries() | report_summaries()).items()))
