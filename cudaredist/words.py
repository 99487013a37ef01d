"""Words for messages: numbers with nouns, lists, and foreign text in one line."""

import re
from collections.abc import Sequence

_LINES_KEPT = 100

_ADDRESS = r"((?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]+:/|(?<!/)//)/*"
# A colon is also before the port of a host, or after an address in a message.
_USER = r"(?:[^/\s@:]*:(?!\s|[0-9]*(?:[/\s]|$))[^@]*@|[^/\s@]+@)(?:\S*@)?"
_hide_user = re.compile(rf"{_ADDRESS}){_USER}").sub
# The limits keep the time for a long message linear.
_QUERY = r"\?[A-Za-z0-9_.~%-]{1,60}=[^\s'\"`)#]*"
_hide_query = re.compile(rf"{_ADDRESS}[^\s?#]{{0,300}}){_QUERY}").sub


def without_secrets(text: str) -> str:
    """Return a message without the user names, passwords and queries of its addresses.

    An address in a message can be malformed, such as a password with a slash or a blank. Then more
    than the password can be missing.
    """
    if "@" in text:
        text = _hide_user(r"\1", text)
    return _hide_query(r"\1", text) if "?" in text and "=" in text else text


def shown(text: str, limit: int = 60) -> str:
    """Quote untrusted text for a message: one ASCII line, at most `limit` characters.

    Credentials in addresses are omitted, because the end of a shortened one is missing.
    """
    text = without_secrets(text)
    return ascii(text) if len(text) <= limit else f"{text[:limit]!a}… ({len(text)} characters)"


def printable(text: str) -> str:
    """Escape unprintable characters in untrusted text, without adding quotes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def listed(items: Sequence[object], limit: int = 5) -> str:
    """Return the first items as one text, and the number of the others if there are any."""
    return ", ".join(shortened(items, limit))


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun, such as `1 file` and `2,000 files`."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def shortened(items: Sequence[object], limit: int = _LINES_KEPT) -> tuple[str, ...]:
    """Return the first items as text, and the number of the others if there are any."""
    texts, more = map(str, items[:limit]), len(items) - limit
    return tuple(texts) if more <= 0 else (*texts, f"and {more} more")
