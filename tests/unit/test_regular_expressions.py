"""Every regular expression of the program takes linear time, whatever text it gets."""

import time
from typing import NamedTuple

from support.expressions import Expression, expressions

_SHORT = 4_000
_LENGTHS = (32, 1_000, _SHORT, 40_000)
"""Lengths of texts. The short ones end the test soon for an expression that is worst."""
_SECONDS = 1.0
"""Processor time for one text: more than a thousand times that of a linear expression."""
_SUSPICIOUS_SECONDS = 0.002
"""Processor time for a text of length `_SHORT`, after which longer ones are tried.

A quadratic expression takes 100 times as long for the longest text. So it takes at least 0.01
seconds for the short text if it exceeds `_SECONDS` for the longest one.
"""


class Text(NamedTuple):
    """A text with a part that is repeated up to a length."""

    before: str
    part: str
    end: str

    def of_length(self, length: int) -> str:
        return self.before + self.part * (length // len(self.part)) + self.end


def texts_of(expression: Expression) -> list[Text]:
    parts = [(before, part) for before, part in expression.texts() if part]
    return [*dict.fromkeys(Text(*both, end) for both in parts for end in ("", "\0"))]


def slow_text(expression: Expression) -> str | None:
    """Return a text that takes too long with its length, None if there is none."""
    texts = texts_of(expression)
    for length in _LENGTHS:
        suspicious = []
        for text in texts:
            whole = text.of_length(length)
            began = time.process_time()
            expression.run(whole)
            seconds = time.process_time() - began
            if seconds > _SECONDS:
                return f"{text} takes {seconds:.1f} s for {length} characters"
            if seconds > _SUSPICIOUS_SECONDS:
                suspicious.append(text)
        if length == _SHORT:
            texts = suspicious
    return None


def test_regular_expressions_on_any_text_take_linear_time() -> None:
    every = {(each.pattern, each.method): each for each in expressions()}
    slow = [f"{each.place}: {text}" for each in every.values() if (text := slow_text(each))]
    assert len(every) > 100
    assert not slow, "\n".join(slow)
