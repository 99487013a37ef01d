"""The report of which as text."""

import platform
import posixpath
from collections.abc import Iterable, Iterator, Sequence

from cudaredist.cli.text import columns
from cudaredist.commands.which.report import OutsideProvider, SymbolHit, WhichHit, WhichReport
from cudaredist.errors import EXIT_INCOMPLETE
from cudaredist.formats.names import CHANNEL_TITLES, DISTRIBUTION_WORDS
from cudaredist.grouping import grouped
from cudaredist.hints import command_line, quoted
from cudaredist.primitives import natural_order, place_name
from cudaredist.tables.advisories.texts import counted_states
from cudaredist.tables.symbols.label_ranges import label_ranges
from cudaredist.words import listed, plural, shortened

_MOST_ROWS = 50
_MOST_RANGES = 4
_MOST_BEGINNINGS, _MOST_NAMES = 10, 6
"""Rows of files that begin with a name, and names of a package instead of more rows."""
_PLATFORMS = {
    ("Linux", "x86_64"): "linux-x86_64",
    ("Linux", "aarch64"): "linux-sbsa",
    ("Windows", "AMD64"): "windows-x86_64",
    ("Windows", "ARM64"): "windows-arm64",
}
"""Platforms by the system and machine of Python."""

_Row = tuple[str, ...]


def which_text(report: WhichReport, *, is_grouped: bool = True) -> Iterator[str]:
    """Yield the providers of a file or symbol by package, platform and output.

    A long table has one row for all names with equal other columns, unless `is_grouped` is false.
    """
    if report.hits or report.symbols:
        yield from _found(report, is_grouped=is_grouped)
    elif report.exit_code == EXIT_INCOMPLETE:
        verb = "has" if report.symbol is None else "exports"
        yield f"the provider of {report.name} is unknown: no examined archive or wheel {verb} it"
    elif report.outside is None:
        yield _nothing(report)
        if report.package:
            platforms = ", ".join(report.package)
            command = command_line("explain package", quoted(report.name))
            yield f"{report.name} is a package for {platforms}: run `{command}`"
    if report.outside is not None:
        yield from _outside(report.name, report.outside)
    for package in report.likely:
        command = command_line("explain package", package)
        yield f"probably in the package {package}: run `{command}`"
    yield from _remarks(report)


def _outside(name: str, outside: OutsideProvider) -> Iterator[str]:
    """Yield the provider of a library or symbol outside the redistributables."""
    verb = "" if outside.provider is None else f" is provided by {outside.provider}"
    if outside.library is not None:
        verb = f" is named like a function of {outside.library}"
    yield f"{name}{verb}: {outside.reason}"
    if outside.packages:
        verb = "has" if len(outside.packages) == 1 else "have"
        yield f"{' and '.join(outside.packages)} {verb} a copy for older drivers"


def _found(report: WhichReport, *, is_grouped: bool) -> Iterator[str]:
    """Yield the files or symbols that match."""
    if report.cuda is not None:
        yield f"usable with CUDA {report.cuda}:"
    if report.is_beginning:
        yield f"files that begin with {report.name}:"
    if report.symbols:
        yield from _symbol_table(report, is_grouped=is_grouped)
        return
    head, rows = _file_rows(report)
    if report.is_beginning and is_grouped and len(rows) > _MOST_BEGINNINGS:
        yield from _packages(report.hits)
        yield f"{plural(len(rows), 'row')} by release and platform: add --all"
    else:
        yield from _table("file", head, rows, is_grouped=is_grouped)


def _symbol_table(report: WhichReport, *, is_grouped: bool) -> Iterator[str]:
    """Yield the table of symbols.

    Rows of a single symbol for other platforms are left out.
    """
    head, rows = _symbol_rows(report.symbols)
    hidden = 0
    if is_grouped and not any(character in (report.symbol or "") for character in "*?["):
        own = _PLATFORMS.get((platform.system(), platform.machine()))
        here = [hit for hit in report.symbols if hit.platform == own]
        if here:
            head, kept = _symbol_rows(here)
            hidden, rows = len(rows) - len(kept), kept
    yield from _table("symbol", head, rows, is_grouped=is_grouped)
    if hidden > 0:
        yield f"{plural(hidden, 'row')} for other platforms: add --all"
    if report.declaration is not None:
        yield f"declaration: {report.declaration}"


def _packages(hits: Iterable[WhichHit]) -> Iterator[str]:
    """Yield the kinds of archives of each package, with the names of its files."""
    lines = []
    for package, own in sorted(grouped((hit.package, hit) for hit in hits).items()):
        kinds = [*dict.fromkeys(_kind(hit) for hit in own if hit.project is None)]
        projects = sorted({hit.project for hit in own if hit.project is not None})
        if projects:
            kinds.append(f"wheels {', '.join(projects)}")
        names = sorted({posixpath.basename(hit.path) for hit in own}, key=natural_order)
        lines.append((package, f"{' and '.join(kinds)}: {listed(names[::-1], _MOST_NAMES)}"))
    yield from columns(lines)


def _remarks(report: WhichReport) -> Iterator[str]:
    """Yield what the rows mean, similar names, and the command that examines archives."""
    if not report.is_beginning:
        yield from _distributions(report.hits)
    if report.vulnerabilities:
        packages = ", ".join(dict.fromkeys(one.package for one in report.vulnerabilities))
        command = command_line("explain package", report.vulnerabilities[0].package)
        states = counted_states(report.vulnerabilities)
        yield f"known vulnerabilities of {packages}: {states}; run `{command}`"
    hits: Iterable[WhichHit | SymbolHit] = (*report.hits, *report.symbols)
    if any(hit.is_by_wheel for hit in hits):
        yield "by wheel: the archive was not examined, the wheel of the same version has it"
    if report.suggestions:
        yield f"did you mean {' or '.join(report.suggestions)}?"
    is_library = report.outside is not None and report.outside.library is None
    if report.hint is not None and not is_library:
        yield (
            f"{plural(report.unknown, 'archive')} not examined; run `{report.hint}` to inspect "
            "them, with --version or --package to inspect fewer"
        )


def _distributions(hits: Iterable[WhichHit]) -> Iterator[str]:
    """Yield whether the license texts list the files, with names or releases if they differ."""
    kinds = grouped((hit.distribution, hit) for hit in hits if hit.distribution is not None)
    has_one_name = len({posixpath.basename(hit.path) for own in kinds.values() for hit in own}) == 1
    parts = []
    for kind, words in DISTRIBUTION_WORDS.items():
        places = dict.fromkeys(
            f"{hit.redist} {hit.release}" if has_one_name else posixpath.basename(hit.path)
            for hit in kinds.get(kind, ())
        )
        if places and len(kinds) > 1:
            parts.append(f"{words} ({', '.join(shortened([*places], _MOST_RANGES))})")
        elif places:
            parts.append(words)
    if kinds.keys() - {"unknown"}:
        yield f"license texts: {'; '.join(parts)}"


def _nothing(report: WhichReport) -> str:
    """Return the sentence that no release provides the file or the symbol."""
    usable = "" if report.cuda is None else f" usable with CUDA {report.cuda}"
    if report.symbol is not None:
        return f"no local release{usable} exports {report.symbol}"
    only = f" for the platform, only for {', '.join(report.elsewhere)}" if report.elsewhere else ""
    return f"no local package{usable} provides {report.name}{only}"


def _table(noun: str, head: _Row, rows: Sequence[_Row], *, is_grouped: bool) -> Iterator[str]:
    """Yield a table. A grouped table has the number of names instead of the names."""
    if not is_grouped or len(rows) <= _MOST_ROWS:
        yield from columns([head, *rows])
        return
    position = head.index(noun)
    names = grouped((_without_cell(row, position), row[position]) for row in rows)
    grouped_rows = []
    for cells in sorted(names, key=lambda cells: [*map(natural_order, cells)]):
        count = f"{len(names[cells]):,}"
        grouped_rows.append((*cells[:position], count, *cells[position:]))
    grouped_head = (*head[:position], f"{noun}s", *head[position + 1 :])
    yield from columns([grouped_head, *grouped_rows])
    yield f"{len(rows):,} rows are grouped; add --all to list each {noun}"


def _symbol_rows(hits: Iterable[SymbolHit]) -> tuple[_Row, list[_Row]]:
    """Return the releases that export each symbol, a row for each library."""
    platforms = grouped((_symbol_cells(hit), place_name(hit.platform, hit.variant)) for hit in hits)
    head = (
        *("symbol", "library", "package", "kind", "project", "first", "last", "releases"),
        "platforms",
    )
    newest = grouped((_symbol_cells(hit), natural_order(hit.last)) for hit in hits)
    # The newest releases come first. Equal ones keep the order of their names.
    keys = sorted(platforms, key=lambda key: max(newest[key]), reverse=True)
    rows = [(*key, " ".join(platforms[key])) for key in keys]
    return _without_empty_columns(head, rows)


def _symbol_cells(hit: SymbolHit) -> _Row:
    """Return the cells of a symbol, without the platforms."""
    symbol = (hit.demangled or hit.symbol) + hit.version
    library = f"{hit.library} (stub)" if hit.stub else hit.library
    last = hit.last if hit.is_newest else f"{hit.until} (removed)"
    ranges = hit.releases.split(" ")
    gaps = " ".join(shortened(ranges, _MOST_RANGES)) if len(ranges) > 1 else ""
    return symbol, library, hit.package, _kind(hit), hit.project or "", hit.since, last, gaps


def _file_rows(report: WhichReport) -> tuple[_Row, list[_Row]]:
    """Return the releases with each file, a row for each package, output and platform."""
    groups = grouped((_file_cells(hit), hit) for hit in report.hits)
    by_wheel = grouped((hit.redist, hit.release) for hit in report.hits if hit.is_by_wheel)
    head = ("redist", "package", "kind", "project", "output", "file", "platform", "releases")
    rows: list[_Row] = []
    for cells, hits in sorted(groups.items()):
        first = hits[0]
        searched = report.searched.get(first.channel, {}).get(first.redist, ())
        if first.is_by_wheel:
            searched = tuple(dict.fromkeys(by_wheel[first.redist]))
        rows.append((*cells, _ranges([hit.release for hit in hits], searched)))
    return _without_empty_columns(head, rows)


def _file_cells(hit: WhichHit) -> _Row:
    """Return the cells of a file, the redistributable first and without the releases."""
    return (
        hit.redist,
        hit.package,
        _kind(hit),
        hit.project or "",
        hit.output or "omitted",
        hit.path,
        hit.id.place,
    )


def _kind(hit: WhichHit | SymbolHit) -> str:
    """Return the kind of the archives, marked if they were not examined."""
    title = CHANNEL_TITLES[hit.channel]
    return f"{title} (by wheel)" if hit.is_by_wheel else title


def _without_empty_columns(head: _Row, rows: list[_Row]) -> tuple[_Row, list[_Row]]:
    """Remove columns without any text, such as the projects if no archive is a wheel."""
    for position in reversed(range(len(head))):
        if not any(row[position] for row in rows):
            head = _without_cell(head, position)
            rows = [_without_cell(row, position) for row in rows]
    return head, rows


def _without_cell(row: _Row, position: int) -> _Row:
    return (*row[:position], *row[position + 1 :])


def _ranges(releases: Sequence[str], searched: Sequence[str]) -> str:
    """Return the ranges of releases, such as `12.4.1..12.9.2`, without gaps in `searched`."""
    selected = set(releases)
    ranges = label_ranges((label, label in selected) for label in searched)
    return " ".join(shortened(ranges.split(" "), _MOST_RANGES))
