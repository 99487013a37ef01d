"""GPUs that a name matches: a capability, target, product or architecture.

It imports no models, because lookups find the names in the index.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cudaredist.tables.gpus.capability import Capability

_COMMON_WORDS = frozenset({"nvidia", "nvgpu", "tesla"})


class NamedGpu(NamedTuple):
    """The names of a capability's GPUs."""

    titles: tuple[str, ...]
    """Products, then the architecture."""
    renamed_to: str | None
    """The capability's name in later releases of CUDA."""


def matching_capabilities(text: str, gpus: Mapping[str, NamedGpu]) -> list[str]:
    """Return the capabilities that a name matches, as `capabilities_called` does."""
    name = Capability.name_of(text.lower())
    if name in gpus:
        return names_of_chip(name, gpus)
    titles: dict[str, set[str]] = defaultdict(set)
    for capability, gpu in gpus.items():
        for title in gpu.titles:
            titles[title].add(str(Capability.parse(capability).base))
    names: set[str] = set()
    for title in _matching_titles(words_of(text), titles):
        for base in titles[title]:
            names.update(names_of_chip(base, gpus))
    return sorted(names, key=Capability.parse)


def names_of_chip(name: str, gpus: Mapping[str, NamedGpu]) -> list[str]:
    """Return a capability with its names in earlier and later releases of CUDA, if any."""
    for old, gpu in gpus.items():
        new = gpu.renamed_to if Capability.parse(old).variant is None else None
        if new is not None and new in gpus and name in {old, new}:
            return [old, new]
    return [name]


def _matching_titles(words: Sequence[str], titles: Iterable[str]) -> list[str]:
    """Return the best matching titles.

    These are the equal ones, else those with all of the words, else those within the words.
    """
    exact = []
    parts = []
    for title in titles:
        title_words = words_of(title)
        if words in (title_words, ["nvidia", *title_words]):
            exact.append(title)
        if _is_part(_model(words), title_words):
            parts.append(title)
    return exact or parts or _contained(words, titles)


def _model(words: Sequence[str]) -> list[str]:
    """Return the words without those that do not tell GPUs of NVIDIA apart."""
    return [word for word in words if word not in _COMMON_WORDS]


def _contained(words: Sequence[str], titles: Iterable[str]) -> list[str]:
    """Return the titles whose adjacent words are in a name, only those with the most words."""
    text = f" {' '.join(_model(words))} "
    counts: dict[str, int] = {}
    for title in titles:
        model = _model(words_of(title))
        # The blanks prevent a match within a word.
        if model and f" {' '.join(model)} " in text:
            counts[title] = len(model)
    most = max(counts.values(), default=0)
    return [title for title, count in counts.items() if count == most]


def words_of(text: str) -> list[str]:
    """Return the words of a name, in lower case."""
    return re.findall(r"[a-z0-9]+", text.casefold())


def spellings_of(words: Sequence[str]) -> Iterator[str]:
    """Yield the adjacent words of a title, written as one: `rtx4090` of `GeForce RTX 4090`."""
    for first in range(len(words)):
        yield from ("".join(words[first:last]) for last in range(first + 1, len(words) + 1))


def _is_part(words: Sequence[str], title: Sequence[str]) -> bool:
    is_subset = bool(words) and set(words) <= set(title)
    return is_subset or "".join(words) in set(spellings_of(title))
