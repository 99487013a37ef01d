"""Names of GPUs: capabilities, targets, products and architectures."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from cudaredist.errors import NotInDataError, UnknownNameError, UsageError
from cudaredist.formats.tables import Gpus
from cudaredist.hints import command_line
from cudaredist.similar_names import similar_names
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import fact_of, is_supported
from cudaredist.words import shown

_COMMON_WORDS = frozenset({"nvidia", "nvgpu", "tesla"})
_BRANDS = frozenset({"nvidia", "tesla", "geforce", "quadro", "grid"})
"""Words at the beginning of names of `nvidia-smi`."""
_QUERY = "nvidia-smi --query-gpu=compute_cap --format=csv"
_is_like_target = re.compile(r"(sm|compute)_.*|[0-9]{1,3}[a-z]?|[0-9]+\.[0-9]*[a-z]?").fullmatch


def capabilities_called(text: str, gpus: Gpus) -> list[str]:
    """Return the capabilities of a name: `9.0a`, `sm_90a`, `rtx4090`, `Jetson Orin`, `Volta`.

    Products and architectures match by words of their names, and products with exactly these words
    are preferred. A name of `nvidia-smi` matches the product with the most words of it, such as
    V100 for `Tesla V100-SXM2-16GB`. Raises `UnknownNameError`, which suggests capabilities for a
    capability, and products for a product, and `UsageError` for an unknown name of `nvidia-smi`.
    A chip that was renamed has two capabilities: CUDA 12 calls Jetson Thor 10.1, and CUDA 13 calls
    it 11.0.
    """
    name = Capability.name_of(text.lower())
    if name in gpus.capabilities:
        return _names_of_chip(name, gpus)
    titles: dict[str, set[str]] = defaultdict(set)
    for entry in gpus.capabilities.values():
        for title in (*entry.products, entry.family):
            titles[title].add(entry.base)
    matches = _matching_titles(_words(text), titles)
    if not matches:
        raise _no_gpu(text, titles, gpus)
    names: set[str] = set()
    for title in matches:
        for base in titles[title]:
            names.update(_names_of_chip(base, gpus))
    return sorted(names, key=Capability.parse)


def _matching_titles(words: Sequence[str], titles: Iterable[str]) -> list[str]:
    """Return the best matching titles.

    These are the equal ones, else those with all of the words, else those within the words.
    """
    exact = []
    parts = []
    for title in titles:
        title_words = _words(title)
        if words in (title_words, ["nvidia", *title_words]):
            exact.append(title)
        if _is_part(_model(words), title_words):
            parts.append(title)
    return exact or parts or _contained(words, titles)


def _no_gpu(text: str, titles: Iterable[str], gpus: Gpus) -> UsageError:
    """Return the error for an unknown GPU name."""
    words = _words(text)
    if _is_like_target(text.lower()):
        name, major = Capability.name_of(text.lower()), f"{text}.0"
        if major in gpus.capabilities:
            return UnknownNameError("compute capability", text, gpus.capabilities, (major,))
        similar = similar_names(name, gpus.capabilities)
        # A later release can have any name of this form.
        with suppress(ValueError):
            subject = f"compute capability {Capability.parse(name)}"
            return NotInDataError(subject, text, gpus.capabilities, similar)
        return UnknownNameError("compute capability", text, gpus.capabilities, similar)
    if not _BRANDS.isdisjoint(words):
        # A similar name is another GPU.
        hint = f"name its compute capability, which `{_QUERY}` prints"
        return UsageError(f"GPU {shown(text)} is not in the data", hint=hint)
    spellings = {spelling: title for title in titles for spelling in _spellings(_words(title))}
    near = similar_names("".join(words), spellings)
    similar = tuple(dict.fromkeys(spellings[spelling] for spelling in near))
    # The list of all products is too long.
    families = {entry.family for entry in gpus.capabilities.values()}
    return NotInDataError(f"GPU {shown(text)}", text, families, similar)


def is_product(text: str) -> bool:
    """Check if a valid name of a GPU is that of a product, not a capability or target."""
    return not _is_like_target(text.lower())


def capability_of(text: str, gpus: Gpus, cuda_minor: str | None = None) -> str:
    """Return the capability of a name, such as 7.0 for `V100`.

    If a chip was renamed, that is the name in the CUDA release, or else the newer one. Raises
    `UsageError` if GPUs of several capabilities match, and `UnknownNameError` if none match.
    """
    name = Capability.name_of(text.lower())
    if name in gpus.capabilities:
        return name
    names = capabilities_called(text, gpus)
    if names != _names_of_chip(names[0], gpus):
        message = f"{shown(text)} matches GPUs of several compute capabilities: {', '.join(names)}"
        hint = f"run `{command_line('explain', 'gpu', shlex.quote(text))}` to list them"
        raise UsageError(message, hint=hint)
    entries = gpus.capabilities
    known = [name for name in names if cuda_minor and is_supported(entries[name], cuda_minor)]
    return (known or names)[-1]


def _names_of_chip(name: str, gpus: Gpus) -> list[str]:
    """Return a capability with its names in earlier and later releases of CUDA, if any."""
    for old, entry in gpus.capabilities.items():
        new = fact_of(entry.policy, "renamed_to") if entry.variant is None else None
        if new in gpus.capabilities and name in {old, new}:
            return [old, new]
    return [name]


def _model(words: Sequence[str]) -> list[str]:
    """Return the words without those that do not tell GPUs of NVIDIA apart."""
    return [word for word in words if word not in _COMMON_WORDS]


def _contained(words: Sequence[str], titles: Iterable[str]) -> list[str]:
    """Return the titles whose adjacent words are in a name, only those with the most words."""
    text = f" {' '.join(_model(words))} "
    counts: dict[str, int] = {}
    for title in titles:
        model = _model(_words(title))
        # The blanks prevent a match within a word.
        if model and f" {' '.join(model)} " in text:
            counts[title] = len(model)
    most = max(counts.values(), default=0)
    return [title for title, count in counts.items() if count == most]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.casefold())


def _spellings(words: Sequence[str]) -> Iterator[str]:
    """Yield the adjacent words of a title, written as one: `rtx4090` of `GeForce RTX 4090`."""
    for first in range(len(words)):
        yield from ("".join(words[first:last]) for last in range(first + 1, len(words) + 1))


def _is_part(words: Sequence[str], title: Sequence[str]) -> bool:
    is_subset = bool(words) and set(words) <= set(title)
    return is_subset or "".join(words) in set(_spellings(title))
