"""The format of names and values in the texts of diff."""

import sys
from collections.abc import Callable
from typing import NamedTuple

from cudaredist.cli.text import escape_markdown
from cudaredist.words import printable


class DiffStyle(NamedTuple):
    """The format of names and other values."""

    name: Callable[[str], str]
    value: Callable[[str], str]
    has_symbols: bool = False
    """Whether symbols are listed by name, or counted."""
    is_commit: bool = False
    """Whether every name is listed, and sizes have one line for each platform."""
    is_long: bool = False
    """Whether every name is listed."""

    def limit(self, count: int) -> int:
        """Return the maximum number of names to list."""
        return sys.maxsize if self.is_commit or self.is_long else count


PLAIN = DiffStyle(str, str)
MARKDOWN = DiffStyle(lambda text: f"`{printable(text).replace('`', '')}`", escape_markdown)
"""Names are code. Untrusted text is escaped."""
