"""Every regular expression of the program takes linear time, whatever text it gets."""

import time
from itertools import product

from support.expressions import Expression, expressions

_LENGTHS = (32, 1_000, 40_000)
"""Lengths of texts. The short ones end the test soon for an expression that is worst."""
_SECONDS = 1.0
"""Processor time for one text: more than a thousand times that of a linear expression."""


def slow_text(expression: Expression) -> str | None:
    """Return the beginning of a text that takes too long, None if there is none."""
    texts = dict.fromkeys(product(expression.texts(), ("", "\0")))
    for length in _LENGTHS:
        for (before, part), end in filter(lambda text: text[0][1], texts):
            text = before + part * (length // len(part)) + end
            began = time.process_time()
            expression.run(text)
            if time.process_time() - began > _SECONDS:
                return f"{before!r} + {part!r} * {length // len(part)} + {end!r}"
    return None


def test_regular_expressions_on_any_text_take_linear_time() -> None:
    every = {(each.pattern, each.method): each for each in expressions()}
    slow = [f"{each.place}: {text}" for each in every.values() if (text := slow_text(each))]
    assert len(every) > 100
    assert not slow, "\n".join(slow)
