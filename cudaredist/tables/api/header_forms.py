"""The names of one header, as values that a process can send to another."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

Section: TypeAlias = str
"""The part of a table's group with a name: `functions`, `types`, `fields`, `enumerators`,
`typedefs`, `variables`, `macros` or `names`."""


class Declared(NamedTuple):
    """A name that a header declares."""

    section: Section
    parent: str
    """The struct or enum of a field or enumerator, else empty."""
    name: str
    text: str
    """Its type or value in the form of tables."""
    symbol: str = ""
    """The function that a macro with this name stands for, else empty."""
    note: str | None = None
    """The note of its deprecation, None if it is not deprecated."""


class HeaderForms(NamedTuple):
    """The names of a header, or the reason why it does not parse."""

    declared: tuple[Declared, ...] = ()
    error: str = ""
    """The first error. Empty: the header parses."""
    is_transient: bool = False
    """Whether the parser stopped, so that another run can give another result."""


def forms_of_json(document: Mapping[str, Any]) -> dict[str, HeaderForms]:
    """Return the names of headers from a JSON document."""
    return {
        path: HeaderForms(tuple(Declared(*one) for one in declared), error)
        for path, (declared, error, _) in document.items()
    }
