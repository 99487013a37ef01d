"""Preprocessor that finds the `#error` and the declared functions of a header for a compiler.

It interprets only conditions, and `#define` and `#undef` of macros without parameters. It skips
includes, pragmas, warnings, and all code except `extern` declarations of functions in one line.
Anything it does not understand is an `InvalidFileError` with its line, never a guess.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from cudaredist.errors import InvalidFileError
from cudaredist.tables.nvcc.expressions import (
    TOKEN_LIMIT,
    ExpressionError,
    Tokens,
    evaluate,
    is_name,
    tokenize,
)
from cudaredist.words import shown

HEADER_PATH = "include/crt/host_config.h"
"""End of the header's path. `include/host_config.h` of another package only includes it."""

# Ten times the size of the largest real `host_config.h`, and 20 times the tokens it requires.
_SIZE_LIMIT = 128 << 10
_WORK_LIMIT = 5000
_NESTING_LIMIT = 200
_MACRO_DEPTH_LIMIT = 40
_SKIPPED = frozenset(
    {"", "include", "include_next", "import", "pragma", "warning", "ident", "sccs", "line"}
)
_directive = re.compile(r"\s*#\s*([A-Za-z_]\w*|)(.*)", re.ASCII | re.DOTALL).fullmatch
_definition = re.compile(r"\s*([A-Za-z_$][\w$]*)(\(?)(.*)", re.ASCII | re.DOTALL).fullmatch

_declaration = re.compile(
    r"\s*extern\b[^()\"]*\b(\w+)[ \t]*\([^()]*\)([^;{}]*);\s*", re.ASCII | re.DOTALL
).fullmatch

_JOINED = "\0"
"""Marks a newline inside a comment or after a backslash, which does not end a line."""
# As in gcc, blanks after the backslash are ignored.
_continuation = re.compile(r"\\[ \t]*(?:\n|\Z)")
# As in every compiler, an unclosed quote ends at the end of its line.
_comment_or_text = re.compile(
    r"""(?P<line>/\0*/[^\n]*)|(?P<block>/\0*\*(?:.*?(?P<end>\*\0*/)|.*))"""
    r"""|"(?:\\\0*.|[^"\\\n])*"?|'(?:\\\0*.|[^'\\\n])*'?""",
    re.DOTALL,
)


class Directive(NamedTuple):
    """One directive, without comments, with its continuation lines."""

    line: int
    name: str
    """The word after `#`, or `extern declaration` for a line of code with one."""
    text: str


class Declaration(NamedTuple):
    """One `extern` declaration of a function."""

    line: int
    name: str
    suffix: str
    """The text after the parameters, such as an exception specification."""


class Outcome(NamedTuple):
    """The result of a header for one compiler."""

    errors: tuple[Directive, ...]
    """The `#error` directives that were reached."""
    tested: frozenset[str]
    """Macros that conditions test, defined or not."""
    declarations: tuple[Declaration, ...]
    """The declared functions, with the macros of their suffixes replaced."""


def reject(line: int | None, message: str) -> NoReturn:
    """Raise the error for an invalid header."""
    path = "" if line is None else f"line {line}"
    raise InvalidFileError.of("host compiler header", message, path)


class Header:
    """A header, parsed once and evaluated for many compilers."""

    def __init__(self, data: bytes, *, size_limit: int = _SIZE_LIMIT) -> None:
        """Parse the directives and declarations.

        Raises `InvalidFileError` if the file is too large or truncated.
        """
        if len(data) > size_limit:
            reject(None, f"{len(data):,} bytes, more than {size_limit:,}")
        text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
        self.directives = tuple(_directives(text))

    def run(self, macros: Mapping[str, int]) -> Outcome:
        """Evaluate the header for a compiler with these macros.

        Raises `InvalidFileError` if the conditions are not properly nested.
        """
        table = _Macros(macros)
        errors: list[Directive] = []
        declarations: list[Declaration] = []
        groups: list[_Conditional] = []
        for directive in self.directives:
            line, name, _ = directive
            is_live = not groups or groups[-1].is_live
            match name:
                case "if" | "ifdef" | "ifndef":
                    if len(groups) == _NESTING_LIMIT:
                        reject(line, f"more than {_NESTING_LIMIT} nested conditions")
                    is_true = is_live and _is_true(directive, table)
                    groups.append(_Conditional(directive, is_true, is_true or not is_live))
                case "elif" | "else" | "endif" if not groups:
                    reject(line, f"#{name} without #if")
                case "elif" | "else" if groups[-1].has_else:
                    reject(line, f"#{name} after #else")
                case "elif" | "else":
                    group = groups[-1]
                    group.has_else = name == "else"
                    group.is_live = not group.is_done and (
                        group.has_else or _is_true(directive, table)
                    )
                    group.is_done |= group.is_live
                case "endif":
                    groups.pop()
                case _:
                    if is_live:
                        _apply(directive, table, errors, declarations)
        if groups:
            line, name, _ = groups[-1].opening
            reject(line, f"#{name} without #endif: the file is truncated")
        return Outcome(
            errors=tuple(errors),
            tested=frozenset(table.tested),
            declarations=tuple(declarations),
        )


@dataclass(slots=True)
class _Conditional:
    """An `#if` before its `#endif`."""

    opening: Directive
    is_live: bool
    is_done: bool
    """Whether no later branch is live: an earlier one was, or the code around it is not."""
    has_else: bool = False


class _Macros:
    """The macros at one line of a header, without text if function-like."""

    def __init__(self, macros: Mapping[str, int]) -> None:
        self.texts: dict[str, str | None] = {name: str(value) for name, value in macros.items()}
        self.tested: set[str] = set()
        self._work = 0

    def is_defined(self, name: str) -> bool:
        self.tested.add(name)
        return name in self.texts

    def expanded(self, tokens: Tokens, inside: frozenset[str] = frozenset()) -> Tokens:
        """Replace macros by their texts, except after `defined`.

        As in C, a name stays unchanged within the text of its own macro, and if its macro has
        parameters.
        """
        if len(inside) > _MACRO_DEPTH_LIMIT:
            raise ExpressionError(f"more than {_MACRO_DEPTH_LIMIT} nested macros")
        # Macros with empty texts can double the work without a longer result.
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
                self.tested.add(token)
                text = self.texts.get(token)
            if text is None or token in inside:
                result.append(token)
            else:
                result += self.expanded(tokenize(text), inside | {token})
            if len(result) > TOKEN_LIMIT:
                raise ExpressionError(f"more than {TOKEN_LIMIT} tokens after macro replacement")
        return tuple(result)


def _is_true(directive: Directive, macros: _Macros) -> bool:
    if directive.name in {"ifdef", "ifndef"}:
        name = directive.text.strip()
        if not is_name(name):
            reject(directive.line, f"#{directive.name} of {shown(name)}, which is not a name")
        return macros.is_defined(name) == (directive.name == "ifdef")
    try:
        tokens = macros.expanded(tokenize(directive.text))
        return evaluate(tokens, macros.is_defined) != 0
    except ExpressionError as error:
        reject(directive.line, f"#{directive.name}: {error}")


def _apply(
    directive: Directive,
    macros: _Macros,
    errors: list[Directive],
    declarations: list[Declaration],
) -> None:
    line, name, text = directive
    if name == "extern declaration":
        declarations.append(_declaration_of(directive, macros))
    elif name == "error":
        errors.append(directive._replace(text=" ".join(text.split())))
    elif name in {"define", "undef"}:
        match = _definition(text)
        if match is None:
            reject(line, f"#{name} without a name")
        if name == "undef":
            macros.texts.pop(match[1], None)
        else:
            macros.texts[match[1]] = None if match[2] else match[3]
    elif name not in _SKIPPED:
        reject(line, f"unknown directive #{shown(name)}")


def _declaration_of(directive: Directive, macros: _Macros) -> Declaration:
    """Return the function that a line declares, with the macros of its suffix replaced."""
    line, _, text = directive
    name, _, suffix = text.partition(" ")
    try:
        return Declaration(line, name, " ".join(macros.expanded(tokenize(suffix))))
    except ExpressionError as error:
        reject(line, f"declaration of {shown(name)}: {error}")


def _directives(text: str) -> Iterator[Directive]:
    """Yield the directives and declarations of a text, with their first line numbers."""
    joined = _continuation.sub(_JOINED, text.replace(_JOINED, "\ufffd"))
    number = 1
    for line in _comment_or_text.sub(_without_comment, joined).split("\n"):
        code = line.replace(_JOINED, "")
        if declared := _declaration(code):
            yield Directive(number, "extern declaration", f"{declared[1]} {declared[2]}")
        match = _directive(code)
        if match:
            if match[1] in {"elifdef", "elifndef"}:
                # Unlike other unknown directives, these can enable or disable code.
                reject(number, f"unknown directive #{match[1]}")
            yield Directive(number, match[1], match[2])
        number += 1 + line.count(_JOINED)


def _without_comment(match: re.Match[str]) -> str:
    """Replace a comment by a blank, and its newlines by marks."""
    text = match[0]
    if match["line"] is None and match["block"] is None:
        return text
    if match["line"] is None and match["end"] is None:
        before = match.string[: match.start()]
        line = 1 + before.count("\n") + before.count(_JOINED)
        reject(line, "a comment without its end: the file is truncated")
    return " " + _JOINED * (text.count("\n") + text.count(_JOINED))
