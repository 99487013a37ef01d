"""The report of export as text."""

from collections.abc import Iterator

from cudaredist.cli.text import columns
from cudaredist.commands.export.report import ExportReport


def export_text(report: ExportReport) -> Iterator[str]:
    """Yield a line for each file of an export."""
    yield from columns([(file.path, file.status, f"{file.size:,} bytes") for file in report.files])


def formats_text(report: ExportReport) -> Iterator[str]:
    """Yield the formats, and the templates with the commands that use them."""
    formats = [one for one in report.formats if one.command_line is None]
    yield from columns([(one.name, one.title.rstrip(".")) for one in formats])
    yield ""
    yield "Templates. Change the releases and packages of the query:"
    for one in report.formats:
        if one.command_line is not None:
            yield ""
            yield one.title
            yield f"  {one.command_line}"
