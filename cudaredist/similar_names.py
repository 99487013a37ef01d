"""Suggestions for mistyped names and releases."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import accumulate, takewhile

_MOST = 3
"""Similar names, or nearest releases, at most."""
_LISTED = 150
"""Characters of the names that are listed at most."""
_SUBSTRING = 4
"""Characters of a name that is searched for within other names."""
_is_release = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*").fullmatch


def listed_names(names: Sequence[str]) -> str:
    """Shorten a list of names for one line.

    Of many names, it has the first ones, and of many releases the newest.
    """
    lengths = accumulate(len(name) + len(", ") for name in names)
    limit = sum(length <= _LISTED for length in lengths)
    rest = len(names) - limit
    if not rest:
        return ", ".join(names)
    if all(name[:1].isdigit() for name in names):
        return f"{', '.join(sorted(names, key=_numbers)[rest:])} and {rest} older"
    return f"{', '.join(names[:limit])} and {rest} more"


def nearest_releases(name: str, known: Sequence[str]) -> list[str]:
    """Return the newest releases that begin with a text, else the next older and newer ones.

    Returns nothing for other names.
    """
    if not all(_is_release(one) for one in (name, *known)):
        return []
    beginning = sorted((one for one in known if one.startswith(name)), key=_numbers)
    if beginning:
        return beginning[: -_MOST - 1 : -1]
    typed = _numbers(name)
    older = sorted((one for one in known if _numbers(one) < typed), key=_numbers)
    newer = sorted((one for one in known if _numbers(one) > typed), key=_numbers)

    def likeness(release: str) -> tuple[int, bool]:
        numbers = _numbers(release)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(numbers, typed, strict=False))
        return len([*same]), len(numbers) == len(typed)

    return sorted([*reversed(older[1 - _MOST :]), *newer[:1]], key=likeness, reverse=True)


def _numbers(release: str) -> list[int]:
    return [int(digits) for digits in re.findall("[0-9]+", release)]


def similar_names(name: str, names: Sequence[str]) -> Sequence[str]:
    """Return at most three names with the same word, else with this text, else similar ones."""
    # Users name a package by its project, by its library or with its version, such as
    # nvidia-cublas-cu12, libnvrtc and cudnn9.
    name = re.sub("^nvidia-|-cu[0-9]+$", "", name)
    words = {name, name.removeprefix("lib"), name.rstrip("0123456789")}
    of_letters = {word for word in words if re.search("[a-z]", word)}
    by_word = [known for known in names if of_letters & {*re.split(r"[^a-z0-9]+", known.lower())}]
    # A short text is in many names by chance.
    by_text = [known for known in names if len(name) >= _SUBSTRING and name in known.lower()]
    by_text.sort(key=len)
    close = get_close_matches(name, names, n=_MOST, cutoff=0.5)
    return tuple(dict.fromkeys((*by_word, *by_text, *close)))[:_MOST]
