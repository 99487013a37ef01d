"""explain package --history: the changes of a package from release to release."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cudaredist.cli.text import columns
from cudaredist.commands.explain.archive_facts import architecture_order
from cudaredist.commands.explain.explain_package import manifest_licenses, package_archives
from cudaredist.commands.explain.package_report import (
    ArchiveHistory,
    ExplainedArchive,
    HistoryReport,
)
from cudaredist.formats.names import CHANNEL_TITLES, Channel
from cudaredist.grouping import grouped
from cudaredist.redists import CUDA
from cudaredist.store.facts_index import Index, IndexedArchive, Question
from cudaredist.tables.gpus.coverage import cuda_major_of
from cudaredist.tables.symbols.label_ranges import KEY_SIZE

_BAR = 12
"""Width of the largest release's bar, in characters."""
_UNKNOWN = "-"
_FACTS = (
    *("redist", "release", "package", "version", "platform", "variant"),
    *("channel", "date", "is_examined", "architectures", "sonames"),
)
"""The fields that the history of an archive has from its facts."""

_Combination: TypeAlias = tuple[int, ...]
"""All groups that contain a symbol."""
_Rows: TypeAlias = list[tuple[ArchiveHistory, dict[str, str]]]


def explain_history(name: str, index: Index) -> HistoryReport:
    """Return the sizes, device code, symbols and licenses of a package's releases.

    Raises `UnknownNameError` for an unknown package.
    """
    own, _ = package_archives(name, index)
    return HistoryReport(asked=name, archives=tuple(archive_histories(own, index)))


def archive_histories(
    own: Mapping[IndexedArchive, ExplainedArchive],
    index: Index,
    names: Mapping[int, Sequence[str]] | None = None,
) -> Iterator[ArchiveHistory]:
    """Yield the changes of a package's archives, which are in the order of releases.

    `names` contains the symbols of groups. By default, only those of the package are read.
    """
    code = _device_code(index, {one.contents for one in own if one.contents})
    exports = _exports(index, own)
    groups = set[int]().union(*exports.values())
    if names is None:
        names = index.symbol_names(groups)
    # Libraries export 100,000 names. Those in the same groups are always exported together, so each
    # combination of groups is compared once and counts for all of its names.
    count = Counter(groups_of_names(groups, names).values())
    combinations: dict[int, set[_Combination]] = defaultdict(set)
    for combination in count:
        for group in combination:
            combinations[group].add(combination)
    licenses = manifest_licenses(index, {one.archive.package for one in own})
    previous: dict[tuple[object, ...], set[_Combination] | None] = {}
    for one, facts in own.items():
        archive = one.archive
        major = cuda_major_of(one.redist, one.label, archive.variant)
        series = one.channel, one.redist, archive.platform, None if one.redist == CUDA else major
        new: set[_Combination] | None = None
        if _key(one) in exports:
            new = set().union(*(combinations[group] for group in exports[_key(one)]))
        old = previous.get(series)
        previous[series] = new
        added = removed = None
        if new is not None and old is not None:
            added, removed = new - old, old - new
        total = sum(output.size for output in facts.outputs.values())
        sizes = sorted(
            code.get(one.contents, ()), key=lambda row: architecture_order(row.architecture)
        )
        yield ArchiveHistory(
            **{name: getattr(facts, name) for name in _FACTS},
            size=total if facts.is_examined else None,
            device_code={row.architecture: row.unpacked for row in sizes},
            symbols=_total(count, new),
            added=_total(count, added),
            removed=_total(count, removed),
            license=licenses.get((one.channel, one.redist, str(one.label), archive.package)),
        )


def _total(count: Mapping[_Combination, int], selected: set[_Combination] | None) -> int | None:
    """Return the number of names in combinations of groups, None if these are unknown."""
    return None if selected is None else sum(count[combination] for combination in selected)


class _DeviceCode(NamedTuple):
    contents: int
    architecture: str
    unpacked: int


_DEVICE_CODE = Question(
    _DeviceCode,
    """
    SELECT contents, architecture, sum(unpacked) AS unpacked FROM device_code
    WHERE contents IN (SELECT value FROM json_each(?))
    GROUP BY contents, architecture""",
)


def _device_code(index: Index, contents: Collection[int]) -> dict[int, list[_DeviceCode]]:
    """Return the decompressed bytes by architecture."""
    return grouped((row.contents, row) for row in index.ask(_DEVICE_CODE, contents))


class _Export(NamedTuple):
    archive: str
    symbol_group: int | None
    """None for an archive without exports, and for imports."""


_EXPORTS = Question(
    _Export,
    """
    SELECT archive, symbol_group FROM archive_exports
    WHERE archive IN (SELECT value FROM json_each(?)) AND NOT is_stub
        AND archive NOT IN (SELECT archive FROM symbol_archives WHERE NOT is_read)""",
)


def _exports(index: Index, own: Collection[IndexedArchive]) -> dict[str, set[int]]:
    """Return the groups of symbols of each archive whose symbols are all known."""
    index.check_symbols()
    groups: dict[str, set[int]] = {}
    for row in index.ask(_EXPORTS, {_key(one) for one in own}):
        known = groups.setdefault(row.archive, set())
        if row.symbol_group is not None:
            known.add(row.symbol_group)
    return groups


def groups_of_names(
    groups: Iterable[int], names: Mapping[int, Sequence[str]]
) -> dict[str, tuple[int, ...]]:
    """Return the groups with each name."""
    containing: dict[str, tuple[int, ...]] = {}
    for group in groups:
        own: dict[str, tuple[int, ...]] = dict.fromkeys(names.get(group, ()), (group,))
        own |= {name: (*containing[name], group) for name in own.keys() & containing.keys()}
        containing |= own
    return containing


def _key(one: IndexedArchive) -> str:
    """Return the name of an archive in tables of symbols."""
    return (one.archive.sha256 or "")[:KEY_SIZE]


def history_tables(
    archives: Iterable[ArchiveHistory],
) -> dict[tuple[Channel, str, str], _Rows]:
    """Return the archives of each channel, product and platform, with the names that changed."""
    tables: dict[tuple[Channel, str, str], _Rows] = {}
    places = grouped(((one.channel, one.redist, one.id.place), one) for one in archives)
    for place, own in places.items():
        before: dict[str, str] = {}
        tables[place] = []
        for one in own:
            nothing = "none" if one.is_examined else _UNKNOWN
            names = {
                "sonames": " ".join(one.sonames) or nothing,
                "GPUs": " ".join(one.architectures) or nothing,
                "license": one.license or _UNKNOWN,
            }
            changes = {key: text for key, text in names.items() if text != before.get(key)}
            tables[place].append((one, changes))
            before = names
    return tables


def history_text(report: HistoryReport) -> Iterator[str]:
    """Yield a table for each platform. A row shows only the names that changed."""
    tables = history_tables(report.archives)
    for (channel, redist, place), table in tables.items():
        kind = CHANNEL_TITLES[channel]
        yield from ("", f"{table[-1][0].package} ({redist}, {kind}) for {place}")
        largest = max((one.size or 0 for one, _ in table), default=0) or 1
        rows = [("release", "date", "MB", "", "symbols", "added", "removed", "changes")]
        for one, names in table:
            changes = "; ".join(f"{key}: {text}" for key, text in names.items())
            counts = (_count(one.symbols), _count(one.added), _count(one.removed))
            size = _UNKNOWN if one.size is None else f"{one.size / 1e6:,.1f}"
            bar = "#" * round(_BAR * (one.size or 0) / largest)
            rows.append((one.release, one.date or _UNKNOWN, size, bar, *counts, changes))
        yield from columns(rows)
    if not tables:
        yield f"no local release of {report.asked}"


def _count(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"
