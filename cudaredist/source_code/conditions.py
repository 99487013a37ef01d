"""Conditions of the preprocessor, evaluated for each release.

A condition on an unknown macro, such as an option of the build, may be true or false. The
expressions of `tables/nvcc`, which have the same operators, have no unknown macros.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cudaredist.source_code.work_limit import WorkLimit
from cudaredist.tables.nvcc.expressions import OPERATIONS, STRENGTH

Value: TypeAlias = int | None
"""The value of an expression. None: it depends on an unknown macro."""

_token = re.compile(
    r"\s+|(?P<name>[^\W\d]\w*)|(?P<number>[0-9](?:[\w.]|'\w)*)"
    r"|(?P<text>\"[^\"]*\"?|'(?:[^'\\]|\\.)*'?)"
    r"|(?P<mark>&&|\|\||[=!<>]=|<<|>>|.)",
    re.DOTALL | re.ASCII,
).finditer
_number = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)(?:[uU]?[lLzZ]{0,2}[uU]?)").fullmatch
STEPS_OF_TOKEN = 4
"""The work to evaluate a token of a condition."""
_TOKENS_LIMIT = 2_000
_DEPTH_LIMIT = 40
_MACRO_DEPTH_LIMIT = 16
_SHIFT_LIMIT = 62
_VALUE_LIMIT = 1 << 63
_UNEXPANDED = frozenset({"defined", "__has_include", "__has_include_next"})
"""Operators whose operands are not replaced."""


class Macro(NamedTuple):
    """A macro of a condition."""

    body: Sequence[str] = ()
    """The tokens of its replacement."""
    parameters: Sequence[str] | None = None
    """None: it takes none."""


class Macros(NamedTuple):
    """The macros of one release."""

    known: Mapping[str, Macro | None]
    """None: it is not defined. Other macros are unknown."""
    has_header: Callable[[str], Value]
    """Returns whether a header exists."""
    work: WorkLimit
    """Counts the tokens that are read."""


class _InvalidError(Exception):
    """The condition cannot be evaluated."""


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a condition or of a macro's replacement, without comments."""
    text = re.sub(r"/\*.*?(?:\*/|\Z)|//[^\n]*", " ", text, flags=re.DOTALL)
    return [match.group() for match in _token(text) if match.lastgroup]


def evaluate(tokens: list[str], macros: Macros) -> Value:
    """Return the value of a condition, or None if it is unknown or invalid."""
    if len(tokens) > _TOKENS_LIMIT:
        return None
    try:
        expanded = _Expansion(macros).expand(tokens, frozenset())
        return _Parser(expanded, macros).whole()
    except _InvalidError:
        return None


class _Expansion:
    """Replaces known macros, except in `defined` and `__has_include`."""

    def __init__(self, macros: Macros) -> None:
        self._macros = macros
        self._replaced = 0

    def expand(self, words: list[str], hidden: frozenset[str]) -> list[str]:
        """Return tokens with replaced macros. `hidden` ones are being replaced."""
        self._macros.work.spend(STEPS_OF_TOKEN * len(words))
        if len(hidden) > _MACRO_DEPTH_LIMIT:
            raise _InvalidError
        expanded: list[str] = []
        position = 0
        while position < len(words):
            word = words[position]
            position += 1
            if word in _UNEXPANDED:
                is_call = words[position : position + 1] == ["("]
                end = _closing(words, position) + 1 if is_call else position + 1
                expanded += [word, *words[position:end]]
                position = end
                continue
            macro = None if word in hidden else self._macros.known.get(word)
            is_call = words[position : position + 1] == ["("]
            if macro is None or (macro.parameters is not None and not is_call):
                expanded.append(word)
                continue
            body = list(macro.body)
            if macro.parameters is not None:
                end = _closing(words, position)
                self._macros.work.spend(end - position)
                body = _with_arguments(macro, _arguments(words[position + 1 : end]))
                position = end + 1
            self._replaced += 1
            expanded += self.expand(body, hidden | {word})
            if max(len(expanded), self._replaced) > _TOKENS_LIMIT:
                raise _InvalidError
        return expanded


def _with_arguments(macro: Macro, arguments: list[list[str]]) -> list[str]:
    """Return the replacement of a macro with the arguments of a call."""
    parameters = macro.parameters or ()
    if len(arguments) != len(parameters):
        raise _InvalidError
    values = dict(zip(parameters, arguments, strict=True))
    return [part for name in macro.body for part in values.get(name, [name])]


def _closing(tokens: Sequence[str], start: int) -> int:
    """Return the position of the parenthesis that closes the one at `start`."""
    depth = 0
    for position in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[position], 0)
        if depth == 0:
            return position
    raise _InvalidError


def _arguments(tokens: Sequence[str]) -> list[list[str]]:
    """Return the arguments between parentheses."""
    arguments: list[list[str]] = [[]]
    depth = 0
    for word in tokens:
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append(word)
    return arguments


class _Parser:
    """Evaluates an expression while it reads it."""

    def __init__(self, tokens: Sequence[str], macros: Macros) -> None:
        self._tokens, self._macros = tokens, macros
        self._position = 0
        self._depth = 0

    def whole(self) -> Value:
        """Return the value of the whole expression."""
        value = self._ternary()
        if self._position != len(self._tokens):
            raise _InvalidError
        return value

    def _next(self) -> str:
        if self._position >= len(self._tokens):
            raise _InvalidError
        self._position += 1
        return self._tokens[self._position - 1]

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _ternary(self) -> Value:
        self._depth += 1
        if self._depth > _DEPTH_LIMIT:
            raise _InvalidError
        condition = self._binary(0)
        if self._peek() == "?":
            self._next()
            first = self._ternary()
            if self._next() != ":":
                raise _InvalidError
            second = self._ternary()
            if condition is None:
                condition = first if first == second else None
            else:
                condition = first if condition else second
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Value:
        left = self._unary()
        while STRENGTH.get(self._peek(), -1) >= level:
            operator = self._next()
            right = self._binary(STRENGTH[operator] + 1)
            left = _apply(operator, left, right)
        return left

    def _unary(self) -> Value:
        signs = []
        while self._peek() in {"!", "-", "+", "~"}:
            signs.append(self._next())
        value = self._primary()
        for sign in reversed(signs):
            if value is not None:
                value = {"!": int(not value), "-": -value, "+": value, "~": ~value}[sign]
        return value

    def _primary(self) -> Value:
        word = self._next()
        if word == "(":
            value = self._ternary()
            if self._next() != ")":
                raise _InvalidError
            return value
        if word == "defined":
            return self._defined()
        if word.startswith("__has_include"):
            return self._has_include()
        if word in {"true", "false"}:
            return int(word == "true")
        number = _number(word)
        if number:
            return _integer(number[1])
        return self._name(word)

    def _name(self, word: str) -> Value:
        if not word.isidentifier():
            raise _InvalidError
        if self._peek() == "(":
            # An unknown macro with arguments, such as __has_attribute(...).
            self._position = _closing(self._tokens, self._position) + 1
            return None
        return 0 if word in self._macros.known else None

    def _defined(self) -> Value:
        word = self._next()
        if word == "(":
            word = self._next()
            if self._next() != ")":
                raise _InvalidError
        if word not in self._macros.known:
            return None
        return int(self._macros.known[word] is not None)

    def _has_include(self) -> Value:
        if self._peek() != "(":
            raise _InvalidError
        end = _closing(self._tokens, self._position)
        name = "".join(self._tokens[self._position + 1 : end])
        self._position = end + 1
        return self._macros.has_header(name.strip('<>"'))


def _integer(digits: str) -> int:
    """Return the value of a number without its suffix. Raises `_InvalidError`."""
    is_octal = digits.isdecimal() and digits.startswith("0")
    try:
        return int(digits, 8 if is_octal else 0)
    except ValueError:
        raise _InvalidError from None


def _apply(operator: str, left: Value, right: Value) -> Value:
    """Return the value of two operands. Unknown ones may not matter."""
    if operator == "&&":
        if left == 0 or right == 0:
            return 0
        return None if left is None or right is None else 1
    if operator == "||":
        if left or right:
            return 1
        return None if left is None or right is None else 0
    if left is None or right is None:
        return None
    value = _arithmetic(operator, left, right)
    return value if value is not None and -_VALUE_LIMIT <= value < _VALUE_LIMIT else None


def _arithmetic(operator: str, left: int, right: int) -> Value:
    if operator in {"/", "%"} and right == 0:
        return None
    if operator in {"<<", ">>"} and not 0 <= right <= _SHIFT_LIMIT:
        return None
    return int(OPERATIONS[operator](left, right))
