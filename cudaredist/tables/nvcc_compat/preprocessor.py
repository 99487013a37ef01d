"""A header's conditions, evaluated as a preprocessor would: which `#error` a compiler meets.

Only what decides that is interpreted: conditions, and `#define` and `#undef` of macros without
parameters. Includes, pragmas and warnings are passed over, and code between directives is not
looked at. What is not understood is an `InvalidFileError` with its line, never a guess.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from cudaredist.errors import InvalidFileError, Problem, shown
from cudaredist.tables.nvcc_compat.expressions import (
    TOKEN_LIMIT,
    ExpressionError,
    Tokens,
    evaluate,
    is_name,
    tokenize,
)

HEADER_PATH = "include/crt/host_config.h"
"""How the header's path ends; `include/host_config.h` of another package only includes it."""

# Ten times the size of the largest real header, and 20 times the tokens that one needs.
_SIZE_LIMIT = 128 << 10
_WORK_LIMIT = 5000
_NESTING_LIMIT = 200
_MACRO_DEPTH_LIMIT = 40
_PASSED_OVER = frozenset(
    {"", "include", "include_next", "import", "pragma", "warning", "ident", "sccs", "line"}
)
_directive = re.compile(r"\s*#\s*([A-Za-z_]\w*|)(.*)", re.ASCII | re.DOTALL).fullmatch
_definition = re.compile(r"\s*([A-Za-z_$][\w$]*)(\(?)(.*)", re.ASCII | re.DOTALL).fullmatch

_JOINED = "\0"
"""Marks a newline that does not end a line: within a comment, or behind a backslash."""
# Blanks behind the backslash do not count, as with gcc.
_continuation = re.compile(r"\\[ \t]*(?:\n|\Z)")
# A quote that is not closed reaches to the end of its line, as in every compiler.
_comment_or_text = re.compile(
    r"""(?P<line>/\0*/[^\n]*)|(?P<block>/\0*\*(?:.*?(?P<end>\*\0*/)|.*))"""
    r"""|"(?:\\\0*.|[^"\\\n])*"?|'(?:\\\0*.|[^'\\\n])*'?""",
    re.DOTALL,
)


class Directive(NamedTuple):
    """One directive, without comments and with its continuation lines."""

    line: int
    name: str
    text: str


class Complaint(NamedTuple):
    """An `#error` that was reached."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compiler meets in a header."""

    errors: tuple[Complaint, ...]
    asked: frozenset[str]
    """Macros that conditions looked at, defined or not."""


def reject(line: int | None, message: str) -> NoReturn:
    """Raise the error for an invalid header."""
    raise InvalidFileError(
        "host compiler header", [Problem("" if line is None else f"line {line}", message)]
    )


class Header:
    """A header, read once and evaluated for many compilers."""

    def __init__(self, data: bytes) -> None:
        """Read the directives; `InvalidFileError` if the file is too large or cut off."""
        if len(data) > _SIZE_LIMIT:
            reject(None, f"{len(data):,} bytes, more than {_SIZE_LIMIT:,}")
        text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
        self.directives = tuple(_directives(text))

    def run(self, macros: Mapping[str, int]) -> Outcome:
        """Evaluate the header for a compiler that defines these macros.

        Raises `InvalidFileError` if the conditions do not fit into each other.
        """
        table = _Macros(macros)
        errors: list[Complaint] = []
        groups: list[_Group] = []
        for directive in self.directives:
            line, name, _ = directive
            is_live = not groups or groups[-1].is_live
            match name:
                case "if" | "ifdef" | "ifndef":
                    if len(groups) == _NESTING_LIMIT:
                        reject(line, "nested deeper than any such header is")
                    holds = is_live and _holds(directive, table)
                    groups.append(_Group(directive, is_live, is_live=holds, is_done=holds))
                case "elif" | "else" | "endif" if not groups:
                    reject(line, f"#{name} without #if")
                case "elif" | "else" if groups[-1].has_else:
                    reject(line, f"#{name} behind #else")
                case "elif" | "else":
                    group = groups[-1]
                    is_open = group.is_outer_live and not group.is_done
                    group.has_else = name == "else"
                    group.is_live = is_open and (group.has_else or _holds(directive, table))
                    group.is_done |= group.is_live
                case "endif":
                    groups.pop()
                case _ if is_live:
                    _obey(directive, table, errors)
                case _:
                    pass
        if groups:
            line, name, _ = groups[-1].opening
            reject(line, f"#{name} without #endif: the file is cut off")
        return Outcome(errors=tuple(errors), asked=frozenset(table.asked))


@dataclass(slots=True)
class _Group:
    """An `#if` whose `#endif` was not met yet."""

    opening: Directive
    is_outer_live: bool
    is_live: bool
    is_done: bool
    has_else: bool = False


class _Macros:
    """The macros at one place of a header; text for an object-like one, None for a function."""

    def __init__(self, macros: Mapping[str, int]) -> None:
        self._texts: dict[str, str | None] = {name: str(value) for name, value in macros.items()}
        self.asked: set[str] = set()
        self._work = 0

    def define(self, name: str, text: str | None) -> None:
        self._texts[name] = text

    def undefine(self, name: str) -> None:
        self._texts.pop(name, None)

    def is_defined(self, name: str) -> bool:
        self.asked.add(name)
        return name in self._texts

    def expanded(self, tokens: Tokens, inside: frozenset[str] = frozenset()) -> Tokens:
        """Replace macros by their texts, except behind `defined`.

        As in C, a name stays if its macro has parameters and it is named without any, and within
        the text of its own macro.
        """
        if len(inside) > _MACRO_DEPTH_LIMIT:
            raise ExpressionError("macros nested deeper than in any such header")
        # Macros that expand to nothing can double the work without making the result longer.
        self._work += len(tokens)
        if self._work > _WORK_LIMIT:
            raise ExpressionError(f"more than {_WORK_LIMIT:,} tokens in one evaluation")
        result: list[str] = []
        is_operand = False
        for token in tokens:
            text = None
            if is_operand or token == "defined":  # noqa: S105 - a word of the language
                is_operand = token in {"defined", "("}
            elif is_name(token):
                self.asked.add(token)
                text = self._texts.get(token)
            if text is None or token in inside:
                result.append(token)
            else:
                result += self.expanded(tokenize(text), inside | {token})
            if len(result) > TOKEN_LIMIT:
                raise ExpressionError(f"more than {TOKEN_LIMIT} tokens once macros are replaced")
        return tuple(result)


def _holds(directive: Directive, macros: _Macros) -> bool:
    if directive.name in {"ifdef", "ifndef"}:
        name = directive.text.strip()
        if not is_name(name):
            reject(directive.line, f"#{directive.name} of {shown(name)}, which is no name")
        return macros.is_defined(name) == (directive.name == "ifdef")
    try:
        tokens = macros.expanded(tokenize(directive.text))
        return evaluate(tokens, macros.is_defined) != 0
    except ExpressionError as error:
        reject(directive.line, f"#{directive.name}: {error}")


def _obey(directive: Directive, macros: _Macros, errors: list[Complaint]) -> None:
    match directive.name:
        case "error":
            errors.append(Complaint(directive.line, " ".join(directive.text.split())))
        case "define" | "undef":
            match = _definition(directive.text)
            if match is None:
                reject(directive.line, f"#{directive.name} without a name")
            if directive.name == "undef":
                macros.undefine(match[1])
            else:
                macros.define(match[1], None if match[2] else match[3])
        case name if name not in _PASSED_OVER:
            reject(directive.line, f"unknown directive #{shown(name)}")
        case _:
            pass


def _directives(text: str) -> Iterator[Directive]:
    """Yield the directives of a text, each with the number of its first line."""
    joined = _continuation.sub(_JOINED, text.replace(_JOINED, "\ufffd"))
    number = 1
    for line in _comment_or_text.sub(_without_comment, joined).split("\n"):
        match = _directive(line.replace(_JOINED, ""))
        if match:
            if match[1] in {"elifdef", "elifndef"}:
                # Unlike other unknown directives, these decide which code is live.
                reject(number, f"unknown directive #{match[1]}")
            yield Directive(number, match[1], match[2])
        number += 1 + line.count(_JOINED)


def _without_comment(match: re.Match[str]) -> str:
    """Replace a comment by a blank, and its newlines by marks; other text stays."""
    found = match[0]
    if match["line"] is None and match["block"] is None:
        return found
    if match["line"] is None and match["end"] is None:
        before = match.string[: match.start()]
        line = 1 + before.count("\n") + before.count(_JOINED)
        reject(line, "a comment without its end: the file is cut off")
    return " " + _JOINED * (found.count("\n") + found.count(_JOINED))
