"""Differences as text and Markdown.

The order is a reviewer's: changed bytes under the same version, removed platforms and packages,
losses and new requirements, additions, moved files, other changes.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from cudaredist.cli.text import escape_markdown, text_blocks
from cudaredist.commands.diff.api_changes import count_line
from cudaredist.commands.diff.compare import SIZES, may_break
from cudaredist.commands.diff.export_changes import EXPORTS
from cudaredist.commands.diff.file_text import file_lines, summary_lines
from cudaredist.commands.diff.report import (
    Delta,
    DiffReport,
    Move,
    PackageDelta,
)
from cudaredist.commands.diff.style import MARKDOWN, PLAIN, DiffStyle
from cudaredist.commands.diff.vulnerability_text import vulnerability_lines
from cudaredist.grouping import grouped
from cudaredist.primitives import natural_order
from cudaredist.words import shortened

_OTHER_BYTES = "warning: other bytes under the same version"
_TITLES = (
    _OTHER_BYTES,
    "summary",
    "known vulnerabilities",
    "platforms",
    "gone",
    "renamed",
    "may break",
    "files gone",
    "files moved",
    "run paths",
    "added",
    "moved",
    "files added",
    "changed",
    "sizes",
    "CUDA release",
    "API",
)
"""The titles in a reviewer's order."""
_FEW = 3
"""Maximum number of packages to list for one gained or lost platform."""
_NAMES_SHOWN = 12
"""Maximum number of names to list in a line. The others are counted."""
_LINE = 100
"""Maximum length of the names in a line, so that lines have at most 160 characters."""
_PACKAGES_SHOWN = 60
"""Maximum number of packages to list for a title. The others are counted."""


class DiffSection(NamedTuple):
    """A title with lines, each followed by its details."""

    title: str
    lines: list[tuple[str, list[str]]]


def diff_text(
    report: DiffReport,
    *,
    has_symbols: bool = False,
    is_commit: bool = False,
    is_long: bool = False,
) -> Iterator[str]:
    """Yield the differences, a line for each package and change."""
    style = PLAIN._replace(has_symbols=has_symbols, is_commit=is_commit, is_long=is_long)
    yield f"{report.old} -> {report.new}"
    yield from (f"note: {note}" for note in report.notes)
    for section in diff_sections(report, style):
        yield f"{section.title}:"
        for line, details in section.lines:
            yield f"  {line}"
            yield from (f"      {detail}" for detail in details)
    yield diff_summary(report)


def diff_markdown(
    report: DiffReport, *, has_symbols: bool = False, is_long: bool = False
) -> Iterator[str]:
    """Return the differences as Markdown, for a pull request."""
    style = MARKDOWN._replace(has_symbols=has_symbols, is_long=is_long)
    parts = [[f"### {escape_markdown(report.old)} → {escape_markdown(report.new)}"]]
    parts += ([f"Note: {escape_markdown(note)}."] for note in report.notes)
    for section in diff_sections(report, style):
        parts.append([f"**{section.title[0].upper()}{section.title[1:]}**"])
        bullets = ((f"- {line}", *(f"  - {d}" for d in details)) for line, details in section.lines)
        parts.append([*chain.from_iterable(bullets)])
    return text_blocks(*parts, [f"{diff_summary(report)}."])


def diff_summary(report: DiffReport) -> str:
    """Return the number of packages that differ."""
    count = len(report.packages)
    differ = "1 package differs" if count == 1 else f"{count} packages differ"
    return f"{differ}, {report.equal} {'is' if report.equal == 1 else 'are'} equal"


def diff_sections(report: DiffReport, style: DiffStyle) -> Iterator[DiffSection]:
    """Yield the changes in a reviewer's order, each in one section."""
    shared = _shared_platforms(report)
    packages = [_without(package, shared) for package in report.packages]
    origins = {p.package: p.origin for p in packages if p.status == "added"}
    renamed = {
        package.package: package.origin or ""
        for package in packages
        if package.status == "gone" and origins.get(package.origin or "") == package.package
    }
    by_name = {package.package: package for package in packages}
    by_title = grouped(
        (_title_of(part), part)
        for package in packages
        if package.package not in renamed and package.package not in renamed.values()
        for part in _parts_of(package)
    )
    moves = [move for move in report.moves if renamed.get(move.old) != move.new]
    moves = [] if report.files else moves  # "files moved" has them
    sizes = _sizes(packages) if style.is_commit else {}
    limit = style.limit(_PACKAGES_SHOWN)
    plain_lines = {
        "summary": () if style.is_commit or len(packages) <= _FEW else summary_lines(report),
        "known vulnerabilities": vulnerability_lines(report, style),
        "platforms": _platform_lines(report, shared, style),
        "renamed": (
            " -> ".join(_named(by_name[name], style) for name in names) for names in renamed.items()
        ),
        "moved": (_move_line(move, style) for move in moves),
        "sizes": (f"{place}: {', '.join(names)}" for place, names in sizes.items()),
        "CUDA release": (_delta_line(delta, style) for delta in report.tables),
        "API": [count_line(report.api)] if report.api else (),
    }
    for title in _TITLES:
        matches = by_title.get(title, [])
        lines = [(line, list[str]()) for line in plain_lines.get(title, ())]
        lines += file_lines(report, title, style)
        lines += [(_package_line(p, style), _details(p, style)) for p in matches[:limit]]
        if len(matches) > limit:
            lines.append((f"and {len(matches) - limit} more", []))
        if lines:
            yield DiffSection(title, lines)


def _parts_of(package: PackageDelta) -> Iterator[PackageDelta]:
    """Yield the changes that may break something, and those that do not."""
    breaking = [delta for delta in package.deltas if may_break(delta)]
    rest = [d for d in package.deltas if d not in breaking and d.field != "version"]
    is_mixed = (breaking or package.parts) and rest and package.status == "changed"
    if not is_mixed or any(delta.field == "sha256" for delta in package.deltas):
        yield package
        return
    version = [delta for delta in package.deltas if delta.field == "version"]
    breaking = [delta for delta in breaking if delta not in version]
    yield package.changed(deltas=(*breaking, *version))
    yield package.changed(deltas=(*rest, *version), parts=())


def _title_of(package: PackageDelta) -> str:
    """Return the section of a package, empty if only shared platforms changed."""
    if any(delta.field == "sha256" for delta in package.deltas):
        return _OTHER_BYTES
    if package.status != "changed":
        return package.status
    if package.parts or any(map(may_break, package.deltas)):
        return "may break"
    return "changed" if package.deltas else ""


# -- platforms that many packages gained or lost


def _shared_platforms(report: DiffReport) -> dict[tuple[str, str], list[str]]:
    """Map platforms to the packages that gained or lost them.

    Keys have the sign `+` or `-`. Only platforms that get one line for many packages are included.
    """
    packages = grouped(
        (key, package.package)
        for package in report.packages
        if package.status == "changed"
        for delta in package.deltas
        if delta.field == "platforms"
        for key in _signed_names(delta)
    )
    whole = _whole(report)
    return {key: names for key, names in packages.items() if len(names) > _FEW or key in whole}


def _whole(report: DiffReport) -> set[tuple[str, str]]:
    """Return the platforms that one side lacks completely."""
    return set() if report.platforms is None else set(_signed_names(report.platforms))


def _signed_names(delta: Delta) -> list[tuple[str, str]]:
    return [*(("-", name) for name in delta.gone), *(("+", name) for name in delta.added)]


def _platform_lines(
    report: DiffReport, shared: Mapping[tuple[str, str], list[str]], style: DiffStyle
) -> Iterator[str]:
    """Yield a line for each platform, completely removed ones first."""
    whole = _whole(report)

    def order(key: tuple[str, str]) -> tuple[object, ...]:
        sign, platform = key
        is_removed = sign == "-" and key in whole
        return (not is_removed, sign == "+", natural_order(platform))

    for key in sorted(shared.keys() | whole, key=order):
        sign, platform = key
        names = shared.get(key, [])
        count = len(names)
        listed = ", ".join(map(style.name, names)) if count <= _FEW else f"{count} packages"
        if key not in whole:
            words = f"gone from {listed}" if sign == "-" else f"new in {listed}"
        elif sign == "-":
            words = "no archives any more" + (f" (of {listed})" if listed else "")
        else:
            words = "new" + (f" (in {listed})" if listed else "")
        yield f"{style.name(platform)}: {words}"


def _without(package: PackageDelta, shared: Mapping[tuple[str, str], list[str]]) -> PackageDelta:
    """Return a package's changes without shared platforms."""
    if package.status != "changed":
        return package
    deltas = []
    for delta in package.deltas:
        if delta.field != "platforms":
            deltas.append(delta)
            continue
        added = tuple(name for name in delta.added if ("+", name) not in shared)
        gone = tuple(name for name in delta.gone if ("-", name) not in shared)
        if added or gone:
            deltas.append(delta.changed(added=added, gone=gone))
    return package.changed(deltas=tuple(deltas))


# -- packages


def _move_line(move: Move, style: DiffStyle) -> str:
    """Return the moved files, combined by old and new folder."""
    pairs = [(path, path) for path in move.equal]
    by_name = {posixpath.basename(path): path for path in move.added}
    pairs += [(path, by_name[posixpath.basename(path)]) for path in move.gone]
    folders = grouped(((posixpath.dirname(a), posixpath.dirname(b)), (a, b)) for a, b in pairs)
    moves = []
    for key in sorted(folders, key=lambda key: tuple(map(natural_order, key))):
        files = folders[key]
        ends = files[0] if len(files) == 1 else tuple(f"{folder}/" for folder in key)
        count = "" if len(files) == 1 else f" ({len(files)} files)"
        moves.append(" -> ".join(map(style.name, dict.fromkeys(ends))) + count)
    listed = ", ".join(shortened(moves, style.limit(_NAMES_SHOWN)))
    return f"{style.name(move.old)} -> {style.name(move.new)}: {listed}"


def _named(package: PackageDelta, style: DiffStyle) -> str:
    version = next((d.old or d.new for d in package.deltas if d.field == "version"), None)
    return " ".join([style.name(package.package), *map(style.value, filter(None, [version]))])


def _package_line(package: PackageDelta, style: DiffStyle) -> str:
    words = [style.name(package.package)]
    for delta in package.deltas:
        if delta.field == "version":
            sides = [side for side in (delta.old, delta.new) if side is not None]
            words.append(" -> ".join(map(style.value, sides)))
    if package.status != "changed":
        platforms = [name for d in package.deltas for name in (*d.added, *d.gone)]
        words.append(f"({', '.join(map(style.value, platforms))})" if platforms else "")
    if package.origin:
        words.append("from" if package.status == "added" else "now in")
        words.append(style.name(package.origin))
    if package.parts:
        words.append(f"split: {', '.join(map(style.name, package.parts))}")
    return " ".join(filter(None, words))


def _details(package: PackageDelta, style: DiffStyle) -> list[str]:
    if package.status != "changed":
        return []
    sizes = _size_deltas(package) if style.is_commit else ()
    return [
        _delta_line(delta, style)
        for delta in package.deltas
        if delta.field != "version" and delta not in sizes
    ]


def _sizes(packages: Iterable[PackageDelta]) -> dict[str, list[str]]:
    """Return the packages whose size changed, by platform.

    The size of the unpacked files is preferred to that of the archive.
    """
    sizes: dict[str, dict[str, str]] = {}
    for package in packages:
        for delta in _size_deltas(package):
            change = int(delta.new or 0) / int(delta.old or 1) - 1
            for place in delta.places:
                of_place = sizes.setdefault(place, {})
                of_place.setdefault(package.package, f"{package.package} {change:+.0%}")
    return {place: [*sizes[place].values()] for place in sorted(sizes, key=natural_order)}


def _size_deltas(package: PackageDelta) -> tuple[Delta, ...]:
    """Return the changed sizes of a package with another version."""
    if all(delta.field != "version" for delta in package.deltas):
        return ()
    sizes = (delta for delta in package.deltas if delta.field in SIZES and delta.places)
    return tuple(delta for delta in sizes if delta.old and delta.new)


def _delta_line(delta: Delta, style: DiffStyle) -> str:
    suffix = f" [{', '.join(delta.places)}]" if delta.places else ""
    about = style.value(f"{delta.field}{suffix}")
    if delta.field == EXPORTS:
        return f"{about}: {_symbols(delta, style)}"
    if delta.added or delta.gone:
        limit = style.limit(_LINE // 2 if delta.gone and delta.added else _LINE)
        signs = [*_signed("-", delta.gone, style, limit), *_signed("+", delta.added, style, limit)]
        shares = f" ({delta.old} -> {delta.new})" if delta.old and delta.new else ""
        return f"{about}: {' '.join(signs)}{style.value(shares)}"
    old, new = _shortened(delta.old, delta.field), _shortened(delta.new, delta.field)
    return f"{about}: {style.value(old)} -> {style.value(new)}"


def _symbols(delta: Delta, style: DiffStyle) -> str:
    """Return the symbols that are exported on one side only, or their numbers."""
    if not style.has_symbols:
        counts = {"removed": len(delta.gone), "added": len(delta.added)}
        return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return " ".join(style.value(f"{sign}{name}") for sign, name in _signed_names(delta))


def _signed(sign: str, names: Sequence[str], style: DiffStyle, longest: int) -> Iterator[str]:
    """Yield names with a sign, and the number of those that make the line too long."""
    shown, size = 0, 0
    for name in names[: style.limit(_NAMES_SHOWN)]:
        size += len(name) + 2
        if shown and size > longest:
            break
        shown += 1
    yield from (style.value(f"{sign}{name}") for name in names[:shown])
    if len(names) > shown:
        yield f"({sign}{len(names) - shown} more)"


def _shortened(value: str | None, field_name: str) -> str:
    if value is None:
        return "none"
    if field_name == "sha256":
        return f"{value[:12]}…"
    return f"{int(value):,} bytes" if field_name.endswith("size") else value
