"""Words for messages: numbers with nouns, lists, and foreign text in one line."""

from collections.abc import Sequence

_LINES_KEPT = 100


def shown(text: str, limit: int = 60) -> str:
    """Quote untrusted text for a message: one ASCII line, at most `limit` characters."""
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
