"""diff --api: the names in NVIDIA's headers that differ between two releases."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple, TypeAlias

from cudaredist.cli.text import columns, escape_markdown, markdown_table
from cudaredist.commands.diff.report import ApiChange, ApiCount, ApiDiffReport, ApiStatus
from cudaredist.errors import IncompleteError, UnknownNameError, UsageError
from cudaredist.grouping import grouped
from cudaredist.hints import command_line, corrected
from cudaredist.primitives import Version, find_release
from cudaredist.source_code.api import (
    CCCL_FOLDER,
    Api,
    Form,
    History,
    api_releases,
    argument_changes,
    header_name,
    read_api,
)
from cudaredist.source_code.c_types import CType, type_of
from cudaredist.store.facts_index import Index
from cudaredist.words import plural

_STATUSES: Sequence[ApiStatus] = ("removed", "changed", "deprecated", "added")
_KINDS = ("function", "field", "enumerator", "macro", "type", "variable", "header", "name")
_PLURALS = {"name": "C++ names"}
_TYPES = frozenset({"struct", "union", "enum", "typedef"})
_SHOWN = 12
"""Names of a header that are listed in a line. The others are counted."""

_Types: TypeAlias = Callable[[str], CType]
"""Returns the type of a declaration in a release."""


class _Difference(NamedTuple):
    """A name that differs between two releases."""

    status: ApiStatus
    old: Form | None
    """None: the report does not show the old declaration."""
    form: Form
    """The form that the report is about: that of the newest release with the name."""


class _Line(NamedTuple):
    name: str
    details: list[str]


def compare_apis(old: str, new: str, index: Index) -> ApiDiffReport:
    """Compare the APIs of two releases, such as `cuda@12.9` and `cuda@13.0`.

    Raises `UsageError` for releases of two products, `UnknownNameError` for an unknown release, and
    `IncompleteError` without tables.
    """
    (redist, first), (other, second) = (_parts(text) for text in (old, new))
    if redist != other:
        raise UsageError(
            f"--api requires two releases of one product, not of {redist} and {other}",
            hint=f"run `{corrected(f'{other}@{second}', f'{redist}@{second}')}`",
        )
    releases = api_releases(index, redist)
    if not releases:
        hint = f"run `{command_line('update-api')}`"
        raise IncompleteError(f"no tables of APIs for {redist} in the data", hint=hint)
    before, after = _release(first, releases), _release(second, releases)
    api = read_api(index, redist, (before, after))
    changes = tuple(api_changes(api, before, after))
    unknown = api.packages_without(before) | api.packages_without(after)
    notes = [f"unknown in one of the releases: {', '.join(sorted(unknown))}"] if unknown else []
    return ApiDiffReport(
        old=f"{redist}@{before}",
        new=f"{redist}@{after}",
        counts=count_changes(changes),
        changes=changes,
        notes=tuple(notes),
    )


def count_changes(changes: Iterable[ApiChange]) -> tuple[ApiCount, ...]:
    """Return the number of changes by status and kind, in the order of reports."""
    return _counts((change.status, change.kind) for change in changes)


def _counts(changes: Iterable[tuple[ApiStatus, str]]) -> tuple[ApiCount, ...]:
    counts = Counter((status, _group(kind)) for status, kind in changes)
    return tuple(
        ApiCount(status=status, kind=kind, count=counts[status, kind])
        for status in _STATUSES
        for kind in _KINDS
        if counts[status, kind]
    )


def api_counts(api: Api, old: Version, new: Version) -> tuple[ApiCount, ...]:
    """Return the number of changes between two releases, none if one is unknown."""
    if old not in api.releases or new not in api.releases:
        return ()
    return _counts((status, form.kind) for status, _, form in _differences(api, old, new))


def _parts(text: str) -> tuple[str, str]:
    redist, at, label = text.partition("@")
    if not at:
        message = f"--api compares releases, such as cuda@12.9, not {text}"
        raise UsageError(message, hint="run `cudaredist diff --api cuda@12.9 cuda@13.0`")
    return redist, label


def _release(text: str, releases: Sequence[Version]) -> Version:
    label = find_release(text, releases)
    if label is None:
        raise UnknownNameError("release of the tables of APIs", text, map(str, releases))
    return label


def api_changes(api: Api, old: Version, new: Version) -> Iterator[ApiChange]:
    """Yield the changes between two releases by status, kind, header and name."""
    changes = [_change(*difference) for difference in _differences(api, old, new)]
    yield from sorted(changes, key=_order)


def _differences(api: Api, old: Version, new: Version) -> Iterator[_Difference]:
    """Yield the names that differ between two releases."""
    before, after = api.bit(old), api.bit(new)
    types = _types(api, after)
    for history in api.changing(before, after):
        yield from _differences_of(history, before, after, types)


def _order(change: ApiChange) -> tuple[int, int, str, str]:
    kind = _KINDS.index(_group(change.kind))
    return _STATUSES.index(change.status), kind, change.header, change.name


def _group(kind: str) -> str:
    """Return the kind of a name in counts, in which all types are one."""
    return "type" if kind in _TYPES else kind


def _differences_of(
    history: History, before: int, after: int, types: _Types
) -> Iterator[_Difference]:
    """Yield the differences of one name. A name behind a macro is not one of its own."""
    old, new = _form(history, before), _form(history, after)
    if (old is None or old.is_alias) and (new is None or new.is_alias):
        return
    if old is None and new is not None:
        yield _Difference("added", None, new)
    elif old is not None and new is None:
        yield _Difference("removed", old, old)
    elif old is not None and new is not None:
        # A name of C++ has no declaration to compare.
        is_known = old.kind == new.kind or "name" not in {old.kind, new.kind}
        is_same = not is_known or _is_same_text(old, new)
        if not is_same and _content(old, types) != _content(new, types):
            yield _Difference("changed", old, new)
        if history.deprecated & after and not history.deprecated & before:
            yield _Difference("deprecated", None, new)


def _form(history: History, release: int) -> Form | None:
    """Return the form in a release.

    A function's own declaration comes before that of a macro for it, and before a name of C++.
    """
    forms = [form for form in history.forms if form.releases & release]
    if len(forms) == 1:
        return forms[0]
    return min(forms, key=lambda form: (form.kind == "name", form.is_alias), default=None)


def _is_same_text(old: Form, new: Form) -> bool:
    """Check if two declarations are equal. To read their parameters takes long."""
    return (old.kind, old.name, old.signature) == (new.kind, new.name, new.signature)


def _content(form: Form, types: _Types) -> object:
    """Return the parts of a declaration whose change matters. Types are those behind typedefs."""
    if form.kind == "function":
        result = types(form.signature.partition("(")[0])
        parameters = (types(one.text).as_parameter() for one in form.parameters)
        return result, tuple(parameters)
    if form.kind in {"field", "typedef", "variable"}:
        return types(form.signature)
    return form.signature


def _types(api: Api, release: int) -> _Types:
    """Return the function that reads types with the typedefs of a release."""

    @cache
    def declared(name: str) -> str | None:
        history = api.names.get(name)
        form = None if history is None else _form(history, release)
        return form.signature if form is not None and form.kind == "typedef" else None

    # Most functions have parameters of the same few types.
    return cache(partial(type_of, typedefs=declared))


def _change(status: ApiStatus, old: Form | None, form: Form) -> ApiChange:
    advice = ""
    if status == "changed" and old is not None and old.kind == form.kind == "function":
        advice = argument_changes(old, form)
    elif status == "deprecated":
        advice = form.deprecated or ""
    return ApiChange(
        status=status,
        kind=form.kind,
        name=form.title,
        header=form.header,
        package=form.package,
        old=None if old is None else old.signature,
        new=None if status == "removed" else form.signature,
        advice=advice or None,
    )


# -- as text


def count_line(counts: Sequence[ApiCount]) -> str:
    """Return the number of changes in one line."""
    parts = []
    for status, own in grouped((count.status, count) for count in counts).items():
        words = ", ".join(_counted(count.kind, count.count) for count in own)
        parts.append(f"{words} {status}")
    return "; ".join(parts)


def _counted(kind: str, count: int) -> str:
    return plural(count, kind.replace("name", "C++ name"))


def api_text(report: ApiDiffReport, *, is_long: bool = False) -> Iterator[str]:
    """Yield the number of changes, then removed and changed functions, then all others."""
    yield f"API of {report.old} -> {report.new}"
    yield from (f"note: {note}" for note in report.notes)
    yield from columns(_count_rows(report))
    for title, changes in _sections(report):
        yield ""
        yield f"{title}:"
        for place, lines in _places(changes, is_long=is_long):
            yield f"  {place}"
            for line in lines:
                yield f"    {line.name}"
                yield from (f"      {detail}" for detail in line.details)


def api_markdown(report: ApiDiffReport, *, is_long: bool = False) -> Iterator[str]:
    """Yield the changes as Markdown, for a pull request."""
    yield f"### API of {escape_markdown(report.old)} → {escape_markdown(report.new)}"
    yield ""
    yield from (f"Note: {escape_markdown(note)}." for note in report.notes)
    yield from markdown_table(_count_rows(report))
    for title, changes in _sections(report):
        yield ""
        yield f"**{title[0].upper()}{title[1:]}**"
        yield ""
        for place, lines in _places(changes, is_long=is_long):
            yield f"- `{place}`"
            for line in lines:
                yield f"  - {escape_markdown(line.name)}"
                yield from (f"    - {escape_markdown(detail)}" for detail in line.details)


def _count_rows(report: ApiDiffReport) -> list[tuple[str, ...]]:
    """Return the table with a row for each status and a column for each kind."""
    counts = {(count.status, count.kind): count.count for count in report.counts}
    kinds = [kind for kind in _KINDS if any(one == kind for _, one in counts)]
    if not kinds:
        return [("no differences",)]
    rows: list[tuple[str, ...]] = [("", *(_PLURALS.get(kind, f"{kind}s") for kind in kinds))]
    rows += (
        (status, *(f"{counts.get((status, kind), 0):,}" for kind in kinds)) for status in _STATUSES
    )
    return rows


def _sections(report: ApiDiffReport) -> Iterator[tuple[str, Sequence[ApiChange]]]:
    """Yield removed and changed functions first, then other names by kind, then new ones."""
    by_place = grouped(((change.status, _group(change.kind)), change) for change in report.changes)
    removed, changed, deprecated, added = _STATUSES
    places = [(status, kind) for kind in _KINDS for status in (removed, changed)]
    places += ((status, kind) for status in (deprecated, added) for kind in _KINDS)
    for status, kind in places:
        if (status, kind) in by_place:
            is_move = (status, kind) == ("changed", "header")
            verb = "moved" if is_move else status
            yield f"{verb} {_PLURALS.get(kind, f'{kind}s')}", by_place[status, kind]


def _places(
    changes: Sequence[ApiChange], *, is_long: bool
) -> Iterator[tuple[str, Iterable[_Line]]]:
    """Yield the changes of each header, and those of headers themselves by package."""
    is_header = changes[0].kind == "header"
    by_place = grouped((one.package if is_header else one.header, one) for one in changes)
    for place, own in by_place.items():
        is_move = is_header and own[0].status == "changed" and not is_long
        yield place, _moves(own) if is_move else _lines(own, is_long=is_long)


def _moves(changes: Sequence[ApiChange]) -> Iterator[_Line]:
    """Yield the folders with headers that moved into `CCCL_FOLDER`, or out of it."""
    where = "to" if changes[0].header.startswith(CCCL_FOLDER) else "from"
    names = (header_name(change.header) for change in changes)
    for folder, number in Counter(name.partition("/")[0] for name in names).items():
        headers = plural(number, "header")
        yield _Line(
            f"{folder}: {headers} {where} the folder {CCCL_FOLDER}, which nvcc searches", []
        )


def _lines(changes: Sequence[ApiChange], *, is_long: bool) -> Iterator[_Line]:
    """Yield the changes of a header. All removed and changed functions are listed."""
    first = changes[0]
    is_whole = is_long or (first.kind == "function" and first.status in {"removed", "changed"})
    shown = changes if is_whole else changes[:_SHOWN]
    for change in shown:
        details = []
        if change.status == "changed":
            details += [f"old: {change.old}", f"new: {change.new}"]
        if change.advice:
            title = "in calls" if change.status == "changed" else "note"
            details.append(f"{title}: {change.advice}")
        yield _Line(change.name, details)
    if len(changes) > len(shown):
        yield _Line(f"and {len(changes) - len(shown):,} more", [])
