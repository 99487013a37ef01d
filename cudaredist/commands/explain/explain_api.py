"""explain api: the declarations of a name in NVIDIA's headers, by release."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from cudaredist.commands.explain.api_report import ApiEntry, ApiForm, ApiMember, ApiReport
from cudaredist.errors import EXIT_OK, IncompleteError, UnknownNameError
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.primitives import Version, natural_order, parse_label
from cudaredist.similar_names import misspelled_names
from cudaredist.source_code.api import CCCL_FOLDER, header_name
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.symbols.label_ranges import label_ranges
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.words import listed, plural

_SAME_LETTERS = 4
"""First letters that similar names have in common."""
_MEMBERS_SHOWN = 12
_LIBRARIES_SHOWN = 2
_CONTAINERS = frozenset({"struct", "union", "enum"})


class _Row(NamedTuple):
    redist: str
    kind: str
    name: str
    parent: str
    package: str
    header: str
    signature: str
    symbol: str
    deprecated: str | None
    labels: str
    """Of the releases with this form, separated by commas."""
    known: str
    """Of all releases of the package."""


def _question(condition: str) -> Question[_Row]:
    return Question(
        _Row,
        f"""
        SELECT redist, kind, name, parent, own.package, header, signature, symbol, deprecated,
            group_concat(DISTINCT label) AS labels, (
                SELECT group_concat(DISTINCT label) FROM api_archives
                JOIN api_providers AS every ON every.id = provider
                WHERE every.package = own.package AND every.redist = api_providers.redist
            ) AS known
        FROM api_forms AS own
        JOIN api_releases ON api_releases.api_set = own.api_set
        JOIN api_providers ON api_providers.id = provider
        WHERE {condition} AND kind != 'unread' AND NOT EXISTS (
            SELECT 1 FROM api_providers AS upper
            WHERE upper.package = own.package AND upper.layer < own.layer
        )
        GROUP BY own.rowid, redist
        ORDER BY redist, kind, name, parent, header""",
    )


_BY_NAME = _question("name = ?")
_BY_SYMBOL = _question("symbol = ?")
_BY_PARENT = _question("parent = ?")


class _Name(NamedTuple):
    name: str


_NAMES = Question(_Name, "SELECT DISTINCT name FROM api_forms WHERE name GLOB ? || '*'")
_IS_KNOWN = Question(_Name, "SELECT name FROM api_forms WHERE name = ? LIMIT 1")
_ANY = Question(_Name, "SELECT name FROM api_forms LIMIT 1")


def is_api_name(text: str, index: Index) -> bool:
    """Check if headers declare a name, or the field of a struct."""
    return bool(index.ask(_IS_KNOWN, text) or _rows(text, index))


def explain_api(text: str, index: Index) -> ApiReport:
    """Explain a name, or a field such as `cudaDeviceProp.clockRate`.

    Raises `UnknownNameError`, and `IncompleteError` without tables.
    """
    rows = _rows(text, index)
    if not rows:
        if not index.ask(_ANY):
            hint = f"run `{command_line('update-api')}`"
            raise IncompleteError("no tables of APIs in the data", hint=hint)
        raise UnknownNameError("name of the headers", text, (), similar_api_names(text, index))
    # A header of C++ can declare a function of C again, with other parameters.
    declared = {row.redist for row in rows if row.kind not in {"name", "field"}}
    rows = [row for row in rows if row.kind != "name" or row.redist not in declared]
    by_entry = grouped(((row.redist, _role(row), row.parent), row) for row in rows)
    entries = tuple(_entry(text, own, index) for own in by_entry.values())
    return ApiReport(asked=text, entries=entries, exit_code=EXIT_OK)


def similar_api_names(text: str, index: Index) -> tuple[str, ...]:
    """Return names of headers with similar letters, the most similar first."""
    parent, dot, field = text.rpartition(".")
    if dot:
        fields = {row.name for row in index.ask(_BY_PARENT, parent)}
        return tuple(f"{parent}.{name}" for name in misspelled_names(field, fields))
    names = {row.name for row in index.ask(_NAMES, text[:_SAME_LETTERS])}
    return misspelled_names(text, names)


def _rows(text: str, index: Index) -> list[_Row]:
    """Return the forms of a name, of the function behind a macro, or of a field."""
    parent, dot, field = text.partition(".")
    rows = index.ask(_BY_NAME, text)
    if "/" in text:
        # One header, which source code includes with the same name since it moved.
        moved = header_name(text) if text.startswith(CCCL_FOLDER) else f"{CCCL_FOLDER}{text}"
        rows += index.ask(_BY_NAME, moved)
    rows += (row for row in index.ask(_BY_SYMBOL, text) if row.name != text)
    if not rows and dot:
        rows = [row for row in index.ask(_BY_PARENT, parent) if row.name == field]
    return rows


def _role(row: _Row) -> str:
    """Return the kind of a name. Types and values can change theirs."""
    return row.kind if row.kind in {"function", "field", "header"} else "other"


def _entry(text: str, rows: Sequence[_Row], index: Index) -> ApiEntry:
    rows = sorted(rows, key=lambda row: _labels(row.labels)[-1])
    last = rows[-1]
    known = sorted({label for row in rows for label in _labels(row.known)})
    present = {label for row in rows for label in _labels(row.labels)}
    removed = next((label for label in known if label > max(present)), None)
    added = min(present)
    deprecated = _deprecated_since(rows, known)
    forms = grouped(((row.signature, row.symbol, row.deprecated is not None), row) for row in rows)
    is_function = last.kind == "function"
    libraries = index.exporting(SymbolPattern(last.symbol)) if is_function else ()
    return ApiEntry(
        name=text if last.kind == "function" else _title_of(last),
        kind=last.kind,
        parent=last.parent or None,
        redist=last.redist,
        package=last.package,
        header=last.header,
        libraries=tuple(libraries),
        added_in=str(added) if added != known[0] else None,
        deprecated_since=None if deprecated is None else str(deprecated),
        deprecation=last.deprecated or None,
        removed_in=None if removed is None else str(removed),
        forms=tuple(
            ApiForm(
                signature=signature,
                symbol=symbol or None,
                is_deprecated=is_deprecated,
                releases=_ranges(known, {label for row in own for label in _labels(row.labels)}),
            )
            for (signature, symbol, is_deprecated), own in forms.items()
        ),
        members=tuple(_members(last, index)) if last.kind in _CONTAINERS else (),
    )


def _title_of(row: _Row) -> str:
    if row.kind == "header":
        return header_name(row.name)
    return f"{row.parent}.{row.name}" if row.kind == "field" else row.name


def _deprecated_since(rows: Iterable[_Row], known: Sequence[Version]) -> Version | None:
    """Return the first release that deprecates a name and all later ones with it do, too."""
    states: dict[Version, bool] = {}
    for row in rows:
        for label in _labels(row.labels):
            states[label] = row.deprecated is not None and states.get(label, True)
    since: Version | None = None
    for label in known:
        if label in states:
            since = (since or label) if states[label] else None
    return since


def _members(row: _Row, index: Index) -> Iterator[ApiMember]:
    """Yield the fields or enumerators of a type, in the order of their names."""
    members = [one for one in index.ask(_BY_PARENT, row.name) if one.redist == row.redist]
    owner = {label for one in index.ask(_BY_NAME, row.name) for label in _labels(one.labels)}
    known = sorted(owner)
    for name, own in grouped((one.name, one) for one in members).items():
        present = {label for one in own for label in _labels(one.labels)}
        newest = max(own, key=lambda one: _labels(one.labels)[-1])
        yield ApiMember(name=name, signature=newest.signature, releases=_ranges(known, present))


def _labels(text: str) -> list[Version]:
    """Return releases in ascending order."""
    return sorted(map(parse_label, text.split(",")))


def _ranges(known: Sequence[Version], present: AbstractSet[Version]) -> str:
    return label_ranges((str(label), label in present) for label in known)


def api_text(report: ApiReport) -> Iterator[str]:
    """Yield what each name is, then its declarations by release."""
    for number, entry in enumerate(report.entries):
        if number:
            yield ""
        yield _title(entry)
        for form in entry.forms:
            note = " (deprecated)" if form.is_deprecated else ""
            if entry.kind == "header" and form.signature != entry.name:
                note = f" (in the folder {CCCL_FOLDER}, which nvcc searches)"
            yield f"  {form.releases.replace(' ', ', ')}{note}"
            if entry.kind != "header":
                yield f"      {form.signature}"
        yield from _member_lines(entry)


def _title(entry: ApiEntry) -> str:
    place = entry.package if entry.kind == "header" else f"{entry.header} ({entry.package})"
    parts = [f"{entry.name}: {entry.kind} of {place}"]
    if entry.parent and entry.kind != "field":
        parts.append(f"in {entry.parent}")
    libraries = [name for name in entry.libraries if ".so" in name]
    if libraries:
        newest = sorted(libraries, key=natural_order, reverse=True)
        parts.append(f"exported by {listed(newest, _LIBRARIES_SHOWN)}")
    states = (
        ("new in", entry.added_in),
        ("deprecated since", entry.deprecated_since),
        ("removed in", entry.removed_in),
    )
    parts += (f"{words} {release}" for words, release in states if release is not None)
    return ", ".join(parts)


def _member_lines(entry: ApiEntry) -> Iterator[str]:
    """Yield the number of members, and those that only some releases have."""
    if not entry.members:
        return
    noun = "enumerator" if entry.kind == "enum" else "field"
    by_releases = grouped((member.releases, member.name) for member in entry.members)
    yield f"  {plural(len(entry.members), noun)}:"
    for releases, names in by_releases.items():
        yield f"      {releases.replace(' ', ', ')}: {listed(names, _MEMBERS_SHOWN)}"
