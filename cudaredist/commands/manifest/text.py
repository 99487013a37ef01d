"""The report of manifest as text."""

from collections.abc import Iterator

from cudaredist.commands.manifest.report import ManifestReport
from cudaredist.primitives import place_name


def manifest_text(report: ManifestReport) -> Iterator[str]:
    """Yield the archives that were read, and the next command."""
    yield f"{report.redist} {report.release}  {report.version}  {report.path}  {report.status}"
    for archive in report.archives:
        place = place_name(archive.platform, archive.variant)
        yield f"  {place}  {archive.size:,} bytes  {archive.sha256}"
    yield f"to use it, run `{report.next}`"
