"""explain package --history: the changes of a package from release to release."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from cudaredist.cli.text import columns, grouped
from cudaredist.commands.explain.explain_package import (
    architecture_order,
    package_archives,
)
from cudaredist.commands.explain.report import ArchiveHistory, HistoryReport
from cudaredist.redists import CUDA
from cudaredist.store.facts_index import Index, IndexedArchive
from cudaredist.tables.gpus.coverage import cuda_major_of

_BAR = 12
"""Width of the largest release's bar, in characters."""
_UNKNOWN = "-"


def explain_history(name: str, index: Index) -> HistoryReport:
    """Return the sizes, device code, symbols and licenses of a package's releases.

    Raises `UnknownNameError` for an unknown package.
    """
    own, _ = package_archives(name, index)
    code = _device_code(index, {one.contents for one in own if one.contents})
    symbols = _exports(index, own)
    licenses = _licenses(index, {one.archive.package for one in own})
    before: dict[tuple[object, ...], set[str] | None] = {}
    archives = []
    for one, facts in own.items():
        archive = one.archive
        major = cuda_major_of(one.redist, one.label, archive.variant)
        series = one.redist, archive.platform, None if one.redist == CUDA else major
        names, old = symbols.get(_key(one)), before.get(series)
        before[series] = names
        sizes = code.get(one.contents, {})
        change = None if names is None or old is None else (len(names - old), len(old - names))
        total = sum(output.size for output in facts.outputs.values())
        archives.append(
            ArchiveHistory(
                **facts.model_dump(include=set(ArchiveHistory.model_fields)),
                size=total if facts.is_examined else None,
                device_code={x: sizes[x] for x in sorted(sizes, key=architecture_order)},
                symbols=None if names is None else len(names),
                added=change and change[0],
                removed=change and change[1],
                license=licenses.get((one.redist, str(one.label), archive.package)),
            )
        )
    return HistoryReport(asked=name, archives=tuple(archives))


def _device_code(index: Index, contents: Collection[int]) -> Mapping[int, Mapping[str, int]]:
    """Return the decompressed bytes by architecture."""
    query = """
        SELECT contents, architecture, sum(unpacked) FROM device_code
        WHERE contents IN (SELECT value FROM json_each(?)) GROUP BY contents, architecture"""
    sizes: dict[int, dict[str, int]] = defaultdict(dict)
    for row, architecture, size in index.rows(query, contents):
        sizes[row][architecture] = size
    return sizes


def _exports(index: Index, own: Collection[IndexedArchive]) -> Mapping[str, set[str]]:
    """Return the exported symbols of each archive whose symbols are all known."""
    index.check_symbols()
    query = """
        SELECT archive, symbol_group FROM archive_exports
        WHERE archive IN (SELECT value FROM json_each(?)) AND NOT is_stub AND archive NOT IN
            (SELECT archive FROM symbol_archives WHERE NOT is_read)"""
    groups: dict[str, set[int]] = defaultdict(set)
    for archive, group in index.rows(query, {_key(one) for one in own}):
        groups[archive].add(group)
    query = """
        SELECT symbol_group, group_concat(name, ' ') FROM symbols
        WHERE symbol_group IN (SELECT value FROM json_each(?)) GROUP BY symbol_group"""
    rows = index.rows(query, set().union(*groups.values()) - {None})
    names: dict[int, list[str]] = {group: text.split(" ") for group, text in rows}
    return {
        archive: set().union(*(names.get(group, ()) for group in rows))
        for archive, rows in groups.items()
    }


def _licenses(index: Index, packages: Collection[str]) -> dict[tuple[str, str, str], str | None]:
    query = """
        SELECT redist, label, package, license FROM packages JOIN releases ON release = releases.id
        WHERE layer = ? AND package IN (SELECT value FROM json_each(?))"""
    return {tuple(place): text for *place, text in index.rows(query, index.layer, packages)}


def _key(one: IndexedArchive) -> str:
    """Return the name of an archive in tables of symbols."""
    return (one.archive.sha256 or "")[:16]


def history_text(report: HistoryReport) -> Iterator[str]:
    """Yield a table for each platform. A row shows only the names that changed."""
    places = grouped(((one.redist, one.id.place), one) for one in report.archives)
    for (redist, place), archives in places.items():
        yield from ("", f"{archives[-1].package} ({redist}) for {place}")
        largest = max((one.size or 0 for one in archives), default=0) or 1
        rows = [("release", "MB", "", "symbols", "added", "removed", "changes")]
        before: dict[str, str] = {}
        for one in archives:
            nothing = "none" if one.is_examined else _UNKNOWN
            names = {
                "sonames": " ".join(one.sonames) or nothing,
                "GPUs": " ".join(one.architectures) or nothing,
                "license": one.license or _UNKNOWN,
            }
            changes = "; ".join(f"{key}: {x}" for key, x in names.items() if x != before.get(key))
            before = names
            counts = (_count(one.symbols), _count(one.added), _count(one.removed))
            size = _UNKNOWN if one.size is None else f"{one.size / 1e6:,.1f}"
            bar = "#" * round(_BAR * (one.size or 0) / largest)
            rows.append((one.release, size, bar, *counts, changes))
        yield from columns(rows)
    if not places:
        yield f"no local release of {report.asked}"


def _count(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"
