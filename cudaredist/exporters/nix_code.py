"""Nix code from data, in the style of nixfmt, for `nixpkgs` and indexes of `export nix`."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

NixValue: TypeAlias = "str | bool | NixExpression | Mapping[str, NixValue] | None"

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_KEYWORDS = frozenset({"assert", "else", "if", "in", "inherit", "let", "or", "rec", "then", "with"})
_WIDTH = 94
"""Width of comments, which are two levels deep."""
LINE_WIDTH = 100
"""Width of nixfmt's lines without their indentation."""
_is_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_'-]*").fullmatch


class NixExpression(str):
    """Code that is not quoted."""

    __slots__ = ()


def nix_string(text: str) -> str:
    """Quote a Nix string. Raises `ValueError` for a null character."""
    if "\0" in text:
        raise ValueError("a Nix string cannot contain a null character")
    escaped = text.translate(_ESCAPES).replace("${", "\\${")
    return f'"{escaped}"'


def nix_name(text: str) -> str:
    """Return an attribute name, quoted if necessary."""
    return text if _is_identifier(text) and text not in _KEYWORDS else nix_string(text)


def nix_comment(text: str) -> Iterator[str]:
    """Yield the lines of a comment."""
    words = " ".join(text.split())
    for line in textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"


def nix_value(value: NixValue) -> Iterator[str]:
    """Yield the lines of a value."""
    match value:
        case None:
            yield "null"
        case bool():
            yield "true" if value else "false"
        case NixExpression():
            yield from value.split("\n")
        case str():
            yield nix_string(value)
        case _:
            yield "{"
            for name, item in value.items():
                yield from nix_indented(nix_binding(name, item))
            yield "}"


def nix_binding(name: str, value: NixValue) -> Iterator[str]:
    """Yield the lines of an attribute."""
    first, *rest = nix_value(value)
    lines = [f"{nix_name(name)} = {first}", *rest]
    # nixfmt writes an expression below the name if it needs several lines or a long one.
    is_long = len(lines[0]) >= LINE_WIDTH
    if isinstance(value, NixExpression) and (rest or is_long):
        lines = [f"{nix_name(name)} =", *nix_indented([first, *rest])]
    yield from lines[:-1]
    yield f"{lines[-1]};"


def nix_indented(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines one level deeper."""
    for line in lines:
        yield f"  {line}" if line else ""
