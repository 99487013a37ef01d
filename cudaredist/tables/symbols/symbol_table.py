"""The table of one library's symbols as sets of releases, and as the document that is stored.

Each provider and release is a column, and the columns of a symbol are the bits of one number.
Symbols with the same number form a group of the document.

All commands that ask which release exports a symbol read this table. The index of facts
(`store/facts_index.sql`) only finds the libraries with a symbol, and answers `query`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from cudaredist.formats.base import Channel
from cudaredist.formats.symbol_tables import (
    ExportGroup,
    ImportGroup,
    SymbolProvider,
    Symbols,
    stored_names,
)
from cudaredist.grouping import grouped
from cudaredist.primitives import parse_label

KEY_SIZE = 16
"""Digits of an archive's hash that a table contains."""


class Provider(NamedTuple):
    """A package with a library on one platform."""

    channel: Channel
    redist: str
    package: str
    platform: str
    variant: str
    """Empty if there is none."""
    stub: bool

    @classmethod
    def of(cls, entry: SymbolProvider) -> "Provider":
        """Return the provider of a document's entry."""
        return cls(
            channel=entry.channel,
            redist=entry.redist,
            package=entry.package,
            platform=entry.platform,
            variant=entry.variant or "",
            stub=entry.stub,
        )


class Column(NamedTuple):
    """One release of a provider."""

    provider: Provider
    label: str
    archive: str
    """The beginning of the archive's hash."""


class Export(NamedTuple):
    """A symbol that a library exports."""

    name: str
    version: str = ""
    """`@@V` for a default version, else `@V`; empty if there is none."""


class Import(NamedTuple):
    """A symbol that a library takes from another one."""

    name: str
    version: str
    """`V`; empty if any will do."""
    library: str

    def is_met_by(self, version: str) -> bool:
        """Check if an export of this name with a version is the symbol.

        An export without a version is that of all versions.
        """
        return not self.version or version.lstrip("@") in {"", self.version}


class SymbolColumns:
    """The exports and imports of one library, by column."""

    def __init__(self, soname: str) -> None:
        self.soname = soname
        self.columns: dict[Column, int] = {}
        """The bit of each column."""
        self.unread: set[Column] = set()
        """Releases whose symbols could not be read."""
        self.imports: dict[Import, int] = defaultdict(int)
        self._stored: list[tuple[ExportGroup, int]] = []
        """The exports of the document."""
        self._next = 1
        """The bit of the next column."""

    @classmethod
    def of(cls, table: Symbols) -> "SymbolColumns":
        """Return the columns of a document.

        Raises `ValueError` for unknown releases, and `InvalidFileError` for broken names.
        """
        columns = cls(table.soname)
        bits: list[dict[str, int]] = []
        for entry in table.providers:
            provider = Provider.of(entry)
            columns.unread |= {Column(provider, n, key) for n, key in entry.unread.items()}
            labels = sorted(entry.releases, key=parse_label)
            bits.append({n: columns._bit(Column(provider, n, entry.releases[n])) for n in labels})
        columns._stored = [(group, _mask(group.releases, bits)) for group in table.exports]
        for imported in table.imports:
            mask = _mask(imported.releases, bits)
            for name in imported.symbols():
                columns.imports[Import(name, imported.version, imported.library)] |= mask
        return columns

    @cached_property
    def exports(self) -> dict[Export, int]:
        """The releases that export each symbol. Raises `InvalidFileError` for broken names.

        They are unpacked at the first use, because a check of links needs few of the tables.
        """
        exports: dict[Export, int] = defaultdict(int)
        for group, mask in self._stored:
            for name in group.symbols():
                exports[Export(name, group.version)] |= mask
        return exports

    def _bit(self, column: Column) -> int:
        bit = self.columns[column] = self._next
        self._next <<= 1
        return bit

    def add(self, column: Column, exports: Iterable[Export]) -> None:
        """Add a release of a provider."""
        bit = self._bit(column)
        for export in exports:
            self.exports[export] |= bit

    def add_imports(self, column: Column, imports: Iterable[Import]) -> None:
        """Add imports to a column."""
        for symbol in imports:
            self.imports[symbol] |= self.columns[column]

    def in_archive(self, sha256: str) -> "LibraryRelease | None":
        """Return the library in an archive, None if the table does not have its symbols."""
        key = sha256[:KEY_SIZE]
        bits = (bit for column, bit in self.columns.items() if column.archive == key)
        bit = next(bits, None)
        return None if bit is None else LibraryRelease(self, bit)

    def overlay_on(self, lower: "SymbolColumns") -> "SymbolColumns":
        """Combine two tables. If both have an archive, this table's column is used."""
        merged = SymbolColumns(self.soname)
        archives = {column.archive for column in (*self.columns, *self.unread)}
        merged.unread = self.unread | {c for c in lower.unread if c.archive not in archives}
        for table, columns in (
            (lower, [column for column in lower.columns if column.archive not in archives]),
            (self, list(self.columns)),
        ):
            bits = {table.columns[column]: merged._bit(column) for column in columns}
            masks = {
                mask: sum(new for old, new in bits.items() if mask & old)
                for mask in {*table.exports.values(), *table.imports.values()}
            }
            for exported, mask in table.exports.items():
                merged.exports[exported] |= masks[mask]
            for imported, mask in table.imports.items():
                merged.imports[imported] |= masks[mask]
        return merged

    def drop(self, is_dropped: Callable[[Column], bool]) -> None:
        """Remove columns. Their bits are not used again."""
        for column in [column for column in self.columns if is_dropped(column)]:
            del self.columns[column]
        self.unread = {column for column in self.unread if not is_dropped(column)}

    def document(self) -> Symbols | None:
        """Return the document, None if there are no columns."""
        if not self.columns and not self.unread:
            return None
        labels = self.labels()
        archives, unread = _archives(self.columns), _archives(self.unread)
        ordered = [(p, labels.get(p, [])) for p in sorted(labels.keys() | unread.keys())]
        return Symbols(
            schema_version=1,
            soname=self.soname,
            providers=tuple(
                SymbolProvider(
                    channel=provider.channel,
                    redist=provider.redist,
                    package=provider.package,
                    platform=provider.platform,
                    variant=provider.variant or None,
                    stub=provider.stub,
                    releases=archives.get(provider, {}),
                    unread=unread.get(provider, {}),
                )
                for provider, _ in ordered
            ),
            exports=tuple(
                ExportGroup(version=version, releases=releases, **stored_names(names))
                for (version,), releases, names in self._groups(self.exports, ordered)
            ),
            imports=tuple(
                ImportGroup(
                    library=library, version=version, releases=releases, **stored_names(names)
                )
                for (library, version), releases, names in self._groups(self.imports, ordered)
            ),
        )

    def labels(self) -> dict[Provider, list[tuple[str, int]]]:
        """Return the releases of each provider and their bits, in order."""
        labels: dict[Provider, list[tuple[str, int]]] = defaultdict(list)
        for column in sorted(self.columns, key=lambda c: (c.provider, parse_label(c.label))):
            labels[column.provider].append((column.label, self.columns[column]))
        return labels

    def _groups(
        self,
        symbols: Mapping[Export, int] | Mapping[Import, int],
        ordered: Sequence[tuple[Provider, Sequence[tuple[str, int]]]],
    ) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], list[str]]]:
        """Yield properties, releases and names of the symbols that have both in common."""
        everything = sum(self.columns.values())
        grouped: dict[tuple[tuple[str, ...], int], list[str]] = defaultdict(list)
        for (name, *properties), mask in symbols.items():
            if mask & everything:
                grouped[tuple(properties[::-1]), mask & everything].append(name)
        groups = []
        for (key, mask), names in grouped.items():
            releases = tuple(_stored_ranges(mask, labels) for _, labels in ordered)
            groups.append((key, () if mask == everything else releases, sorted(names)))
        yield from sorted(groups)


class LibraryRelease:
    """The symbols of a library in one archive: a column of its table."""

    def __init__(self, table: SymbolColumns, bit: int) -> None:
        self._table, self._bit = table, bit

    def exports(self) -> Iterator[Export]:
        """Yield the symbols that it exports."""
        return (export for export, mask in self._table.exports.items() if mask & self._bit)

    def imports(self) -> Iterator[Import]:
        """Yield the symbols that it takes from other libraries."""
        return (symbol for symbol, mask in self._table.imports.items() if mask & self._bit)

    @cached_property
    def versions(self) -> Mapping[str, Sequence[str]]:
        """The versions of each exported name."""
        return grouped(self.exports())

    def has(self, symbol: Import) -> bool:
        """Check if it exports a symbol."""
        return any(map(symbol.is_met_by, self.versions.get(symbol.name, ())))


def _archives(columns: Iterable[Column]) -> dict[Provider, dict[str, str]]:
    archives: dict[Provider, dict[str, str]] = defaultdict(dict)
    for column in columns:
        archives[column.provider][column.label] = column.archive
    return archives


def _stored_ranges(mask: int, labels: Sequence[tuple[str, int]]) -> str:
    """Return the releases of one provider, as the document has them."""
    return "*" if all(mask & bit for _, bit in labels) else _ranges(mask, labels)


def _ranges(mask: int, labels: Iterable[tuple[str, int]]) -> str:
    return label_ranges((label, mask & bit != 0) for label, bit in labels)


def label_ranges(labels: Iterable[tuple[str, bool]]) -> str:
    """Return the selected labels, which are sorted, as explicit ranges."""
    runs = [[*run] for is_selected, run in groupby(labels, itemgetter(1)) if is_selected]
    return " ".join("..".join(dict.fromkeys((run[0][0], run[-1][0]))) for run in runs)


def _mask(releases: tuple[str, ...], bits: Sequence[Mapping[str, int]]) -> int:
    """Return the bits of a group's releases. Raises `ValueError` for unknown ones."""
    texts = releases or ("*",) * len(bits)
    return sum(
        labels[label]
        for text, labels in zip(texts, bits, strict=True)
        for label in labels_in(text, list(labels))
    )


def labels_in(text: str, labels: Sequence[str]) -> list[str]:
    """Return the labels that a group's text selects from a provider's sorted labels.

    Raises `ValueError` for a label that the provider does not have.
    """
    if text == "*":
        return list(labels)
    selected: list[str] = []
    for run in text.split():
        first, _, last = run.partition("..")
        selected += labels[labels.index(first) : labels.index(last or first) + 1]
    return selected


def release_ranges(columns: SymbolColumns, mask: int) -> dict[Provider, str]:
    """Return the releases of each provider that a number selects, as in the document."""
    ranges = {p: _ranges(mask, labels) for p, labels in columns.labels().items()}
    return {provider: text for provider, text in ranges.items() if text}
