"""which --symbol: the libraries that export a symbol, and the releases that do."""

from collections.abc import Iterator

from cudaredist.commands.which.report import SymbolHit, WhichReport
from cudaredist.commands.which.search import Search
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, IncompleteError, UnknownNameError
from cudaredist.hints import command_line
from cudaredist.primitives import ArchiveId, Version, parse_label
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.tables.symbols.symbol_table import Column, SymbolColumns, release_ranges


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
        channel, redist, package, place, variant, _ = column.provider
        label, archive = parse_label(column.label), ArchiveId(package, place, variant or None)
        return (
            channel != store.channel
            or redist not in (search.redists or {redist})
            or platform not in {None, place}
            or not (search.usable is None or search.usable.has(redist, label, archive))
        )

    for table in symbols.tables(sonames).values():
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
    newest = {provider: labels[-1][0] for provider, labels in table.labels().items()}
    for export, mask in table.exports.items():
        ranges = release_ranges(table, mask) if pattern.fits(export.name) else {}
        for provider, text in ranges.items():
            labels = text.replace("..", " ").split(" ")
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
                releases=text,
                is_newest=labels[-1] == newest[provider],
            )


def _archive_of(hit: SymbolHit) -> ArchiveId:
    return ArchiveId(hit.package, hit.platform, hit.variant)


def _order(hit: SymbolHit) -> tuple[object, ...]:
    variant = hit.variant or ""
    return hit.symbol, hit.redist, hit.library, hit.platform, variant, Version.parse(hit.first)
