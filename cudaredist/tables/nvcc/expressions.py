"""Evaluation of the expression in an `#if`.

Integers have 64 bits and are signed or unsigned, as in C. Function-like operators, such as
`__has_include(...)`, are an error, because a guess could make the table wrong.
"""

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, NoReturn, TypeAlias

Tokens: TypeAlias = tuple[str, ...]

TOKEN_LIMIT = 400
"""Limit for the tokens in one expression. Real headers have about fifty at most."""

_DEPTH_LIMIT = 40
_WIDTH = 64
_NUMBER = r"\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.'])*"
_NAME = r"[A-Za-z_$][A-Za-z0-9_$]*"
_OPERATOR = r"\|\||&&|<<|>>|[<>=!]=|[-+*/%<>!~&|^?:()]"
_find_tokens = re.compile(rf"({_NUMBER}|{_NAME}|{_OPERATOR})|(\S)").finditer
_is_integer = re.compile(
    r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)((?:[uU]?(?:ll|LL|[lL])?)|(?:ll|LL|[lL])[uU])"
).fullmatch
is_name = re.compile(_NAME).fullmatch


class ExpressionError(Exception):
    """The text is not a supported expression."""


class Number(NamedTuple):
    """An integer of 64 bits."""

    value: int
    is_unsigned: bool = False


@lru_cache(maxsize=1024)
def tokenize(text: str) -> Tokens:
    """Split an expression into tokens.

    Raises `ExpressionError` for a character that cannot be in an expression.
    """
    tokens: list[str] = []
    for match in _find_tokens(text.rstrip()):
        if match[2] is not None:
            raise ExpressionError(f"unknown character {match[2]!a}")
        tokens.append(match[1])
        if len(tokens) > TOKEN_LIMIT:
            raise ExpressionError(f"more than {TOKEN_LIMIT} tokens in one expression")
    return tuple(tokens)


def evaluate(tokens: Tokens, is_defined: Callable[[str], bool]) -> int:
    """Return the value of an expression with replaced macros.

    Raises `ExpressionError` if it is invalid.
    """
    return _Evaluation(tokens, is_defined).whole().value


def _to_number(token: str) -> Number:
    """Parse an integer with its suffix.

    Raises `ExpressionError` if it is a fraction or has too many bits.
    """
    match = _is_integer(token)
    if match is None:
        raise ExpressionError(f"{token[:60]!a} is not an integer")
    digits, base = match[1], 10
    if digits.startswith(("0x", "0X")):
        base = 16
    elif digits.startswith(("0b", "0B")):
        base = 2
    elif digits.startswith("0"):
        base = 8
    # Conversion of longer digits would only be slow: 64 bits are at most 64 digits.
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
"""Binary operators, weakest first. Logical operators and shifts have their own evaluation."""

_LOGICAL = {"||": True, "&&": False}
"""Logical operators, with the left value that decides the result."""
OPERATIONS = {symbol: made for level in _LEVELS for symbol, made in level.items()}
STRENGTH = {symbol: level for level, symbols in enumerate(_LEVELS) for symbol in symbols}
"""The precedence of binary operators, from 0 for the weakest."""


class _Evaluation:
    """Parser and evaluator of one expression, from left to right.

    `matters` is false if a value has no effect: after `0 &&`, a division by zero is allowed.
    """

    def __init__(self, tokens: Tokens, is_defined: Callable[[str], bool]) -> None:
        self._rest = ["", *reversed(tokens)]
        """The remaining tokens. The next one is the last, and the end is an empty text."""
        self._is_defined = is_defined
        self._depth = 0

    def whole(self) -> Number:
        number = self._choice(matters=True)
        if self._rest[-1]:
            self._refuse("an operator")
        return number

    def _take(self, *symbols: str) -> str:
        """Remove and return the next token if it is one of these, else return an empty text."""
        return self._rest.pop() if self._rest[-1] in symbols else ""

    def _require(self, symbol: str) -> None:
        if not self._take(symbol):
            self._refuse(f"'{symbol}'")

    def _take_name(self, expected: str) -> str:
        if not is_name(self._rest[-1]):
            self._refuse(expected)
        return self._rest.pop()

    def _refuse(self, expected: str) -> NoReturn:
        token = self._rest[-1]
        raise ExpressionError(f"expected {expected}" + (f", found {token[:60]!a}" if token else ""))

    def _choice(self, *, matters: bool) -> Number:
        self._depth += 1
        if self._depth > _DEPTH_LIMIT:
            raise ExpressionError(f"more than {_DEPTH_LIMIT} nested levels")
        number = self._binary(0, matters=matters)
        if self._take("?"):
            holds = number.value != 0
            first = self._choice(matters=matters and holds)
            self._require(":")
            second = self._choice(matters=matters and not holds)
            is_unsigned = first.is_unsigned or second.is_unsigned
            number = _wrapped((first if holds else second).value, is_unsigned=is_unsigned)
        self._depth -= 1
        return number

    def _binary(self, weakest: int, *, matters: bool) -> Number:
        left = self._unary(matters=matters)
        while True:
            symbol = self._rest[-1]
            strength = STRENGTH.get(symbol)
            if strength is None or strength < weakest:
                return left
            self._rest.pop()
            is_decided = symbol in _LOGICAL and _LOGICAL[symbol] == (left.value != 0)
            right = self._binary(strength + 1, matters=matters and not is_decided)
            if symbol in _LOGICAL:
                deciding = left if is_decided else right
                left = Number(int(deciding.value != 0))
            elif symbol in {"/", "%"} and right.value == 0 and matters:
                raise ExpressionError("division by zero")
            else:
                left = _computed(symbol, left, right)

    def _unary(self, *, matters: bool) -> Number:
        symbols = []
        while symbol := self._take("!", "~", "-", "+"):
            symbols.append(symbol)
        number = self._primary(matters=matters)
        for symbol in reversed(symbols):
            if symbol == "!":
                number = Number(int(number.value == 0))
            elif symbol != "+":
                value = -number.value if symbol == "-" else ~number.value
                number = _wrapped(value, is_unsigned=number.is_unsigned)
        return number

    def _primary(self, *, matters: bool) -> Number:
        if self._take("("):
            number = self._choice(matters=matters)
            self._require(")")
            return number
        if self._take("defined"):
            has_parenthesis = self._take("(")
            name = self._take_name("a name after 'defined'")
            if has_parenthesis:
                self._require(")")
            return Number(int(self._is_defined(name)))
        if self._rest[-1][:1].isdigit() or self._rest[-1][:1] == ".":
            return _to_number(self._rest.pop())
        name = self._take_name("a value")
        if self._rest[-1] == "(":
            raise ExpressionError(f"{name[:60]} is used as a function, which is not supported")
        # `true` is 1, as in C++. Every other name is 0.
        return Number(int(name == "true"))


def _computed(symbol: str, left: Number, right: Number) -> Number:
    if symbol in {"<<", ">>"}:
        # In C, negative distances are undefined. Compilers shift in the other direction.
        distance = min(abs(right.value), _WIDTH)
        is_left = (symbol == "<<") == (right.value >= 0)
        value = left.value << distance if is_left else left.value >> distance
        return _wrapped(value, is_unsigned=left.is_unsigned)
    is_unsigned = left.is_unsigned or right.is_unsigned
    first = _wrapped(left.value, is_unsigned=is_unsigned).value
    second = _wrapped(right.value, is_unsigned=is_unsigned).value
    if symbol in {"/", "%"} and second == 0:
        # A value without an effect. If the value mattered, this would have been an error.
        second = 1
    result = OPERATIONS[symbol](first, second)
    if isinstance(result, bool):
        return Number(int(result))
    return _wrapped(result, is_unsigned=is_unsigned)
