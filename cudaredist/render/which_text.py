"""Reports on providers and releases as text."""

import json
from collections.abc import Iterator

from cudaredist.errors import EXIT_INCOMPLETE
from cudaredist.redists import NVIDIA_BASE
from cudaredist.render.common import columns, grouped
from cudaredist.render.symbol_text import symbol_hits_text
from cudaredist.reports.answer_reports import WhichReport
from cudaredist.reports.manifest_reports import VersionsReport


def which_text(report: WhichReport) -> Iterator[str]:
    """Yield the providers of a file or symbol by package, platform and output."""
    if report.symbols:
        yield from symbol_hits_text(report.symbols)
        return
    labels = grouped(
        ((hit.redist, hit.package, hit.output, hit.path, hit.place), hit.release)
        for hit in report.hits
    )
    rows: list[tuple[str, ...]] = [("redist", "package", "output", "file", "platform", "releases")]
    rows += [(*key, " ".join(releases)) for key, releases in sorted(labels.items())]
    if labels:
        yield from columns(rows)
    elif report.exit_code == EXIT_INCOMPLETE:
        yield f"the provider of {report.name} is unknown"
    elif report.symbol is not None:
        yield f"no local release exports {report.symbol}"
    elif report.outside is None:
        yield f"no local package provides {report.name}"
    if report.outside is not None:
        provider = report.outside.provider
        verb = "" if provider is None else f" is provided by {provider}"
        yield f"{report.name}{verb}: {report.outside.reason}"
    if report.suggestions:
        yield f"did you mean {' or '.join(report.suggestions)}?"
    if report.hint is not None and report.outside is None:
        yield (
            f"some files of {report.unknown} archives are unknown; run `{report.hint}` to inspect "
            "them, with --version or --package to inspect fewer"
        )


def versions_text(report: VersionsReport) -> Iterator[str]:
    """Yield the release lines, local and upstream."""
    rows = [("redist", "line", "local", "upstream", "state")]
    rows += [
        (line.redist, line.line, line.held or "-", line.upstream or "-", line.status)
        for line in report.lines
    ]
    yield from columns(rows)
    if report.absent:
        yield f"not at this source: {', '.join(report.absent)}"


def versions_renovate(report: VersionsReport) -> Iterator[str]:
    """Yield the releases of one redistributable for Renovate's custom data source.

    Without a listing, yields nothing: an empty list would mean that all releases are gone.
    """
    for labels in report.releases.values():
        releases = [{"version": label} for label in labels]
        yield json.dumps({"releases": releases, "homepage": NVIDIA_BASE}, indent=2)
