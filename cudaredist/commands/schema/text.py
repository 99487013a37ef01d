"""The report of schema as text."""

from collections.abc import Iterator

from cudaredist.cli.text import columns
from cudaredist.commands.schema.report import SchemaReport


def schemas_text(report: SchemaReport) -> Iterator[str]:
    """Yield the schemas with their summaries."""
    yield from columns([(schema.name, schema.summary) for schema in report.schemas])
