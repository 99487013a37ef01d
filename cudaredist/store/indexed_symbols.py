"""Tables of symbols by the index: only the symbols of a pattern. They need no models."""

from collections import defaultdict
from functools import reduce
from typing import NamedTuple

from cudaredist.formats.names import Channel
from cudaredist.grouping import grouped
from cudaredist.primitives import parse_label
from cudaredist.store.facts_index import Index, Question, condition_of_names
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.tables.symbols.symbol_table import Column, Export, Provider, SymbolColumns


class _Export(NamedTuple):
    symbol_group: int
    library: str
    version: str
    name: str


_EXPORTS = Question(
    _Export,
    """
    SELECT symbol_group, library, version, name
    FROM symbols JOIN symbol_groups ON id = symbol_group
    WHERE imported_from IS NULL AND {condition}
    ORDER BY symbol_group, symbols.rowid""",
)


class _Archive(NamedTuple):
    layer: str
    library: str
    provider: int
    channel: Channel
    redist: str
    package: str
    platform: str
    variant: str
    stub: int
    label: str
    archive: str
    is_read: int


_ARCHIVES = Question(
    _Archive,
    """
    SELECT layer, library, provider, channel, redist, package, platform,
        coalesce(variant, '') AS variant, is_stub AS stub, label, archive, is_read
    FROM symbol_providers JOIN symbol_archives ON provider = id
    WHERE library IN (SELECT value FROM json_each(?))
    ORDER BY id""",
)


class _Release(NamedTuple):
    symbol_group: int
    provider: int
    label: str


_RELEASES = Question(
    _Release,
    """
    SELECT symbol_group, provider, label FROM symbol_releases
    WHERE symbol_group IN (SELECT value FROM json_each(?))""",
)


def exporting_tables(pattern: SymbolPattern, index: Index) -> list[SymbolColumns]:
    """Return the tables of the libraries that export symbols of a pattern, sorted.

    They have all columns, but only these exports. Raises the error of the first table that cannot
    be read.
    """
    index.check_symbols()
    condition = condition_of_names(pattern.glob)
    exports = [
        row for row in index.ask(_EXPORTS.where(condition), pattern.glob) if pattern.fits(row.name)
    ]
    archives = index.ask(_ARCHIVES, {row.library for row in exports})
    # `local` takes precedence.
    layers: dict[str, dict[str, SymbolColumns]] = defaultdict(dict)
    for library, layer in sorted({(row.library, row.layer) for row in archives}):
        layers[library][layer] = SymbolColumns(library)
    tables: dict[int, SymbolColumns] = {}
    columns: dict[tuple[int, str], Column] = {}
    for own in grouped((row.provider, row) for row in archives).values():
        for row in sorted(own, key=lambda row: parse_label(row.label)):
            table = tables[row.provider] = layers[row.library][row.layer]
            column = Column(_provider(row), row.label, row.archive)
            if row.is_read:
                columns[row.provider, row.label] = column
                table.add(column, ())
            else:
                table.unread.add(column)
    releases = grouped(
        (row.symbol_group, row)
        for row in index.ask(_RELEASES, {row.symbol_group for row in exports})
    )
    for group, names in grouped((row.symbol_group, row) for row in exports).items():
        if group in releases:
            tables[releases[group][0].provider].add_group(
                [columns[row.provider, row.label] for row in releases[group]],
                [Export(row.name, row.version) for row in names],
            )
    return [reduce(SymbolColumns.overlay_on, own.values()) for own in layers.values()]


def _provider(row: _Archive) -> Provider:
    """Return the provider of an archive."""
    return Provider(
        channel=row.channel,
        redist=row.redist,
        package=row.package,
        platform=row.platform,
        variant=row.variant,
        stub=bool(row.stub),
    )
