"""What changed, as text and in Markdown.

The order is a reviewer's: other bytes under the same version, platforms and packages that are gone,
what lost something or needs more, what is new, which files moved, and the rest.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cudaredist.diffs.compare import is_critical, may_break
from cudaredist.errors import shortened
from cudaredist.primitives import natural_order
from cudaredist.render.common import escape_markdown
from cudaredist.reports.answer_reports import Delta, DiffReport, Move, PackageDelta

_FEW = 3
"""Packages that share a gained or lost platform and are still told one by one."""
_NAMES_SHOWN = 12
"""Names that come or go in one line; the others are counted."""
_PACKAGES_SHOWN = 60
"""Packages under one title; the others are counted."""


@dataclass(slots=True)
class _Section:
    """A title, and lines below it with details below each."""

    title: str
    lines: list[tuple[str, list[str]]] = field(default_factory=list)


def diff_text(report: DiffReport, *, shown: int = _PACKAGES_SHOWN) -> Iterator[str]:
    """Yield what is different, a line for each package and change."""
    yield f"{report.old} -> {report.new}"
    yield from (f"note: {note}" for note in report.notes)
    for section in _sections(report, _PLAIN, shown):
        yield f"{section.title}:"
        for line, details in section.lines:
            yield f"  {line}"
            yield from (f"      {detail}" for detail in details)
    yield _summary(report)


def diff_markdown(report: DiffReport) -> Iterator[str]:
    """Yield the same as Markdown, for a pull request."""
    yield f"### {escape_markdown(report.old)} → {escape_markdown(report.new)}"
    for note in report.notes:
        yield ""
        yield f"Note: {escape_markdown(note)}."
    for section in _sections(report, _MARKDOWN, _PACKAGES_SHOWN):
        yield ""
        yield f"**{section.title[0].upper()}{section.title[1:]}**"
        yield ""
        for line, details in section.lines:
            yield f"- {line}"
            yield from (f"  - {detail}" for detail in details)
    yield ""
    yield f"{_summary(report)}."


class _Style(NamedTuple):
    """How names and other texts are written."""

    name: Callable[[str], str]
    value: Callable[[str], str]


_PLAIN = _Style(str, str)
_MARKDOWN = _Style(lambda text: f"`{text.replace('`', '')}`", escape_markdown)
"""Names are code, and nothing of foreign text is markup."""


def _summary(report: DiffReport) -> str:
    count = len(report.packages)
    differ = "1 package differs" if count == 1 else f"{count} packages differ"
    return f"{differ}, {report.equal} {'is' if report.equal == 1 else 'are'} equal"


def _sections(report: DiffReport, style: _Style, shown: int) -> Iterator[_Section]:
    said_once = _said_once(report)
    left = [_without(package, said_once) for package in report.packages]
    renamed = {
        package.package: package.origin
        for package in left
        if package.status == "gone" and _is_renamed(package, left)
    }
    tests: tuple[tuple[str, Callable[[PackageDelta], bool]], ...] = (
        ("warning: other bytes under the same version", lambda p: any(map(is_critical, p.deltas))),
        ("platforms", lambda _: False),
        ("gone", lambda p: p.status == "gone" and p.package not in renamed),
        ("renamed", lambda p: p.package in renamed or p.package in renamed.values()),
        ("may break", lambda p: p.status == "changed" and _may_break(p)),
        ("added", lambda p: p.status == "added"),
        ("changed", lambda p: bool(p.deltas)),
    )
    for title, belongs in tests:
        section = _Section(title)
        if title == "platforms":
            section.lines = [(line, []) for line in _platform_lines(report, said_once, style)]
        chosen = [package for package in left if belongs(package)]
        left = [package for package in left if not belongs(package)]
        if title == "renamed":
            section.lines = list(_renamed_lines(chosen, renamed, style))
        else:
            for package in chosen[:shown]:
                section.lines.append((_package_line(package, style), _details(package, style)))
            if len(chosen) > shown:
                section.lines.append((f"and {len(chosen) - shown} more", []))
        if section.lines:
            yield section
        if title == "added":
            moves = [move for move in report.moves if renamed.get(move.old) != move.new]
            if moves:
                yield _Section("moved", [(_move_line(move, style), []) for move in moves])
    if report.tables:
        lines = [(_delta_line(delta, style), list[str]()) for delta in report.tables]
        yield _Section("compilers and GPUs", lines)


# -- platforms that many packages gained or lost


def _said_once(report: DiffReport) -> dict[tuple[str, str], list[str]]:
    """Return the packages that gained (`+`) or lost (`-`) a platform, where that is said once."""
    found: dict[tuple[str, str], list[str]] = {}
    for package in report.packages:
        for delta in package.deltas if package.status == "changed" else ():
            if delta.field == "platforms":
                for sign, places in (("-", delta.gone), ("+", delta.added)):
                    for place in places:
                        found.setdefault((sign, place), []).append(package.package)
    whole = _whole(report)
    return {key: names for key, names in found.items() if len(names) > _FEW or key in whole}


def _whole(report: DiffReport) -> set[tuple[str, str]]:
    """Return the platforms that one side does not have at all."""
    both = report.platforms
    if both is None:
        return set()
    return {("-", place) for place in both.gone} | {("+", place) for place in both.added}


def _platform_lines(
    report: DiffReport, said_once: Mapping[tuple[str, str], list[str]], style: _Style
) -> Iterator[str]:
    """Yield a line for each platform, those that are gone altogether first."""
    whole = _whole(report)

    def order(key: tuple[str, str]) -> tuple[object, ...]:
        sign, place = key
        return (key not in whole or sign == "+", sign == "+", natural_order(place))

    for key in sorted(said_once.keys() | whole, key=order):
        sign, place = key
        names = said_once.get(key, [])
        count = len(names)
        listed = ", ".join(map(style.name, names)) if count <= _FEW else f"{count} packages"
        word = ("gone from" if sign == "-" else "new in") if listed else ""
        if key in whole:
            word = "gone altogether" if sign == "-" else "new"
            listed = f"({'from' if sign == '-' else 'in'} {listed})" if listed else ""
        yield f"{style.name(place)}: {word} {listed}".rstrip()


def _without(package: PackageDelta, said_once: Mapping[tuple[str, str], list[str]]) -> PackageDelta:
    """Return a package's changes without those that are said once for many."""
    if package.status != "changed":
        return package
    deltas = []
    for delta in package.deltas:
        if delta.field != "platforms":
            deltas.append(delta)
            continue
        added = tuple(name for name in delta.added if ("+", name) not in said_once)
        gone = tuple(name for name in delta.gone if ("-", name) not in said_once)
        if added or gone:
            deltas.append(delta.model_copy(update={"added": added, "gone": gone}))
    return package.model_copy(update={"deltas": tuple(deltas)})


# -- packages


def _is_renamed(package: PackageDelta, packages: Iterable[PackageDelta]) -> bool:
    """Say whether a package that is gone and a new one are each other's origin."""
    return any(
        other.status == "added"
        and other.package == package.origin
        and other.origin == package.package
        for other in packages
    )


def _renamed_lines(
    packages: Sequence[PackageDelta], renamed: Mapping[str, str | None], style: _Style
) -> Iterator[tuple[str, list[str]]]:
    by_name = {package.package: package for package in packages}
    for old, new in renamed.items():
        before, after = by_name[old], by_name[new or ""]
        yield " -> ".join(_named(package, style) for package in (before, after)), []


def _move_line(move: Move, style: _Style) -> str:
    """Return which files moved: those of one folder that lie in one folder again are counted."""
    pairs = [(path, path) for path in move.equal]
    by_name = {posixpath.basename(path): path for path in move.added}
    pairs += [(path, by_name[posixpath.basename(path)]) for path in move.gone]
    folders: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for old, new in pairs:
        key = (posixpath.dirname(old), posixpath.dirname(new))
        folders.setdefault(key, []).append((old, new))
    told = []
    for key in sorted(folders, key=lambda key: tuple(map(natural_order, key))):
        found = folders[key]
        ends = found[0] if len(found) == 1 else tuple(f"{folder}/" for folder in key)
        count = "" if len(found) == 1 else f" ({len(found)} files)"
        told.append(" -> ".join(map(style.name, dict.fromkeys(ends))) + count)
    listed = ", ".join(shortened(told, _NAMES_SHOWN))
    return f"{style.name(move.old)} -> {style.name(move.new)}: {listed}"


def _named(package: PackageDelta, style: _Style) -> str:
    version = next((d.old or d.new for d in package.deltas if d.field == "version"), None)
    return " ".join([style.name(package.package), *map(style.value, filter(None, [version]))])


def _may_break(package: PackageDelta) -> bool:
    return bool(package.parts) or any(map(may_break, package.deltas))


def _package_line(package: PackageDelta, style: _Style) -> str:
    words = [style.name(package.package)]
    for delta in package.deltas:
        if delta.field == "version":
            sides = [side for side in (delta.old, delta.new) if side is not None]
            words.append(" -> ".join(map(style.value, sides)))
    if package.status != "changed":
        places = [place for d in package.deltas for place in (*d.added, *d.gone)]
        words.append(f"({', '.join(map(style.value, places))})" if places else "")
    if package.origin:
        words.append(f"{'from' if package.status == 'added' else 'now in'}")
        words.append(style.name(package.origin))
    if package.parts:
        words.append(f"split: {', '.join(map(style.name, package.parts))}")
    return " ".join(filter(None, words))


def _details(package: PackageDelta, style: _Style) -> list[str]:
    if package.status != "changed":
        return []
    return [_delta_line(delta, style) for delta in package.deltas if delta.field != "version"]


def _delta_line(delta: Delta, style: _Style) -> str:
    where = f" [{', '.join(delta.places)}]" if delta.places else ""
    about = style.value(f"{delta.field}{where}")
    if delta.added or delta.gone:
        signs = [*_signed("-", delta.gone, style), *_signed("+", delta.added, style)]
        shares = f" ({delta.old} -> {delta.new})" if delta.old and delta.new else ""
        return f"{about}: {' '.join(signs)}{style.value(shares)}"
    old, new = _shortened(delta.old, delta.field), _shortened(delta.new, delta.field)
    return f"{about}: {style.value(old)} -> {style.value(new)}"


def _signed(sign: str, names: Sequence[str], style: _Style) -> Iterator[str]:
    yield from (style.value(f"{sign}{name}") for name in names[:_NAMES_SHOWN])
    if len(names) > _NAMES_SHOWN:
        yield f"({sign}{len(names) - _NAMES_SHOWN} more)"


def _shortened(value: str | None, field_name: str) -> str:
    if value is None:
        return "none"
    if field_name == "sha256":
        return f"{value[:12]}…"
    return f"{int(value):,} bytes" if field_name.endswith("size") else value
