"""The report of export as text."""

from collections.abc import Iterator

from cudaredist.cli.text import columns
from cudaredist.commands.export.report import ExportReport


def export_text(report: ExportReport) -> Iterator[str]:
    """Yield a line for each file of an export."""
    yield from columns([(file.path, file.status, f"{file.size:,} bytes") for file in report.files])
