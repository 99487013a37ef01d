"""Names of libraries: comparison, and owners outside package sets."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from operator import attrgetter
from typing import Protocol, TypeVar

DRIVER_OWNERS = frozenset({"driver", "jetson"})
"""Owners of the libraries of the driver, which only machines with a GPU have."""


class _Libraries(Protocol):
    """Libraries of one owner: an entry of the policy, or the same from the index."""

    @property
    def names(self) -> tuple[str, ...]:
        """The sonames. `*` matches any characters."""


_names_of = attrgetter("names")
_Entry_co = TypeVar("_Entry_co", bound=_Libraries, covariant=True)


class _Policy(Protocol[_Entry_co]):
    """The policy of libraries, or its entries from the index."""

    @property
    def external(self) -> Sequence[_Entry_co]:
        """The libraries outside package sets."""


def find_external(soname: str, policy: _Policy[_Entry_co]) -> _Entry_co | None:
    """Return policy's entry for an external library, or None."""
    position = _first_match(key_of(soname), tuple(map(_names_of, policy.external)))
    return None if position is None else policy.external[position]


@lru_cache(maxsize=4096)
def _first_match(name: str, owners: tuple[tuple[str, ...], ...]) -> int | None:
    """Return the position of the first owner with a pattern that matches the key of a name.

    Package sets have the same libraries.
    """
    matches = (position for position, names in enumerate(owners) if _is_one_of(name, names))
    return next(matches, None)


def _is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    """Check if one of the patterns matches the key of a name.

    Most patterns have another beginning, and a regular expression takes long to compile.
    """
    return any(
        name.startswith(beginning) and fnmatchcase(name, pattern)
        for beginning, pattern in _with_beginnings(patterns)
    )


@lru_cache(maxsize=4096)
def _with_beginnings(patterns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the keys of patterns with their beginnings up to the first wildcard."""
    keys = map(key_of, patterns)
    return tuple((re.split(r"[*?\[]", key, maxsplit=1)[0], key) for key in keys)


def key_of(soname: str) -> str:
    """Return a library name for comparison: DLL names ignore case."""
    return soname.lower() if soname.lower().endswith(".dll") else soname


@lru_cache(maxsize=4096)
def name_pattern(names: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """Return a function that matches the key of a name. `*` matches any characters."""
    return re.compile("|".join(translate(key_of(name)) for name in names) or "(?!)").match


def stem_of(name: str) -> str:
    """Return a library's name without `.so` and its version."""
    return name.partition(".so")[0]
