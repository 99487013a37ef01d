"""The table of one library's symbols as sets of releases, and as the document that is stored.

Each provider and release is a column with a bit of its own. The bits of a symbol's columns are its
mask. Symbols with the same mask form a group of the document.

`which --symbol` makes the table of the symbols that it finds from the index of facts
(`store/facts_index.sql`). All other commands that ask which release exports a symbol read the
document.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cudaredist.formats.names import Channel
from cudaredist.grouping import grouped
from cudaredist.primitives import parse_label
from cudaredist.tables.symbols.label_ranges import KEY_SIZE, label_ranges

if TYPE_CHECKING:
    from cudaredist.formats.symbol_tables import ExportGroup, SymbolProvider, Symbols


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
    def of(cls, entry: "SymbolProvider") -> "Provider":
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
        """Check if an export of this name satisfies the import.

        An import or export without a version matches any version.
        """
        return not self.version or version.lstrip("@") in {"", self.version}


_Symbol = TypeVar("_Symbol", Export, Import)


class SymbolColumns:
    """The exports and imports of one library, by column."""

    def __init__(self, soname: str) -> None:
        self.soname = soname
        self.columns: dict[Column, int] = {}
        """The bit of each column."""
        self.unread: set[Column] = set()
        """Releases whose symbols could not be read."""
        self.imports: dict[Import, int] = defaultdict(int)
        """The mask of each import."""
        self._exports: dict[Export, int] = defaultdict(int)
        self._packed: list[tuple[ExportGroup, int]] = []
        """Further exports, as the document has them, and their masks."""
        self._next = 1
        """The bit of the next column."""

    @classmethod
    def of(cls, table: "Symbols") -> "SymbolColumns":
        """Return the columns of a document.

        Raises `ValueError` for unknown releases, and `InvalidFileError` for broken names.
        """
        columns = cls(table.soname)
        bits_by_provider: list[dict[str, int]] = []
        for entry in table.providers:
            provider = Provider.of(entry)
            columns.unread |= {
                Column(provider, label, archive) for label, archive in entry.unread.items()
            }
            bits: dict[str, int] = {}
            for label in sorted(entry.releases, key=parse_label):
                bits[label] = columns._add_column(Column(provider, label, entry.releases[label]))
            bits_by_provider.append(bits)
        for exported in table.exports:
            columns._packed.append((exported, _mask(exported.releases, bits_by_provider)))
        for imported in table.imports:
            mask = _mask(imported.releases, bits_by_provider)
            for name in imported.symbols():
                columns.imports[Import(name, imported.version, imported.library)] |= mask
        return columns

    @property
    def exports(self) -> dict[Export, int]:
        """The mask of each export. Raises `InvalidFileError` for broken names.

        They are unpacked at the first use, because a check of symbols needs few of the tables.
        """
        for group, mask in self._packed:
            for name in group.symbols():
                self._exports[Export(name, group.version)] |= mask
        self._packed = []
        return self._exports

    def _add_column(self, column: Column) -> int:
        """Add a column, and return its bit."""
        bit = self.columns[column] = self._next
        self._next <<= 1
        return bit

    def add(self, column: Column, exports: Iterable[Export]) -> None:
        """Add a release of a provider."""
        bit, masks = self._add_column(column), self.exports
        for export in exports:
            masks[export] |= bit

    def add_group(self, columns: Iterable[Column], exports: Iterable[Export]) -> None:
        """Add exports to some columns."""
        mask, masks = sum(self.columns[column] for column in columns), self.exports
        for export in exports:
            masks[export] |= mask

    def add_imports(self, column: Column, imports: Iterable[Import]) -> None:
        """Add imports to a column."""
        for symbol in imports:
            self.imports[symbol] |= self.columns[column]

    def in_archive(self, sha256: str) -> "LibraryRelease | None":
        """Return the library in an archive, None if the table does not have its symbols."""
        for column, bit in self.columns.items():
            # Several releases can have the archive. A library comes before its stub.
            if column.archive == sha256[:KEY_SIZE]:
                return LibraryRelease(self, bit)
        return None

    def overlay_on(self, lower: "SymbolColumns") -> "SymbolColumns":
        """Combine two tables. If both have an archive, this table's column is used."""
        merged = SymbolColumns(self.soname)
        archives = {column.archive for column in (*self.columns, *self.unread)}
        unread = {column for column in lower.unread if column.archive not in archives}
        merged.unread = self.unread | unread
        merged._copy_columns(
            lower, [column for column in lower.columns if column.archive not in archives]
        )
        merged._copy_columns(self, self.columns)
        return merged

    def _copy_columns(self, table: "SymbolColumns", columns: Iterable[Column]) -> None:
        """Add some columns of another table, with their symbols."""
        new_bits: dict[int, int] = {}
        for column in columns:
            new_bits[table.columns[column]] = self._add_column(column)
        # Many symbols have the same mask.
        new_masks = {
            mask: sum(new for old, new in new_bits.items() if mask & old)
            for mask in {*table.exports.values(), *table.imports.values()}
        }
        for exported, mask in table.exports.items():
            self.exports[exported] |= new_masks[mask]
        for imported, mask in table.imports.items():
            self.imports[imported] |= new_masks[mask]

    def drop(self, is_dropped: Callable[[Column], bool]) -> None:
        """Remove columns. Their bits stay in the masks, but are not used again."""
        for column in [column for column in self.columns if is_dropped(column)]:
            del self.columns[column]
        self.unread = {column for column in self.unread if not is_dropped(column)}

    def document(self) -> "Symbols | None":
        """Return the document, None if there are no columns."""
        # Lookups import no models.
        from cudaredist.formats.symbol_tables import (  # noqa: PLC0415
            ExportGroup,
            ImportGroup,
            SymbolProvider,
            Symbols,
            stored_names,
        )

        if not self.columns and not self.unread:
            return None
        bits = self.bits_by_provider()
        archives, unread = _archives(self.columns), _archives(self.unread)
        providers = sorted(bits.keys() | unread.keys())
        ordered = [bits.get(provider, []) for provider in providers]
        exports = self._groups(self.exports, lambda one: (one.version,), ordered)
        imports = self._groups(self.imports, lambda one: (one.library, one.version), ordered)
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
                for provider in providers
            ),
            exports=tuple(
                ExportGroup(version=version, releases=releases, **stored_names(names))
                for (version,), releases, names in exports
            ),
            imports=tuple(
                ImportGroup(
                    library=library, version=version, releases=releases, **stored_names(names)
                )
                for (library, version), releases, names in imports
            ),
        )

    def bits_by_provider(self) -> dict[Provider, list[tuple[str, int]]]:
        """Return the releases of each provider in ascending order, as label and bit."""
        bits: dict[Provider, list[tuple[str, int]]] = defaultdict(list)
        columns = sorted(
            self.columns, key=lambda column: (column.provider, parse_label(column.label))
        )
        for column in columns:
            bits[column.provider].append((column.label, self.columns[column]))
        return bits

    def _groups(
        self,
        masks: Mapping[_Symbol, int],
        key_of: Callable[[_Symbol], tuple[str, ...]],
        ordered: Sequence[Sequence[tuple[str, int]]],
    ) -> list[tuple[tuple[str, ...], tuple[str, ...], list[str]]]:
        """Return the groups of symbols with equal keys and equal releases, sorted.

        A group is its key, its releases as text for each provider, and its names. `ordered` has the
        releases of each provider.
        """
        existing = sum(self.columns.values())
        by_mask: dict[tuple[tuple[str, ...], int], list[str]] = defaultdict(list)
        for symbol, with_dropped in masks.items():
            mask = with_dropped & existing
            if mask:
                by_mask[key_of(symbol), mask].append(symbol.name)
        groups = []
        for (key, mask), names in by_mask.items():
            releases = tuple(_stored_ranges(mask, bits) for bits in ordered)
            groups.append((key, () if mask == existing else releases, sorted(names)))
        return sorted(groups)


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


def _stored_ranges(mask: int, bits: Sequence[tuple[str, int]]) -> str:
    """Return the releases of one provider, as the document has them."""
    return "*" if all(mask & bit for _, bit in bits) else ranges_of(mask, bits)


def ranges_of(mask: int, bits: Iterable[tuple[str, int]]) -> str:
    """Return the releases of one provider that a mask selects, as ranges."""
    return label_ranges((label, mask & bit != 0) for label, bit in bits)


def _mask(releases: tuple[str, ...], bits_by_provider: Sequence[Mapping[str, int]]) -> int:
    """Return the mask of a group's releases. Raises `ValueError` for unknown ones."""
    mask = 0
    texts = releases or ("*",) * len(bits_by_provider)
    for text, bits in zip(texts, bits_by_provider, strict=True):
        for label in labels_in(text, list(bits)):
            mask |= bits[label]
    return mask


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
