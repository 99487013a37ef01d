"""Patterns of symbols' names, and the readable form of C++ names."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase, translate

from cudaredist.errors import UsageError
from cudaredist.primitives import is_mangled

_NAME_LIMIT = 4096
"""The longest name that is looked up or demangled."""
_IS_GLOB = re.compile(r"[!-Z^-~]{1,999}").fullmatch
"""Matches short patterns without brackets, which Python and SQLite match in the same way."""


is_symbol = re.compile(rf"\w{{1,{_NAME_LIMIT}}}", re.ASCII).fullmatch
"""Matches the names of symbols, of which NVIDIA's longest have 2,000 characters."""


class SymbolPattern:
    """A symbol's name, or a pattern with `*`, optionally for demangled names."""

    def __init__(self, text: str, *, demangle: bool = False) -> None:
        """Raise `UsageError` if names are to be demangled and the library for it is missing."""
        self.text = text
        self._demangle = demangler() if demangle else None
        self._match = re.compile(translate(text)).match
        self.glob = "*" if demangle else glob_of(text)
        """A pattern of SQLite for every name that fits."""

    def fits(self, name: str) -> bool:
        """Check if a symbol is meant."""
        if self._match(name):
            return True
        if self._demangle is None or not is_mangled(name):
            return False
        readable = self.readable(name) or ""
        # A function's name is enough, without the types of its parameters.
        return any(fnmatchcase(part, self.text) for part in (readable, readable.partition("(")[0]))

    def readable(self, name: str) -> str | None:
        """Return the readable form of a C++ name, None for others."""
        if self._demangle is None or not is_mangled(name) or len(name) > _NAME_LIMIT:
            return None
        return self._demangle(name) or None


def glob_of(text: str) -> str:
    """Return a GLOB pattern of SQLite for the names that match, and possibly others."""
    return text if is_symbol(text) or _IS_GLOB(text) else "*"


def demangler() -> Callable[[str], str]:
    """Return the function that makes C++ names readable. Raises `UsageError`."""
    try:
        from pydemumble import demangle  # noqa: PLC0415 - optional
    except ImportError:
        message = "--demangle requires the package pydemumble"
        raise UsageError(message, hint="run `pip install cudaredist[demangle]`") from None
    function: Callable[[str], str] = demangle
    return function
