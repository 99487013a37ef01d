"""Replace functions and limits of the code, and require that the replacement takes effect.

A test that patches a function which the code does not call any more passes and shows nothing.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import pytest

_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_ARITHMETIC = ("add", "sub", "mul", "floordiv", "truediv", "mod")


@dataclass
class Calls:
    """The number of calls of a function."""

    number: int = 0


class Patch:
    """Replaces functions and numbers until the end of a test, which must use each of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._pending: dict[int, str] = {}

    def __call__(self, owner: object, *attribute_and_value: object) -> None:
        """Replace an attribute, with the arguments of `MonkeyPatch.setattr`."""
        *attribute, value = attribute_and_value
        number = len(self._pending)
        self._pending[number] = ".".join([str(owner), *map(str, attribute)])

        def use() -> None:
            self._pending[number] = ""

        self._monkeypatch.setattr(owner, *attribute, _watched(value, use))  # type: ignore[call-overload]

    def count(self, path: str) -> "Calls":
        """Return the number of calls of a function from now on, which must not stay 0.

        A test that something is not done again compares two numbers, so that it fails if the code
        does it elsewhere.
        """
        calls, original = Calls(), resolve_name(path)

        def counted(*arguments: object, **options: object) -> object:
            calls.number += 1
            return original(*arguments, **options)

        self(path, counted)
        return calls

    def assert_used(self) -> None:
        """Assert that the code called or compared each replacement."""
        unused = [name for name in self._pending.values() if name]
        assert not unused, f"the code does not use the replaced {unused}"


@contextlib.contextmanager
def patching() -> Iterator[Patch]:
    """Yield a patch that ends with the block."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        patch = Patch(monkeypatch)
        yield patch
        patch.assert_used()


def _watched(value: object, use: Callable[[], None]) -> object:
    """Return a function or number that reports its use."""
    if callable(value):
        called: Callable[..., object] = value

        def call(*arguments: object, **options: object) -> object:
            use()
            return called(*arguments, **options)

        return call
    assert isinstance(value, int | float), "only functions and numbers report their use"
    return _watched_number(value, use)


def _watched_number(value: float, use: Callable[[], None]) -> float:
    """Return a number that reports operations in Python code."""
    kind = type(value)

    def reporting(name: str) -> Callable[..., Any]:
        operation = getattr(kind, name)

        def operate(*operands: object) -> Any:
            use()
            return operation(*operands)

        return operate

    names = {*_COMPARISONS, "__hash__", "__bool__", "__neg__"}
    names |= {f"__{side}{name}__" for side in ("", "r") for name in _ARITHMETIC}
    members = {name: reporting(name) for name in names if hasattr(kind, name)}
    return type(f"Watched{kind.__name__}", (kind,), members)(value)  # type: ignore[no-any-return]
