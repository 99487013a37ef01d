"""Notes on archives that are wheels."""

from collections.abc import Iterable

LINK_ADDED = "link added, as wheels have none"
"""The beginning of the note on a link that every wheel lacks."""


def unusual_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Return the notes on what is unusual: all but those on the links that every wheel lacks."""
    return tuple(note for note in notes if not note.startswith(LINK_ADDED))
