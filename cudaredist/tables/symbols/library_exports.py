"""The exports of one library, grouped by the releases that have them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cudaredist.primitives import parse_label
from cudaredist.tables.symbols.symbol_table import KEY_SIZE, SymbolColumns, label_ranges


class ExportSpan(NamedTuple):
    """A package that exports symbols from a library, and its releases on any platform."""

    package: str
    library: str
    redist: str
    releases: str
    """Labels and ranges, such as `12.0.1..12.4.1 12.9.1`."""
    is_newest: bool
    """Whether the newest release of the library has the symbols."""
    is_stub: bool


class LibraryExports:
    """The names that a library exports, without the versions of symbols."""

    def __init__(self, table: SymbolColumns) -> None:
        self.soname = table.soname
        masks: dict[str, int] = defaultdict(int)
        for export, mask in table.exports.items():
            masks[export.name] |= mask
        everything = sum(table.columns.values())
        groups: dict[int, list[str]] = defaultdict(list)
        for name, mask in masks.items():
            if mask & everything:
                groups[mask & everything].append(name)
        self.groups: Mapping[int, Sequence[str]] = groups
        """Names by the columns that have them."""
        self._bits: dict[str, int] = {}
        self._labels: dict[tuple[str, str, bool], dict[str, int]] = defaultdict(dict)
        for column, bit in table.columns.items():
            provider = column.provider
            self._bits[column.archive] = bit
            labels = self._labels[provider.redist, provider.package, provider.is_stub]
            labels[column.label] = labels.get(column.label, 0) | bit

    def spans(self, mask: int) -> Iterator[ExportSpan]:
        """Yield the packages with the library in some columns."""
        for (redist, package, is_stub), bits in sorted(self._labels.items()):
            labels = sorted(bits.items(), key=lambda item: parse_label(item[0]))
            releases = label_ranges(mask, labels)
            if releases:
                is_newest = bool(mask & labels[-1][1])
                yield ExportSpan(package, self.soname, redist, releases, is_newest, is_stub)

    def knows(self, *archives_sha256: str) -> bool:
        """Check if the symbols in all of these archives are known."""
        return all(sha256[:KEY_SIZE] in self._bits for sha256 in archives_sha256)

    def changes(self, old_sha256: str, new_sha256: str) -> tuple[list[str], list[str]]:
        """Return the removed and the added names between two known archives, sorted."""
        old, new = self._bits[old_sha256[:KEY_SIZE]], self._bits[new_sha256[:KEY_SIZE]]
        return self._without(old, new), self._without(new, old)

    def _without(self, there: int, missing: int) -> list[str]:
        """Return the names of one column that another lacks."""
        groups = (
            names for mask, names in self.groups.items() if mask & there and not mask & missing
        )
        return sorted(name for names in groups for name in names)
