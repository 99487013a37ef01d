"""The releases of a symbol in words, and the keys of archives in tables of symbols."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

KEY_SIZE = 16
"""Digits of an archive's hash that a table contains."""


def label_ranges(labels: Iterable[tuple[str, bool]]) -> str:
    """Return the selected ones of some sorted labels as ranges, such as `12.0.1..12.4.1 12.9.1`."""
    ranges = []
    for is_selected, run in groupby(labels, itemgetter(1)):
        if is_selected:
            names = [label for label, _ in run]
            ranges.append(names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}")
    return " ".join(ranges)
