"""The report of which as text."""

from collections.abc import Iterator, Sequence

from cudaredist.cli.text import columns, grouped
from cudaredist.commands.which.report import SymbolHit, WhichReport
from cudaredist.errors import EXIT_INCOMPLETE
from cudaredist.primitives import place_name


def symbol_hits_text(hits: Sequence[SymbolHit]) -> Iterator[str]:
    """Yield the releases that export each symbol, a line for each library."""
    platforms: dict[tuple[str, ...], list[str]] = {}
    for hit in hits:
        library = f"{hit.library} (stub)" if hit.stub else hit.library
        last = hit.last if hit.is_newest else f"{hit.last} (removed)"
        gaps = hit.releases if " " in hit.releases else ""
        symbol = (hit.demangled or hit.symbol) + hit.version
        key = (symbol, library, hit.package, hit.first, last, gaps)
        platforms.setdefault(key, []).append(place_name(hit.platform, hit.variant))
    yield from columns(
        [
            ("symbol", "library", "package", "first", "last", "releases", "platforms"),
            *((*key, " ".join(names)) for key, names in platforms.items()),
        ]
    )


def which_text(report: WhichReport) -> Iterator[str]:
    """Yield the providers of a file or symbol by package, platform and output."""
    if report.symbols:
        yield from symbol_hits_text(report.symbols)
        return
    labels = grouped(
        ((hit.redist, hit.package, hit.output, hit.path, hit.id.place), hit.release)
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
