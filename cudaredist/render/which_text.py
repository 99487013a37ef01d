"""Who provides a file, and which releases there are."""

import json
from collections.abc import Iterator

from cudaredist.errors import EXIT_INCOMPLETE
from cudaredist.redists import NVIDIA_BASE
from cudaredist.render.common import columns
from cudaredist.reports.answer_reports import WhichReport
from cudaredist.reports.manifest_reports import VersionsReport


def which_text(report: WhichReport) -> Iterator[str]:
    """Yield who provides a file, a line for each package, place and output."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for hit in report.hits:
        place = hit.platform if hit.variant is None else f"{hit.platform}/{hit.variant}"
        labels.setdefault((hit.redist, hit.package, hit.output, hit.path, place), []).append(
            hit.release
        )
    rows: list[tuple[str, ...]] = [("redist", "package", "output", "file", "platform", "releases")]
    rows += [(*key, " ".join(found)) for key, found in sorted(labels.items())]
    if labels:
        yield from columns(rows)
    elif report.exit_code == EXIT_INCOMPLETE:
        yield f"the provider of {report.name} is not known"
    elif report.outside is None:
        yield f"nothing held provides {report.name}"
    if report.outside is not None:
        provider = report.outside.provider or f"the {report.outside.owner}"
        yield f"{report.name} is provided by {provider}: {report.outside.reason}"
    if report.suggestions:
        yield f"did you mean {' or '.join(report.suggestions)}?"
    if report.hint is not None and report.outside is None:
        yield (
            f"of {report.unknown} archives not all files are known; run `{report.hint}` to read "
            "them, with --version or --package to read fewer"
        )


def versions_text(report: VersionsReport) -> Iterator[str]:
    """Yield each release line, held and upstream."""
    rows = [("redist", "line", "held", "upstream", "state")]
    rows += [
        (line.redist, line.line, line.held or "-", line.upstream or "-", line.status)
        for line in report.lines
    ]
    yield from columns(rows)
    if report.absent:
        yield f"not at this source: {', '.join(report.absent)}"


def versions_renovate(report: VersionsReport, redist: str) -> str:
    """Return what Renovate's custom data source reads: the releases of one redistributable."""
    releases = [{"version": version} for version in report.releases[redist]]
    document = {"releases": releases, "homepage": NVIDIA_BASE}
    return json.dumps(document, indent=2) + "\n"
