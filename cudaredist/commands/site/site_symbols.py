"""site: the symbols that libraries export, with their packages and releases."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from cudaredist.commands.explain.package_history import groups_of_names
from cudaredist.grouping import grouped
from cudaredist.primitives import parse_label
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.symbols.label_ranges import label_ranges


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


SymbolGroups: TypeAlias = list[tuple[tuple[ExportSpan, ...], list[str]]]
"""Names of symbols, with the packages that export them."""
_Provider: TypeAlias = tuple[str, str, bool]
_Groups: TypeAlias = Mapping[_Provider, Mapping[str, AbstractSet[int]]]
"""The rows of symbols by redistributable, package and kind, and by release."""


class _Export(NamedTuple):
    library: str
    redist: str
    package: str
    is_stub: int
    label: str
    symbol_group: int | None
    """None for a release without exports, and for imports."""


_EXPORTS = Question(
    _Export,
    """
    SELECT library, redist, package, is_stub, label, symbol_group FROM archive_exports
    WHERE channel = ? AND (redist, label) IN (SELECT redist, label FROM current_releases)""",
)


def exported_symbols(index: Index, names: Mapping[int, Sequence[str]]) -> dict[str, SymbolGroups]:
    """Return the symbols that each library exports in local releases.

    `names` contains the symbols of groups.
    """
    exports = grouped((row.library, row) for row in index.ask(_EXPORTS, index.store.channel))
    symbols = {}
    for library in sorted(exports):
        providers: dict[_Provider, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        groups: set[int] = set()
        for row in exports[library]:
            known = providers[row.redist, row.package, bool(row.is_stub)][row.label]
            if row.symbol_group is not None:
                known.add(row.symbol_group)
                groups.add(row.symbol_group)
        containing = groups_of_names(groups, names)
        symbols[library] = [
            (tuple(_spans(library, providers, together)), own)
            for together, own in grouped((x, name) for name, x in containing.items()).items()
        ]
    return symbols


def _spans(library: str, groups: _Groups, rows: Sequence[int]) -> Iterator[ExportSpan]:
    for (redist, package, is_stub), labels in sorted(groups.items()):
        ordered = sorted(labels, key=parse_label)
        selected = [(label, not labels[label].isdisjoint(rows)) for label in ordered]
        if releases := label_ranges(selected):
            yield ExportSpan(package, library, redist, releases, selected[-1][1], is_stub)
