"""The expression of an `#if`: text to tokens, tokens to a number.

Integers have 64 bits and are signed or not, as in C. What C leaves to functions, such as
`__has_include(...)`, is no expression here but an error, because guessing would give a wrong table.
"""

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, NoReturn, TypeAlias

Tokens: TypeAlias = tuple[str, ...]

TOKEN_LIMIT = 400
"""The most tokens of one expression; the longest of a real header has about fifty."""

_DEPTH_LIMIT = 40
_WIDTH = 64
_NUMBER = r"\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.'])*"
_NAME = r"[A-Za-z_$][A-Za-z0-9_$]*"
_OPERATOR = r"\|\||&&|<<|>>|[<>=!]=|[-+*/%<>!~&|^?:()]"
_find_token = re.compile(rf"\s*(?:({_NUMBER}|{_NAME}|{_OPERATOR})|(\S))").match
_is_integer = re.compile(
    r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)((?:[uU]?(?:ll|LL|[lL])?)|(?:ll|LL|[lL])[uU])"
).fullmatch
is_name = re.compile(_NAME).fullmatch


class ExpressionError(Exception):
    """Text that is no expression, or one that is not understood."""


class Number(NamedTuple):
    """An integer of 64 bits."""

    value: int
    is_unsigned: bool = False


@lru_cache(maxsize=1024)
def tokenize(text: str) -> Tokens:
    """Split the text behind an `#if`; `ExpressionError` for a character that no expression has."""
    tokens: list[str] = []
    place, text = 0, text.rstrip()
    while place < len(text):
        match = _find_token(text, place)
        # Whatever the text, a blank and one character behind it match.
        assert match is not None  # noqa: S101
        if match[2] is not None:
            raise ExpressionError(f"unknown character {match[2]!a}")
        tokens.append(match[1])
        if len(tokens) > TOKEN_LIMIT:
            raise ExpressionError(f"more than {TOKEN_LIMIT} tokens in one expression")
        place = match.end()
    return tuple(tokens)


def evaluate(tokens: Tokens, is_defined: Callable[[str], bool]) -> int:
    """Return the value of an expression whose macros were replaced.

    Raises `ExpressionError` for what is not an expression.
    """
    return _Evaluation(tokens, is_defined).whole().value


def _to_number(token: str) -> Number:
    """Read an integer with its suffix; `ExpressionError` for a fraction or a too large one."""
    match = _is_integer(token)
    if match is None:
        raise ExpressionError(f"{token[:60]!a} is no integer")
    digits = match[1]
    base = {"x": 16, "b": 2}.get(digits[1:2].lower(), 8 if digits.startswith("0") else 10)
    # The longest integer has 64 binary digits; longer text would only be slow.
    value = int(digits, base) if len(digits) <= _WIDTH + 2 else 1 << _WIDTH
    if value >> _WIDTH:
        raise ExpressionError(f"{token[:60]} has more than {_WIDTH} bits")
    return Number(value, is_unsigned="u" in match[2].lower() or bool(value >> (_WIDTH - 1)))


def _wrapped(value: int, *, is_unsigned: bool) -> Number:
    value &= (1 << _WIDTH) - 1
    if not is_unsigned and value >> (_WIDTH - 1):
        value -= 1 << _WIDTH
    return Number(value, is_unsigned)


def _quotient(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


_Operation: TypeAlias = Callable[[int, int], int]
_LEVELS: tuple[dict[str, _Operation], ...] = (
    {"||": operator.or_},
    {"&&": operator.and_},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _quotient, "%": _remainder},
)
"""Binary operators, weakest first. Logical ones and shifts are evaluated apart."""

_LOGICAL = {"||": True, "&&": False}
"""Logical operators, each with the truth of a left side that decides."""
_OPERATIONS = {symbol: made for level in _LEVELS for symbol, made in level.items()}
_STRENGTH = {symbol: level for level, symbols in enumerate(_LEVELS) for symbol in symbols}


class _Evaluation:
    """Reads the tokens of one expression from left to right, and computes on the way.

    `matters` is whether a value matters: behind `0 &&` a division by 0 does not.
    """

    def __init__(self, tokens: Tokens, is_defined: Callable[[str], bool]) -> None:
        self._tokens = tokens
        self._is_defined = is_defined
        self._at = 0
        self._depth = 0

    def whole(self) -> Number:
        number = self._choice(matters=True)
        if self._peek():
            self._refuse("an operator")
        return number

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, token: str) -> bool:
        is_next = self._peek() == token
        self._at += is_next
        return is_next

    def _refuse(self, expected: str) -> NoReturn:
        found = self._peek()
        raise ExpressionError(
            f"expected {expected}, found {found[:60]!a}" if found else f"expected {expected}"
        )

    def _choice(self, *, matters: bool) -> Number:
        self._depth += 1
        if self._depth > _DEPTH_LIMIT:
            raise ExpressionError("nested deeper than any such expression is")
        number = self._binary(0, matters=matters)
        if self._take("?"):
            holds = number.value != 0
            first = self._choice(matters=matters and holds)
            if not self._take(":"):
                self._refuse("':'")
            second = self._choice(matters=matters and not holds)
            is_unsigned = first.is_unsigned or second.is_unsigned
            number = _wrapped((first if holds else second).value, is_unsigned=is_unsigned)
        self._depth -= 1
        return number

    def _binary(self, weakest: int, *, matters: bool) -> Number:
        left = self._unary(matters=matters)
        while (strength := _STRENGTH.get(symbol := self._peek(), -1)) >= weakest:
            self._at += 1
            is_decided = _LOGICAL.get(symbol) == (left.value != 0)
            right = self._binary(strength + 1, matters=matters and not is_decided)
            if symbol in _LOGICAL:
                left = Number(int((left if is_decided else right).value != 0))
            elif symbol in {"<<", ">>"}:
                left = _shifted(left, right, is_left=symbol == "<<")
            elif symbol in {"/", "%"} and right.value == 0 and matters:
                raise ExpressionError("division by zero")
            else:
                left = _computed(symbol, left, right)
        return left

    def _unary(self, *, matters: bool) -> Number:
        symbols = []
        while self._peek() in {"!", "~", "-", "+"}:
            symbols.append(self._peek())
            self._at += 1
        number = self._primary(matters=matters)
        for symbol in reversed(symbols):
            if symbol == "!":
                number = Number(int(number.value == 0))
            elif symbol != "+":
                value = -number.value if symbol == "-" else ~number.value
                number = _wrapped(value, is_unsigned=number.is_unsigned)
        return number

    def _primary(self, *, matters: bool) -> Number:
        token = self._peek()
        if self._take("("):
            number = self._choice(matters=matters)
            if not self._take(")"):
                self._refuse("')'")
            return number
        if token[:1].isdigit() or token[:1] == ".":
            self._at += 1
            return _to_number(token)
        if self._take("defined"):
            return self._defined()
        if not is_name(token):
            self._refuse("a value")
        self._at += 1
        if self._peek() == "(":
            raise ExpressionError(f"{token[:60]} is used as a function, which is not understood")
        # C++ knows `true` and `false` in an #if; every other name counts as 0.
        return Number({"true": 1}.get(token, 0))

    def _defined(self) -> Number:
        has_parenthesis = self._take("(")
        name = self._peek()
        if not is_name(name):
            self._refuse("a name behind 'defined'")
        self._at += 1
        if has_parenthesis and not self._take(")"):
            self._refuse("')'")
        return Number(int(self._is_defined(name)))


def _computed(symbol: str, left: Number, right: Number) -> Number:
    is_unsigned = left.is_unsigned or right.is_unsigned
    one, two = (_wrapped(side.value, is_unsigned=is_unsigned).value for side in (left, right))
    if symbol in {"/", "%"}:
        two = two or 1
    result = _OPERATIONS[symbol](one, two)
    if isinstance(result, bool):
        return Number(int(result))
    return _wrapped(result, is_unsigned=is_unsigned)


def _shifted(number: Number, by: Number, *, is_left: bool) -> Number:
    # A negative distance shifts the other way; C leaves it open, and this is what compilers do.
    distance = min(abs(by.value), _WIDTH)
    if is_left == (by.value >= 0):
        return _wrapped(number.value << distance, is_unsigned=number.is_unsigned)
    return _wrapped(number.value >> distance, is_unsigned=number.is_unsigned)
