"""Names of GPUs: capabilities, targets, products and architectures."""

import re
import shlex
from contextlib import suppress

from cudaredist.errors import NotInDataError, UnknownNameError, UsageError
from cudaredist.formats.tables import Gpus
from cudaredist.hints import command_line
from cudaredist.similar_names import similar_names
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import fact_of, is_supported
from cudaredist.tables.gpus.matching_gpus import (
    NamedGpu,
    matching_capabilities,
    names_of_chip,
    spellings_of,
    words_of,
)
from cudaredist.words import shown

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
    names = matching_capabilities(text, named_gpus(gpus))
    if not names:
        raise _no_gpu(text, gpus)
    return names


def named_gpus(gpus: Gpus) -> dict[str, NamedGpu]:
    """Return the names of the GPUs in a table, by capability."""
    return {
        name: NamedGpu((*entry.products, entry.family), fact_of(entry.policy, "renamed_to"))
        for name, entry in gpus.capabilities.items()
    }


def _no_gpu(text: str, gpus: Gpus) -> UsageError:
    """Return the error for an unknown GPU name."""
    words = words_of(text)
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
    titles = dict.fromkeys(title for gpu in named_gpus(gpus).values() for title in gpu.titles)
    spellings = {spelling: title for title in titles for spelling in spellings_of(words_of(title))}
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
    if names != names_of_chip(names[0], named_gpus(gpus)):
        message = f"{shown(text)} matches GPUs of several compute capabilities: {', '.join(names)}"
        hint = f"run `{command_line('explain', 'gpu', shlex.quote(text))}` to list them"
        raise UsageError(message, hint=hint)
    entries = gpus.capabilities
    known = [name for name in names if cuda_minor and is_supported(entries[name], cuda_minor)]
    return (known or names)[-1]
