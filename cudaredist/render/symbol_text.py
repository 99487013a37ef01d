"""The tables of symbols, and the releases that export a symbol, as text."""

from collections import Counter
from collections.abc import Iterator, Sequence

from cudaredist.diffs.comparable import place_name
from cudaredist.render.common import columns
from cudaredist.reports.symbol_reports import SymbolHit, SymbolReport

_SHOWN = 20


def symbols_text(report: SymbolReport) -> Iterator[str]:
    """Yield the tables that changed, and the number of archives."""
    yield from _names(f"table {report.status.replace('-', ' ')}", report.changed)
    yield from _names("table removed", report.removed)
    yield from _names("no table, by its name", report.unnamed)
    statuses = Counter(one.status for one in report.archives)
    counts = [f"{report.known:,} known", *(f"{n:,} {s}" for s, n in sorted(statuses.items()))]
    yield f"archives of {report.releases} releases: {', '.join(counts)}"
    yield (
        f"symbols: {report.tables:,} libraries, {len(report.changed):,} changed; "
        f"{report.archives_read:,} archives read, {report.fetched_bytes:,} bytes"
    )


def _names(title: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"{title}: {name}" for name in names[:_SHOWN])
    if len(names) > _SHOWN:
        yield f"{title}: and {len(names) - _SHOWN:,} more"


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
