"""schema: the JSON Schemas of the data files."""

from cudaredist.cli.options import Options, argument
from cudaredist.cli.session import Session, command
from cudaredist.errors import EXIT_OK


def complete_schema(incomplete: str) -> list[str]:
    """Complete the name of a kind of data file, for shells."""
    from cudaredist.schema.registry import FILE_KINDS

    return [name for name in FILE_KINDS if name.startswith(incomplete)]


class SchemaOptions(Options):
    """The options of schema."""

    name: str | None = argument(
        "Kind of data file.", metavar="[NAME]", autocompletion=complete_schema
    )


@command(SchemaOptions)
def schema(options: SchemaOptions, session: Session) -> int:
    """Print the JSON Schema of a kind of data file; without NAME, list the kinds.

    Examples:

        cudaredist schema

        cudaredist schema features > feature.schema.json
    """
    from cudaredist.render.check_text import kinds_json, kinds_text
    from cudaredist.schema.registry import FILE_KINDS, shipped_schema

    if options.name is not None:
        session.console.result(shipped_schema(options.name))
    elif options.json:
        session.console.result(kinds_json(FILE_KINDS.values()))
    else:
        session.console.lines(kinds_text(FILE_KINDS.values()))
    return EXIT_OK
