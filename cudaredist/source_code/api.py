"""The API of a product, as sets of releases: its names, their forms, and their ends."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import attrgetter
from typing import NamedTuple

from cudaredist.grouping import grouped
from cudaredist.primitives import Version, parse_label
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.symbols.label_ranges import label_ranges
from cudaredist.words import listed

_words = re.compile(r"\w+").findall
_NOT_TYPES = frozenset({"const", "volatile", "struct", "union", "enum", "__restrict__", "restrict"})
CCCL_FOLDER = "cccl/"
"""The folder of the headers of cuda_cccl since CUDA 13. nvcc searches it, too."""
_ARGUMENTS_SHOWN = 6
_TYPEDEFS_LIMIT = 8
"""Typedefs of typedefs that are followed."""


class Form(NamedTuple):
    """One form of a name, and the releases with it."""

    kind: str
    name: str
    parent: str
    """The struct, union or enum. Empty for others."""
    package: str
    header: str
    signature: str
    symbol: str
    """The function that the name stands for, such as `cuMemAlloc_v2` for `cuMemAlloc`."""
    deprecated: str | None
    """The note of the deprecation. None: not deprecated."""
    releases: int

    @property
    def title(self) -> str:
        """The name, with the struct of a field."""
        return f"{self.parent}.{self.name}" if self.kind == "field" else self.name

    @property
    def is_alias(self) -> bool:
        """Whether the header declares the function by another name, which is a macro."""
        return self.kind == "function" and f"{self.name}(" not in self.signature

    @property
    def has_parameters(self) -> bool:
        """Whether it is a function with known parameters. Names in C++ have none."""
        return self.kind == "function" and "(" in self.signature

    @property
    def parameters(self) -> tuple["Parameter", ...]:
        """The parameters of a function."""
        return parameters_of(self.signature, self.name)


class Parameter(NamedTuple):
    """A parameter of a function."""

    text: str
    """Its declaration, such as `int dstDevice`."""
    type: str
    """Its type without names and qualifiers, such as `int` and `void*`."""
    name: str

    @property
    def type_name(self) -> str:
        """The name of its type, without pointers."""
        return self.type.rstrip("*")


@dataclass(frozen=True)
class History:
    """The forms of one name."""

    forms: Sequence[Form]
    known: int
    """The releases whose headers are known."""

    @cached_property
    def present(self) -> int:
        """The releases with the name."""
        return union(form.releases for form in self.forms)

    @cached_property
    def missing(self) -> int:
        """The releases that do not have the name."""
        return self.known & ~self.present

    @cached_property
    def deprecated(self) -> int:
        """The releases that deprecate all forms of the name."""
        noted = union(form.releases for form in self.forms if form.deprecated is not None)
        if not noted:
            return 0
        return noted & ~union(form.releases for form in self.forms if form.deprecated is None)


@cache
def argument_changes(old: Form, new: Form) -> str:
    """Return how to change the arguments of a call, such as `pass a cudaMemLocation`."""
    before, after = list(old.parameters), list(new.parameters)
    steps = []
    for position, parameter in enumerate(after, start=1):
        same = next((one for one in before if one.name == parameter.name and one.name), None)
        if same is None:
            same = next((one for one in before if one.type == parameter.type), None)
        if same is not None:
            before.remove(same)
            if same.type != parameter.type:
                steps.append(f"argument {position} is {parameter.text} instead of {same.text}")
            continue
        steps.append(f"argument {position} is {parameter.text}")
    if len(after) < len(old.parameters):
        steps += [f"without {parameter.text}" for parameter in before]
    return listed(steps, _ARGUMENTS_SHOWN)


def header_name(path: str) -> str:
    """Return the name by which source code for nvcc includes a header in any release."""
    return path.removeprefix(CCCL_FOLDER)


def union(sets: Iterable[int]) -> int:
    """Return the releases of any of several sets."""
    releases = 0
    for one in sets:
        releases |= one
    return releases


class _Sets(NamedTuple):
    """The sets of releases in a history."""

    known: int
    of_forms: tuple[int, ...]


class Api:
    """The names of a product's headers in all releases."""

    def __init__(
        self, releases: Sequence[Version], forms: Iterable[Form], known: Mapping[str, int]
    ) -> None:
        """`known` has the releases of each package with known headers."""
        self.releases = tuple(releases)
        self._bits = {label: 1 << bit for bit, label in enumerate(self.releases)}
        self._ranges: dict[int, str] = {}
        self._known = known
        self._unread: dict[tuple[str, str], int] = defaultdict(int)
        names: dict[str, list[Form]] = defaultdict(list)
        fields: dict[tuple[str, str], list[Form]] = defaultdict(list)
        headers: dict[str, list[Form]] = defaultdict(list)
        for form in forms:
            if form.kind == "unread":
                self._unread[form.package, form.header] |= form.releases
            elif form.kind == "header":
                headers[header_name(form.name)].append(form)
            elif form.kind == "field":
                fields[form.parent, form.name].append(form)
            else:
                names[form.name].append(form)
                # The header declares cuMemAlloc_v2, too, if cuMemAlloc is a macro for it.
                if form.symbol not in {"", form.name}:
                    names[form.symbol].append(form._replace(name=form.symbol))
        self.names = {name: self._history(parts) for name, parts in names.items()}
        self.headers = {name: self._history(parts) for name, parts in headers.items()}
        self.fields = {key: self._field(key[0], parts) for key, parts in fields.items()}

    def _history(self, forms: Sequence[Form]) -> History:
        known = 0
        for form in forms:
            unread = self._unread.get((form.package, form.header), 0)
            known |= self._known.get(form.package, 0) & ~unread
        return History(forms, known)

    def _field(self, struct: str, forms: Sequence[Form]) -> History:
        """Return the history of a field, in the releases with its struct."""
        owner = self.names.get(struct)
        history = self._history(forms)
        return history if owner is None else replace(history, known=history.known & owner.present)

    @cached_property
    def histories(self) -> Sequence[History]:
        """The histories of all names, headers and fields."""
        return (*self.names.values(), *self.headers.values(), *self.fields.values())

    def changing(self, before: int, after: int) -> list[History]:
        """Return the known histories whose forms differ between two sets of releases."""
        positions = [
            position
            for sets, group in self._positions.items()
            if sets.known & before and sets.known & after
            if any(bool(one & before) != bool(one & after) for one in sets.of_forms)
            for position in group
        ]
        return [self.histories[position] for position in sorted(positions)]

    @cached_property
    def _positions(self) -> Mapping[_Sets, Sequence[int]]:
        """The positions of the histories with the same sets of releases.

        There are hundreds of names for each combination of sets, and most of them never change.
        """
        return grouped(
            (_Sets(history.known, tuple(form.releases for form in history.forms)), position)
            for position, history in enumerate(self.histories)
        )

    @cached_property
    def fields_by_name(self) -> Mapping[str, Sequence[tuple[str, History]]]:
        """The structs with a field of each name."""
        structs: dict[str, list[tuple[str, History]]] = defaultdict(list)
        for (struct, name), history in self.fields.items():
            structs[name].append((struct, history))
        return structs

    def packages_without(self, release: Version) -> set[str]:
        """Return the packages with unknown headers in a release."""
        bit = self.bit(release)
        return {package for package, releases in self._known.items() if not releases & bit}

    def is_struct(self, name: str) -> bool:
        """Check if a name is a struct or union, or another name of one."""
        for _ in range(_TYPEDEFS_LIMIT):
            history = self.names.get(name)
            form = history.forms[-1] if history else None
            if form is None or form.kind != "typedef":
                return form is not None and form.kind in {"struct", "union"}
            if "*" in form.signature or "(" in form.signature:
                return False
            name = next((word for word in _words(form.signature)[1:] if word not in _NOT_TYPES), "")
        return False

    def bit(self, release: Version) -> int:
        """Return the set of one release."""
        return self._bits[release]

    def labels(self, releases: int) -> list[Version]:
        """Return the releases of a set, in ascending order."""
        return [label for bit, label in enumerate(self.releases) if releases >> bit & 1]

    def ranges(self, releases: int) -> str:
        """Return the releases of a set as text, such as `12.0.1..12.4.1 12.9.1`."""
        if releases not in self._ranges:
            labels = ((str(label), bool(releases & bit)) for label, bit in self._bits.items())
            self._ranges[releases] = label_ranges(labels)
        return self._ranges[releases]


@cache
def parameters_of(signature: str, name: str) -> tuple[Parameter, ...]:
    """Return the parameters in the declaration of a function."""
    _, _, rest = signature.partition(f"{name}(")
    if not rest:  # the signature has the name of the macro
        _, _, rest = signature.partition("(")
    parameters = [*map(_parameter, _split(rest))]
    return () if [one.type for one in parameters] in ([""], ["void"]) else tuple(parameters)


def _split(text: str) -> Iterator[str]:
    """Yield the parameters before the parenthesis that closes."""
    inner = text.partition(")")[0]
    if "(" not in inner:  # no pointers to functions, as in most declarations
        yield from map(str.strip, inner.split(","))
        return
    depth, part = 0, ""
    for letter in text:
        if letter == ")" and depth == 0:
            break
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()


def _parameter(text: str) -> Parameter:
    words = [word for word in _words(text) if word not in _NOT_TYPES]
    has_name = len(words) > 1 and not _is_type_word(words[-1])
    name = words[-1] if has_name else ""
    pointers = "*" * (text.count("*") + text.count("["))
    if "(" in text:  # a pointer to a function
        return Parameter(text, "".join(text.split()), name)
    return Parameter(text, " ".join(words[:-1] if has_name else words) + pointers, name)


def _is_type_word(word: str) -> bool:
    return word in {"int", "char", "long", "short", "unsigned", "signed", "float", "double"}


class _FormRow(NamedTuple):
    kind: str
    name: str
    parent: str
    package: str
    header: str
    signature: str
    symbol: str
    deprecated: str | None
    api_set: int


class _SetRow(NamedTuple):
    api_set: int
    label: str


class _KnownRow(NamedTuple):
    package: str
    label: str


_CURRENT = """NOT EXISTS (
        SELECT 1 FROM api_providers AS upper
        WHERE upper.package = own.package AND upper.layer < own.layer
    )"""
_FORMS = Question(
    _FormRow,
    f"""
    SELECT kind, name, parent, package, header, signature, symbol, deprecated, api_set
    FROM api_forms
    WHERE +document IN (SELECT document FROM api_providers AS own WHERE redist = ? AND {_CURRENT})
        AND {{condition}}""",
)
_UNREAD = "kind = 'unread'"
_OF_SETS = "api_set IN (SELECT value FROM json_each(?))"
_CALLED = "kind != 'field' AND name IN (SELECT value FROM json_each(?))"
_FIELDS = """kind = 'field' AND name IN (SELECT value FROM json_each(?))
        AND parent IN (SELECT value FROM json_each(?))"""
_WITH_SYMBOL = "symbol != '' AND symbol != name"
_NOT_CHANGING = f"""
        AND NOT {_OF_SETS} AND EXISTS (
            SELECT 1 FROM api_releases JOIN api_providers AS own ON own.id = provider
            WHERE api_set = api_forms.api_set AND redist = ?
        )"""
"""The condition that a form is of a product, and not of some sets."""
_TYPED = frozenset({"field", "function", "typedef", "variable"})
"""The kinds of names whose declarations have types."""
_SETS = Question(
    _SetRow,
    """
    SELECT DISTINCT api_set, label
    FROM api_providers AS own CROSS JOIN api_releases ON provider = own.id AND {condition}
    WHERE redist = ?""",
)
_KNOWN = Question(
    _KnownRow,
    f"""
    SELECT DISTINCT package, label
    FROM api_archives JOIN api_providers AS own ON own.id = provider AND redist = ?
    WHERE {_CURRENT}""",
)


def api_releases(index: Index, redist: str) -> tuple[Version, ...]:
    """Return the releases of a product with known headers, in ascending order."""
    return tuple(sorted(map(parse_label, {row.label for row in index.ask(_KNOWN, redist)})))


def read_api(index: Index, redist: str, between: tuple[Version, Version] | None = None) -> Api:
    """Return the API of a product from the tables of its packages.

    `between` two releases, the API has only the names whose forms differ, and the typedefs in their
    declarations: most names never change.
    """
    known_rows = index.ask(_KNOWN, redist)
    releases = sorted(map(parse_label, {row.label for row in known_rows}))
    bits = {str(label): 1 << bit for bit, label in enumerate(releases)}
    known: dict[str, int] = defaultdict(int)
    for row in known_rows:
        known[row.package] |= bits[row.label]
    in_labels = "TRUE" if between is None else "label IN (SELECT value FROM json_each(?))"
    labels = () if between is None else ([*map(str, between)],)
    sets: dict[int, int] = defaultdict(int)
    for one in index.ask(_SETS.where(in_labels), *labels, redist):
        sets[one.api_set] |= bits.get(one.label, 0)
    if between is None:
        rows = [row for row in index.ask(_FORMS.where("TRUE"), redist) if row.api_set in sets]
    else:
        first, second = (bits.get(str(label), 0) for label in between)
        old = {one for one, own in sets.items() if not own & second}
        new = {one for one, own in sets.items() if not own & first}
        rows = _changing_forms(index, redist, old, new)
    rows.sort(key=attrgetter("name", "parent", "header", "signature"))
    forms = (Form(*row[:-1], sets.get(row.api_set, 0)) for row in rows)
    return Api(releases, forms, known)


def _changing_forms(
    index: Index, redist: str, old: AbstractSet[int], new: AbstractSet[int]
) -> list[_FormRow]:
    """Return all forms of the names that have some in only `old` or only `new` sets.

    They include the forms of the typedefs in declarations that are compared.
    """
    changing = index.ask(_FORMS.where(_OF_SETS), redist, old | new)
    gone = {(row.kind, row.name, row.deprecated) for row in changing if row.api_set in old}
    came = {(row.kind, row.name, row.deprecated) for row in changing if row.api_set in new}
    same = gone & came
    names, fields, structs = set[str](), set[str](), set[str]()
    for row in changing:
        if row.kind == "header":
            name = header_name(row.name)
            names.update((name, CCCL_FOLDER + name))
        elif row.kind == "field":
            fields.add(row.name)
            structs.add(row.parent)
        # A name of C++ has no declaration, so that only its header can differ.
        elif row.kind != "name" or (row.kind, row.name, row.deprecated) not in same:
            names.update((row.name, row.symbol))
    names |= structs

    def others(condition: str, *values: AbstractSet[str]) -> list[_FormRow]:
        """Return forms of other sets."""
        question = _FORMS.where(condition + _NOT_CHANGING)
        return index.ask(question, redist, *values, old | new, redist)

    forms = others(_FIELDS, fields, structs)
    forms += others(_CALLED, names)
    forms += (row for row in others(_WITH_SYMBOL) if row.symbol in names and row.name not in names)
    compared = {row.name for row in forms} | {name for _, name, _ in same}
    forms += (row for row in changing if row.kind in {"field", "unread"} or row.name in names)
    typed = [row for row in forms if row.name in compared and row.kind in _TYPED]
    # Types are compared through typedefs, those of typedefs, and so on.
    while words := {word for row in typed for word in _words(row.signature)} - names:
        names |= words
        typed = others(_CALLED, words)
        forms += typed
    return [*forms, *others(_UNREAD)]
