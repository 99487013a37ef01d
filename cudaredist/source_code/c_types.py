"""Types of C, compared through the typedefs of a release."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

_tokens = re.compile(r"[A-Za-z_]\w*|\*").findall
_suffix = re.compile(r"[\[:]").search
_CONST = "const"
_IGNORED = frozenset({"typedef", "struct", "union", "enum", "volatile", "restrict", "__restrict__"})
_BUILT_IN = frozenset(
    {"_Bool", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned"}
)
_DEPTH_LIMIT = 16
"""Typedefs of typedefs that are followed."""

Typedefs: TypeAlias = Callable[[str], str | None]
"""Returns the declaration of a typedef, such as `typedef int CUdevice`. None: it is not one."""


class CType(NamedTuple):
    """A type: its base, the pointers to it, and the sizes of an array or the bits of a field."""

    base: str
    is_const: bool
    pointers: tuple[bool, ...] = ()
    """Whether each pointer is const, the innermost first."""
    suffix: str = ""

    def with_outer_const(self, *, is_const: bool) -> "CType":
        """Return the type with or without an outer `const`."""
        if self.pointers:
            return self._replace(pointers=(*self.pointers[:-1], is_const))
        return self._replace(is_const=is_const)

    def as_parameter(self) -> "CType":
        """Return the type as a parameter: an array is a pointer, an outer `const` has no effect."""
        if self.suffix:
            return self._replace(pointers=(*self.pointers, False), suffix="")
        return self.with_outer_const(is_const=False)


def type_of(text: str, typedefs: Typedefs) -> CType:
    """Return the type of a declaration such as `const void *data`, without its name.

    The type of a pointer to a function is its text.
    """
    if "(" in text:
        return CType(" ".join(text.split()), is_const=False)
    found = _suffix(text)
    suffix = "" if found is None else "".join(text[found.start() :].split())
    declaration = text if found is None else text[: found.start()]
    return _resolved(_without_name(_tokens(declaration)), typedefs, 0)._replace(suffix=suffix)


def _without_name(tokens: Sequence[str]) -> list[str]:
    """Return the tokens of a declaration without the name: the last word, if a type precedes it."""
    words = [place for place, token in enumerate(tokens) if _is_name(token)]
    is_named = len(words) > 1 and tokens[words[-1]] not in _BUILT_IN
    return [token for place, token in enumerate(tokens) if not (is_named and place == words[-1])]


def _is_name(token: str) -> bool:
    return token not in {"*", _CONST} and token not in _IGNORED


def _resolved(tokens: Sequence[str], typedefs: Typedefs, depth: int) -> CType:
    """Return a type without typedefs."""
    base: list[str] = []
    is_const = False
    pointers: list[bool] = []
    for word in tokens:
        if word == "*":
            pointers.append(False)
        elif word == _CONST and pointers:
            pointers[-1] = True
        elif word == _CONST:
            is_const = True
        elif word not in _IGNORED:
            base.append(word)
    name = " ".join(base)
    target = typedefs(name) if len(base) == 1 and depth < _DEPTH_LIMIT else None
    if target is None or "(" in target or "[" in target:
        return CType(name, is_const, tuple(pointers))
    inner = _resolved(_without_name(_tokens(target)), typedefs, depth + 1)
    if is_const:
        inner = inner.with_outer_const(is_const=True)
    return inner._replace(pointers=(*inner.pointers, *pointers))
