"""Suggestions for mistyped names and releases. All searches for similar names are here."""

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from itertools import accumulate, takewhile

_MOST = 3
"""Similar names, or nearest releases, at most."""
_LISTED = 150
"""Characters of the names that are listed at most."""
_BEGINNING, _SUBSTRING = 3, 4
"""Characters of a name that is searched for at the beginning of other names, and within them."""
_SIMILAR = 0.6
"""Least likeness of a suggestion. With 0.5, `nine` would suggest `orin`."""
_MISSPELLED = 0.8
"""Least likeness to a name that was probably meant, if the typed name can be right too. With 0.7,
`libfoo.so.1` would suggest `libnppif.so.13`."""
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

    `v13.0` and `cuda-12.8` are releases, too. Returns nothing for other names.
    """
    name = typed_release(name)
    if not all(_is_release(release) for release in (name, *known)):
        return []
    beginning = sorted((release for release in known if release.startswith(name)), key=_numbers)
    if beginning:
        return beginning[: -_MOST - 1 : -1]
    typed = _numbers(name)
    older = sorted((release for release in known if _numbers(release) < typed), key=_numbers)
    newer = sorted((release for release in known if _numbers(release) > typed), key=_numbers)

    def likeness(release: str) -> tuple[int, bool]:
        numbers = _numbers(release)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(numbers, typed, strict=False))
        return len([*same]), len(numbers) == len(typed)

    return sorted([*reversed(older[1 - _MOST :]), *newer[:1]], key=likeness, reverse=True)


def typed_release(text: str) -> str:
    """Return the release in a text such as `v13.0`, `12,9`, `cuda-toolkit-12-8` and `cu128`.

    Returns other texts unchanged, in lower case.
    """
    text = text.lower()
    # Wheels and indexes of PyTorch have names such as cu128.
    release = re.sub("^cu([1-9][0-9])([0-9])$", r"\1.\2", text)
    release = re.sub("^(v|cu|cuda[-_ @]?(toolkit[-_ @]?)?v?)(?=[0-9])", "", release)
    release = re.sub("[,-]", ".", release)
    return release if _is_release(release) else text


def bound_of_releases(name: str, known: Sequence[str]) -> tuple[str, str] | None:
    """Return the oldest known release for an older one, and the newest one for a newer one.

    The first value is `begins` or `ends`. Returns None for a release between known ones.
    """
    if not known or not all(_is_release(release) for release in (name, *known)):
        return None
    if any(release.startswith(name) for release in known):
        return None
    oldest, newest = min(known, key=_numbers), max(known, key=_numbers)
    if _numbers(name) < _numbers(oldest):
        return "begins", oldest
    return ("ends", newest) if _numbers(name) > _numbers(newest) else None


def _numbers(release: str) -> list[int]:
    return [int(digits) for digits in re.findall("[0-9]+", release)]


def similar_names(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return at most three known names that may be meant by an unknown one, the likeliest first.

    First come the names of which it is a misspelling, then those with the same word or with its
    text, then those with similar letters.
    """
    # Users name a package by its project, by its library or with its version, such as
    # nvidia-cublas-cu12, libnvrtc and cudnn9, and a file by its plural.
    name = re.sub("^nvidia-|-cu[0-9]+$", "", name.lower())
    words = {name, name.removeprefix("lib"), name.rstrip("0123456789"), name.removesuffix("s")}
    of_letters = {word for word in words if re.search("[a-z]", word)}
    by_word = [other for other in known if of_letters & {*re.split("[^a-z0-9]+", other.lower())}]
    by_text = [other for other in known if _has_text(other.lower(), name)]
    ordered = (
        *misspelled_names(name, known),
        *sorted(by_word, key=len),
        *sorted(by_text, key=len),
        *_alike(name, known, _SIMILAR),
    )
    return tuple(dict.fromkeys(ordered))[:_MOST]


def _has_text(name: str, text: str) -> bool:
    """Check if a name has a text that is not in many names by chance."""
    is_within = len(text) >= _SUBSTRING and text in name
    return is_within or (len(text) >= _BEGINNING and name.startswith(text))


def similar_options(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the options that may be meant by an unknown one.

    Short options have many letters in common: `--nope` does not mean `--no-pager`.
    """
    text = name.lstrip("-")
    related = [other for other in known if text in other or other.lstrip("-") in text]
    return tuple(dict.fromkeys((*misspelled_names(name, known), *related)))


def misspelled_names(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return at most three known names of which an unknown one is probably a misspelling.

    It is for names that can be right although they are unknown, such as libraries of others and
    packages of later releases. Most names that are only similar were not meant.
    """
    return _alike(name, known, _MISSPELLED)


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """Return the most similar name, however different it is. None: no names are known."""
    return next(iter(_alike(name, known, 0)), None)


def _alike(name: str, known: Collection[str], likeness: float) -> tuple[str, ...]:
    """Return at most three names with similar letters, the most similar first."""
    spellings = {other.lower(): other for other in known}
    close = get_close_matches(name.lower(), spellings, n=_MOST, cutoff=likeness)
    return tuple(spellings[spelling] for spelling in close)
