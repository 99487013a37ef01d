"""Tests of ranges in words."""

import pytest

from cudaredist.formats.tables import span


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (6, 15, "6 to 15"),
        (None, 15, "up to 15"),
        (7, None, "7 and later"),
        (None, None, "of any version"),
    ],
)
def test_span_states_range_in_words(first: int | None, last: int | None, text: str) -> None:
    assert span(first, last) == text
