"""The table of one package's API as sets of releases, and as the document that is stored.

Each provider and release is a column with a bit of its own. The bits of a form's columns are its
mask. Forms of a header with the same mask are a group of the document.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from cudaredist.formats.api_tables import ApiGroup, ApiHeader, ApiProvider, ApiTable, UnreadHeader
from cudaredist.formats.names import Channel
from cudaredist.primitives import Version, parse_label
from cudaredist.tables.api.header_forms import Declared, HeaderForms
from cudaredist.tables.symbols.label_ranges import label_ranges
from cudaredist.tables.symbols.symbol_table import labels_in

_NESTED = frozenset({"fields", "enumerators"})
_word = re.compile(r"[A-Za-z_]\w*|\.\.\.|\S")
_is_word = re.compile(r"[A-Za-z_]\w*").fullmatch
_QUALIFIERS = frozenset({"const", "volatile", "restrict"})
_BUILT_IN = frozenset(
    {"_Bool", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned"}
)


class ApiOrigin(NamedTuple):
    """The origin of a package's archives."""

    channel: Channel
    redist: str
    platform: str
    variant: str
    """Empty if there is none."""


class ApiColumn(NamedTuple):
    """One release of an origin."""

    origin: ApiOrigin
    label: str
    archive: str
    """The beginning of the archive's hash."""

    @property
    def order(self) -> tuple[Version, ApiOrigin]:
        """The order of releases. A form is shown as the last one declares it."""
        return parse_label(self.label), self.origin


class _Name(NamedTuple):
    """A name in a section of a header."""

    section: str
    parent: str
    name: str


@dataclass(slots=True)
class _Form:
    """A form of a name, as its last release declares it."""

    declared: Declared
    mask: int
    last: tuple[Version, ApiOrigin]


@dataclass(slots=True)
class _Header:
    mask: int = 0
    forms: dict[_Name, dict[tuple[str, str, bool], _Form]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The forms of each name by text without names of parameters, symbol and deprecation."""
    unread: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """The masks of errors."""

    def add(self, bit: int, order: tuple[Version, ApiOrigin], declared: Iterable[Declared]) -> None:
        """Add names that some columns have. `order` is that of the last column."""
        for one in declared:
            forms = self.forms[_Name(one.section, one.parent, one.name)]
            key = (without_parameter_names(one.text), one.symbol, one.note is None)
            form = forms.get(key)
            if form is None:
                forms[key] = _Form(one, bit, order)
            else:
                form.mask |= bit
                if order >= form.last:
                    form.declared, form.last = one, order


_Releases: TypeAlias = Callable[[int], tuple[str, ...]]


class ApiColumns:
    """The names in a package's headers, by column."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.columns: dict[ApiColumn, int] = {}
        """The bit of each column."""
        self._headers: dict[str, _Header] = defaultdict(_Header)
        self._next = 1

    @classmethod
    def of(cls, table: ApiTable) -> "ApiColumns":
        """Return the columns of a document. Raises `ValueError` for unknown releases."""
        columns = cls(table.package)
        origins: list[dict[str, ApiColumn]] = []
        for entry in table.providers:
            origin = ApiOrigin(entry.channel, entry.redist, entry.platform, entry.variant or "")
            by_label: dict[str, ApiColumn] = {}
            for label in sorted(entry.releases, key=parse_label):
                column = ApiColumn(origin, label, entry.releases[label])
                columns._add_column(column)
                by_label[label] = column
            origins.append(by_label)

        def selected(releases: tuple[str, ...]) -> list[ApiColumn]:
            texts = releases or ("*",) * len(origins)
            return [
                by_label[label]
                for text, by_label in zip(texts, origins, strict=True)
                for label in labels_in(text, list(by_label))
            ]

        def mask_of(releases: tuple[str, ...]) -> int:
            return sum(columns.columns[column] for column in selected(releases))

        for path, document in table.headers.items():
            header = columns._headers[path]
            header.mask = mask_of(document.releases)
            for unread in document.unread:
                header.unread[unread.reason] = mask_of(unread.releases)
            for group in document.groups:
                last = max(column.order for column in selected(group.releases))
                header.add(mask_of(group.releases), last, _declared_in(group))
        return columns

    def _add_column(self, column: ApiColumn) -> int:
        bit = self.columns[column] = self._next
        self._next <<= 1
        return bit

    def add(self, column: ApiColumn, headers: Mapping[str, HeaderForms]) -> None:
        """Add a release, with the names of its headers."""
        bit = self._add_column(column)
        for path, forms in headers.items():
            header = self._headers[path]
            header.mask |= bit
            if forms.error:
                header.unread[forms.error] |= bit
            header.add(bit, column.order, forms.declared)

    def drop(self, is_dropped: Callable[[ApiColumn], bool]) -> None:
        """Remove columns. Their bits stay in the masks, but are not used again."""
        for column in [column for column in self.columns if is_dropped(column)]:
            del self.columns[column]

    def document(self) -> ApiTable | None:
        """Return the document, None if there are no columns."""
        if not self.columns:
            return None
        existing = sum(self.columns.values())
        by_origin: dict[ApiOrigin, list[ApiColumn]] = defaultdict(list)
        for column in sorted(self.columns, key=lambda one: (one.origin, parse_label(one.label))):
            by_origin[column.origin].append(column)
        known: dict[int, tuple[str, ...]] = {existing: ()}

        def releases_of(mask: int) -> tuple[str, ...]:
            if mask not in known:
                known[mask] = tuple(self._ranges(mask, columns) for columns in by_origin.values())
            return known[mask]

        headers = {
            path: _header_document(header, existing, releases_of)
            for path, header in sorted(self._headers.items())
            if header.mask & existing
        }
        return ApiTable(
            schema_version=1,
            package=self.package,
            providers=tuple(
                ApiProvider(
                    channel=origin.channel,
                    redist=origin.redist,
                    platform=origin.platform,
                    variant=origin.variant or None,
                    releases={column.label: column.archive for column in columns},
                )
                for origin, columns in by_origin.items()
            ),
            headers=headers,
        )

    def _ranges(self, mask: int, columns: list[ApiColumn]) -> str:
        if all(mask & self.columns[column] for column in columns):
            return "*"
        return label_ranges((one.label, mask & self.columns[one] != 0) for one in columns)


def _header_document(header: _Header, existing: int, releases_of: _Releases) -> ApiHeader:
    groups: dict[int, list[Declared]] = defaultdict(list)
    for forms in header.forms.values():
        for form in forms.values():
            if form.mask & existing:
                groups[form.mask & existing].append(form.declared)
    unread = {reason: mask & existing for reason, mask in header.unread.items() if mask & existing}
    ordered = sorted((releases_of(mask), names) for mask, names in groups.items())
    return ApiHeader(
        releases=releases_of(header.mask & existing),
        groups=tuple(_group(releases, names) for releases, names in ordered),
        unread=tuple(
            UnreadHeader(releases=releases_of(mask), reason=reason)
            for reason, mask in sorted(unread.items())
        ),
    )


def _group(releases: tuple[str, ...], names: Iterable[Declared]) -> ApiGroup:
    sections: dict[str, Any] = defaultdict(dict)
    plain: list[str] = []
    # A header can declare a function and a macro with its name, which counts for callers.
    for one in sorted(names, key=lambda one: (one.name, one.symbol)):
        full_name = f"{one.parent}.{one.name}" if one.section == "fields" else one.name
        if one.section == "names":
            plain.append(one.name)
        elif one.section in _NESTED:
            sections[one.section].setdefault(one.parent, {})[one.name] = one.text
        else:
            sections[one.section][one.name] = one.text
        if one.symbol:
            sections["symbols"][one.name] = one.symbol
        if one.note is not None:
            sections["deprecated"][full_name] = one.note
    return ApiGroup(releases=releases, names=" ".join(sorted(plain)), **sections)


def _declared_in(group: ApiGroup) -> Iterator[Declared]:
    """Yield the names of a document's group."""
    notes, symbols = group.deprecated, group.symbols
    flat = ("functions", "types", "typedefs", "variables", "macros")
    for section in flat:
        for name, text in getattr(group, section).items():
            symbol = symbols.get(name, "") if section == "functions" else ""
            yield Declared(section, "", name, text, symbol, notes.get(name))
    for parent, fields in group.fields.items():
        for name, text in fields.items():
            yield Declared("fields", parent, name, text, "", notes.get(f"{parent}.{name}"))
    for parent, values in group.enumerators.items():
        for name, text in values.items():
            yield Declared("enumerators", parent, name, text, "", notes.get(name))
    for name in group.names.split():
        yield Declared("names", "", name, "", "", notes.get(name))


def without_parameter_names(text: str) -> str:
    """Return the type of a function without the names of its parameters. Other types stay.

    A parameter's name is the last word before its end, a bracket or a comma, if a type precedes it.
    """
    result, parenthesis, parameters = text.partition(" (")
    if not parenthesis or result.endswith("(*") or "(*)" in result:
        return text
    tokens = _word.findall(parameters)
    kept: list[str] = []
    has_type = False
    for token in tokens:
        if token in {",", "("}:
            has_type = False
        if _is_word(token) and token not in _QUALIFIERS:
            if has_type and token not in _BUILT_IN:
                continue
            has_type = True
        kept.append(token)
    return f"{result}({' '.join(kept)}"
