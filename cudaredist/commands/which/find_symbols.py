"""which --symbol: the libraries and releases that export a symbol."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from cudaredist.commands.which.report import (
    ExaminedLibrary,
    OutsideProvider,
    SymbolHit,
    WhichReport,
)
from cudaredist.commands.which.search import Search
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    IncompleteError,
    UnknownNameError,
)
from cudaredist.hints import command_line
from cudaredist.primitives import ArchiveId, Version, parse_label
from cudaredist.store.absence import Unexamined, inspect_command, since, until
from cudaredist.store.facts_index import WITHOUT_SYMBOLS, Index, IndexedArchive, Question
from cudaredist.store.indexed_policies import library_rules
from cudaredist.store.indexed_symbols import exporting_tables
from cudaredist.tables.symbols.label_ranges import KEY_SIZE
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.tables.symbols.symbol_table import Column, Provider, SymbolColumns, ranges_of
from cudaredist.words import without_secrets


def find_symbols(pattern: SymbolPattern, search: Search) -> WhichReport:
    """Return the libraries that export the symbols of a pattern, with the releases of each.

    Raises `IncompleteError` without tables, and `UnknownNameError` for an unknown platform.
    """
    index, store, platform = search.index, search.index.store, search.platform
    if not any(folder.names() for folder in index.database.documents.symbols.values()):
        hint = f"run `{command_line('update-symbols', channel=store.channel)}`"
        raise IncompleteError(f"{store.symbol_path}: no tables of symbols", hint=hint)
    tables = exporting_tables(pattern, index)
    platforms: set[str] = set()
    exporters: list[_Exporter] = []

    def is_dropped(column: Column) -> bool:
        provider = column.provider
        if provider.channel not in index.channels:
            return True
        if not search.has(provider.redist, provider.platform):
            return True
        archive = ArchiveId(provider.package, provider.platform, provider.variant or None)
        label = parse_label(column.label)
        return not search.is_usable(provider.channel, provider.redist, label, archive)

    for table in tables:
        # The platforms of the dropped columns are known, too.
        platforms |= {column.provider.platform for column in table.columns}
        by_wheel = _bits_by_wheel(table, search)
        table.drop(is_dropped)
        exporters += _exporters(table, pattern, table.bits_by_provider())
        exporters += _exporters(table, pattern, by_wheel, is_by_wheel=True)
    if platform is not None and tables and platform not in platforms:
        raise UnknownNameError("platform of the tables", platform, platforms)
    hits = sorted(_with_archives(exporters, index), key=_order)
    # If a symbol is found, archives that may have it as well do not change the answer.
    unknown: Sequence[Unexamined] = ()
    if not hits and "//" not in pattern.text:  # An address is not a symbol.
        redists = search.redists or index.redists()
        unknown = replace(search, redists=redists).unexamined(WITHOUT_SYMBOLS)
    code = EXIT_INCOMPLETE if unknown else EXIT_FINDINGS
    return WhichReport(
        name=without_secrets(pattern.text),
        cuda=search.cuda,
        hits=(),
        symbol=without_secrets(pattern.text),
        symbols=tuple(hits),
        examined=tuple(exporter.library for exporter in exporters),
        declaration=_declaration(pattern.text, index) if hits else None,
        unknown=sum(release.archives for release in unknown),
        outside=None if hits else _outside_provider(pattern.text, index),
        suggestions=() if hits else index.similar_symbols(pattern.text),
        hint=_examine_command(unknown, search),
        exit_code=EXIT_OK if hits else code,
    )


class _Declared(NamedTuple):
    signature: str
    label: str


_DECLARED = Question(
    _Declared,
    """
    SELECT DISTINCT signature, label
    FROM api_forms JOIN api_releases ON api_releases.api_set = api_forms.api_set
    WHERE {condition} AND kind = 'function'""",
)


def _declaration(symbol: str, index: Index) -> str | None:
    """Return the declaration of a function in the newest headers with it, None if unknown."""
    rows = index.ask(_DECLARED.where("name = ?"), symbol)
    rows = rows or index.ask(_DECLARED.where("symbol = ?"), symbol)
    newest = max(rows, key=lambda row: (parse_label(row.label), row.signature), default=None)
    return None if newest is None else newest.signature


def _outside_provider(name: str, index: Index) -> OutsideProvider | None:
    """Return the library outside all redistributables whose symbols have such names."""
    for entry in library_rules(index).external:
        if any(fnmatchcase(name, f"{beginning}*") for beginning in entry.symbols):
            return OutsideProvider(
                owner=entry.owner,
                provider=entry.provider,
                reason=entry.reason,
                library=entry.names[0],
                packages=entry.packages,
            )
    return None


def _examine_command(unknown: Sequence[Unexamined], search: Search) -> str | None:
    """Return the command that reads the symbols of archives, None if there are none to read."""
    if not unknown:
        return None
    update = command_line("update-symbols", channel=unknown[0].channel)
    unread = [release for release in unknown if release.unread]
    inspect = inspect_command(unread, search.redists, search.platform)
    return update if inspect is None else f"{inspect} && {update}"


class _Twin(NamedTuple):
    wheel: str
    """The beginning of the wheel's hash."""
    redist: str
    label: str
    package: str
    platform: str
    variant: str | None


_TWINS = Question(
    _Twin,
    f"""
    SELECT DISTINCT substr(wheels.sha256, 1, {KEY_SIZE}) AS wheel, redist, label, own.package,
        own.platform, own.variant
    FROM wheel_contents JOIN archives AS wheels ON wheels.id = wheel
    JOIN archives AS own ON own.id = archive
    JOIN current_releases ON current_releases.id = own.release
    WHERE wheels.package IN (SELECT value FROM json_each(?))
    ORDER BY redist, sort_key""",
)


def _bits_by_wheel(table: SymbolColumns, search: Search) -> dict[Provider, list[tuple[str, int]]]:
    """Return the releases of archives that have the symbols of a wheel of the same version.

    They are in ascending order, as label and bit, by their providers.
    """
    wheels = {
        column.archive: (column.provider, bit)
        for column, bit in table.columns.items()
        if column.provider.channel == "wheels" and not column.provider.stub
    }
    bits: dict[Provider, list[tuple[str, int]]] = defaultdict(list)
    for twin in search.index.ask(_TWINS, {provider.package for provider, _ in wheels.values()}):
        if twin.wheel not in wheels:
            continue
        archive = ArchiveId(twin.package, twin.platform, twin.variant)
        label = parse_label(twin.label)
        if search.has(twin.redist, twin.platform) and search.is_usable(
            "redist", twin.redist, label, archive
        ):
            provider, bit = wheels[twin.wheel]
            bits[provider._replace(channel="redist")].append((twin.label, bit))
    return bits


class _Exporter(NamedTuple):
    library: ExaminedLibrary
    hits: list[SymbolHit]


def _exporters(
    table: SymbolColumns,
    pattern: SymbolPattern,
    bits_by_provider: Mapping[Provider, Sequence[tuple[str, int]]],
    *,
    is_by_wheel: bool = False,
) -> Iterator[_Exporter]:
    """Yield the libraries that export symbols of a pattern."""
    exports = [
        (export, mask) for export, mask in table.exports.items() if pattern.fits(export.name)
    ]
    for provider, bits in bits_by_provider.items():
        about: dict[str, Any] = {
            "library": table.soname,
            "is_by_wheel": is_by_wheel,
            **provider._asdict(),
            "variant": provider.variant or None,
        }
        hits = []
        for export, mask in exports:
            labels = [label for label, bit in bits if mask & bit]
            if labels:
                hit = SymbolHit(
                    **about,
                    symbol=export.name,
                    demangled=pattern.readable(export.name),
                    version=export.version,
                    first=labels[0],
                    last=labels[-1],
                    since=labels[0],
                    until=labels[-1],
                    releases=ranges_of(mask, bits),
                    is_newest=labels[-1] == bits[-1][0],
                )
                hits.append(hit)
        if hits:
            examined = ExaminedLibrary(**about, releases=tuple(label for label, _ in bits))
            yield _Exporter(examined, hits)


class _Library(NamedTuple):
    contents: int
    library: str


_WITH_LIBRARY = Question(
    _Library,
    """
    SELECT contents, library FROM binaries
    WHERE library IN (SELECT value FROM json_each(?))""",
)


def _with_archives(exporters: Sequence[_Exporter], index: Index) -> Iterator[SymbolHit]:
    """Yield the hits with their projects, and with first and last releases as far as known."""
    libraries = [exporter.library for exporter in exporters]
    redists = {library.redist for library in libraries}
    packages = {library.package for library in libraries}
    condition = "package IN (SELECT value FROM json_each(?))"
    having = {*index.ask(_WITH_LIBRARY, {library.library for library in libraries})}
    projects: dict[tuple[object, ...], str | None] = {}
    archives: dict[tuple[str, str, str], list[IndexedArchive]] = defaultdict(list)
    for row in index.archives(redists, condition, packages):
        archive = row.archive
        projects[row.channel, row.redist, str(row.label), archive.id] = archive.project
        archives[row.redist, archive.package, archive.platform].append(row)
    for library, hits in exporters:
        own = archives[library.redist, library.package, library.platform]
        examined = set(map(parse_label, library.releases))
        # Examined archives without the library do not export the symbol either.
        examined |= {
            row.label
            for row in own
            if row.contents and _Library(row.contents, library.library) not in having
        }
        labels = {row.label for row in own}
        archive_id = ArchiveId(library.package, library.platform, library.variant)
        for hit in hits:
            yield hit.changed(
                project=projects.get((hit.channel, hit.redist, hit.last, archive_id)),
                since=since(parse_label(hit.first), examined, labels),
                until=until(parse_label(hit.last), examined, labels),
            )


def _order(hit: SymbolHit) -> tuple[object, ...]:
    variant = hit.variant or ""
    return (
        hit.symbol,
        hit.redist,
        hit.library,
        hit.channel,
        hit.platform,
        variant,
        Version.parse(hit.first),
    )
