"""The report of runfile as text."""

from collections.abc import Iterator

from cudaredist.commands.runfile.report import RunfileReport


def runfile_text(report: RunfileReport) -> Iterator[str]:
    """Yield the record that was written."""
    record = report.record
    yield f"cuda {report.release}  {report.platform}  {report.status}  {record.size:,} bytes"
    yield f"  {record.sri}"
    yield f"  {record.url or 'address unknown; name it with --url'}"
