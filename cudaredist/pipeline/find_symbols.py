"""which --symbol: the libraries that export a symbol, and since when."""

from collections.abc import Iterator, Sequence

from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, IncompleteError, UnknownNameError
from cudaredist.pipeline.selection import Selection
from cudaredist.primitives import Version, parse_label
from cudaredist.redists import CUDA
from cudaredist.reports.answer_reports import WhichReport
from cudaredist.reports.symbol_reports import SymbolHit
from cudaredist.store.data_folder import Store
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.tables.symbols.symbol_table import Column, SymbolColumns, release_ranges


def find_symbols(
    pattern: SymbolPattern,
    store: Store,
    *,
    redists: Sequence[str] = (),
    cuda: Selection | None = None,
    platform: str | None = None,
) -> WhichReport:
    """Return the libraries that export the symbols of a pattern, with the releases of each.

    Raises `IncompleteError` without tables, and `UnknownNameError` for an unknown platform.
    """
    symbols = LayeredSymbols(store.symbol_paths)
    if not symbols.sonames():
        raise IncompleteError(
            f"{store.symbol_path}: no tables of symbols", hint="run `cudaredist update-symbols`"
        )
    sonames = symbols.search(pattern)
    platforms: set[str] = set()
    hits: list[SymbolHit] = []
    for table in symbols.tables(sonames).values():
        platforms |= {column.provider.platform for column in table.columns}
        labels = {column.label for column in table.columns if column.provider.redist == CUDA}
        chosen = (
            {str(label) for label in cuda.of(sorted(map(parse_label, labels)))} if cuda else set()
        )

        def is_meant(column: Column, chosen: set[str] = chosen) -> bool:
            provider = column.provider
            return (
                provider.channel == store.channel
                and (not redists or provider.redist in redists)
                and (platform is None or provider.platform == platform)
                and (cuda is None or provider.redist != CUDA or column.label in chosen)
            )

        table.drop(lambda column: not is_meant(column))
        hits += _hits(table, pattern)
    if platform is not None and sonames and platform not in platforms:
        raise UnknownNameError("platform of the tables", platform, platforms)
    return WhichReport(
        name=pattern.text,
        hits=(),
        symbol=pattern.text,
        symbols=tuple(sorted(hits, key=_order)),
        unknown=0,
        exit_code=EXIT_OK if hits else EXIT_FINDINGS,
    )


def _hits(table: SymbolColumns, pattern: SymbolPattern) -> Iterator[SymbolHit]:
    newest = {
        provider: text.rpartition("..")[2].rpartition(" ")[2]
        for provider, text in release_ranges(table, -1).items()
    }
    for export, mask in table.exports.items():
        if not pattern.fits(export.name):
            continue
        for provider, text in release_ranges(table, mask).items():
            first = text.split(" ")[0].partition("..")[0]
            last = text.rpartition(" ")[2].rpartition("..")[2]
            yield SymbolHit(
                symbol=export.name,
                demangled=pattern.readable(export.name),
                version=export.version,
                library=table.soname,
                redist=provider.redist,
                package=provider.package,
                platform=provider.platform,
                variant=provider.variant or None,
                stub=provider.is_stub,
                first=first,
                last=last,
                releases=text,
                is_newest=last == newest[provider],
            )


def _order(hit: SymbolHit) -> tuple[object, ...]:
    variant = hit.variant or ""
    return hit.symbol, hit.redist, hit.library, hit.platform, variant, Version.parse(hit.first)
