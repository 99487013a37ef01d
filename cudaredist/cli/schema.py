"""schema: the JSON Schemas of data files, of upstream's files and of reports."""

from cudaredist.cli.options import Options, argument
from cudaredist.cli.session import Session, command
from cudaredist.errors import EXIT_OK


def complete_schema(incomplete: str) -> list[str]:
    """Complete the name of a schema, for shells."""
    from cudaredist.schema.registry import schema_summaries

    return [name for name in schema_summaries() if name.startswith(incomplete)]


class SchemaOptions(Options):
    """The options of schema."""

    name: str | None = argument("Kind of file.", metavar="[NAME]", autocompletion=complete_schema)


@command(SchemaOptions)
def schema(options: SchemaOptions, session: Session) -> int:
    """Print the JSON Schema of a kind of file; without NAME, list the kinds.

    The kinds are our data files, NVIDIA's manifests (`manifest`), and the feature files that
    nixpkgs consumed (`legacy-features`).

    Examples:

        cudaredist schema

        cudaredist schema features > feature.schema.json

        cudaredist schema manifest > redistrib.schema.json
    """
    from cudaredist.errors import find_name
    from cudaredist.render.check_text import schemas_text
    from cudaredist.reports.manifest_reports import ListedSchema, SchemaReport
    from cudaredist.schema.registry import schema_summaries, shipped_schema

    summaries = schema_summaries()
    if options.name is not None:
        find_name("schema", options.name, summaries)
        session.console.result(shipped_schema(options.name))
    else:
        listed = (ListedSchema(name=name, summary=text) for name, text in summaries.items())
        session.show(SchemaReport(schemas=tuple(listed)), schemas_text)
    return EXIT_OK
