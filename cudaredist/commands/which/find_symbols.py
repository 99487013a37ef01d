"""which --symbol: the libraries and releases that export a symbol."""

from collections.abc import Iterator

from cudaredist.commands.which.report import SymbolHit, WhichReport
from cudaredist.commands.which.search import Search
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, IncompleteError, UnknownNameError
from cudaredist.hints import command_line
from cudaredist.primitives import ArchiveId, Version, parse_label
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.tables.symbols.symbol_table import Column, SymbolColumns, ranges_of


def find_symbols(pattern: SymbolPattern, search: Search) -> WhichReport:
    """Return the libraries that export the symbols of a pattern, with the releases of each.

    Raises `IncompleteError` without tables, and `UnknownNameError` for an unknown platform.
    """
    index, store, platform = search.index, search.index.store, search.platform
    symbols = LayeredSymbols(store.symbol_paths)
    if not symbols.sonames():
        hint = f"run `{command_line('update-symbols', channel=store.channel)}`"
        raise IncompleteError(f"{store.symbol_path}: no tables of symbols", hint=hint)
    sonames = index.exporting(pattern)
    platforms: set[str] = set()
    hits: list[SymbolHit] = []

    def is_dropped(column: Column) -> bool:
        provider = column.provider
        if provider.channel != store.channel:
            return True
        if search.redists and provider.redist not in search.redists:
            return True
        if platform is not None and provider.platform != platform:
            return True
        if search.usable is None:
            return False
        archive = ArchiveId(provider.package, provider.platform, provider.variant or None)
        return not search.usable.has(provider.redist, parse_label(column.label), archive)

    for table in symbols.tables(sonames).values():
        # The platforms of the dropped columns are known, too.
        platforms |= {column.provider.platform for column in table.columns}
        table.drop(is_dropped)
        hits += _hits(table, pattern)
    if platform is not None and sonames and platform not in platforms:
        raise UnknownNameError("platform of the tables", platform, platforms)
    projects = {
        (one.redist, str(one.label), one.archive.id): one.archive.project
        for one in index.archives(
            {hit.redist for hit in hits},
            "package IN (SELECT value FROM json_each(?))",
            {hit.package for hit in hits},
        )
    }
    hits = [
        hit.model_copy(update={"project": projects.get((hit.redist, hit.last, _archive_of(hit)))})
        for hit in hits
    ]
    return WhichReport(
        name=pattern.text,
        cuda=search.cuda,
        hits=(),
        symbol=pattern.text,
        symbols=tuple(sorted(hits, key=_order)),
        unknown=0,
        suggestions=() if hits else index.similar_symbols(pattern.text),
        exit_code=EXIT_OK if hits else EXIT_FINDINGS,
    )


def _hits(table: SymbolColumns, pattern: SymbolPattern) -> Iterator[SymbolHit]:
    bits_by_provider = table.bits_by_provider()
    for export, mask in table.exports.items():
        if not pattern.fits(export.name):
            continue
        for provider, bits in bits_by_provider.items():
            labels = [label for label, bit in bits if mask & bit]
            if not labels:
                continue
            yield SymbolHit(
                symbol=export.name,
                demangled=pattern.readable(export.name),
                version=export.version,
                library=table.soname,
                redist=provider.redist,
                package=provider.package,
                platform=provider.platform,
                variant=provider.variant or None,
                stub=provider.stub,
                first=labels[0],
                last=labels[-1],
                releases=ranges_of(mask, bits),
                is_newest=labels[-1] == bits[-1][0],
            )


def _archive_of(hit: SymbolHit) -> ArchiveId:
    return ArchiveId(hit.package, hit.platform, hit.variant)


def _order(hit: SymbolHit) -> tuple[object, ...]:
    variant = hit.variant or ""
    return hit.symbol, hit.redist, hit.library, hit.platform, variant, Version.parse(hit.first)
