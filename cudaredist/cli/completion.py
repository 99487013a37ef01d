"""Completion of values in a shell: releases, GPUs, packages and subjects.

A shell waits for it at every key. Therefore it reads the names of files, and few small files,
without the modules of the commands. If a file cannot be read, its values are not offered.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from cudaredist.redists import CUDA, REDISTS

_SUBJECTS = {
    "nvcc": "host compilers of a CUDA release, or of a compiler",
    "gpu": "CUDA releases and libraries for a GPU",
    "cuda": "drivers, GPUs and compilers of a CUDA release",
    "driver": "CUDA releases for a driver",
    "jetpack": "CUDA of a release of JetPack",
    "l4t": "CUDA of a release of Jetson Linux",
    "package": "releases, license and libraries of a package",
    "set": "packages of a package set",
}
_PREFIX, _SUFFIX = "redistrib_", ".json"
_SERIES = ("GTX", "RTX")
_MOST_WORDS = 3
"""Longer names, such as those of workstations, are not offered."""
_VENDORS = ("NVIDIA", "GeForce", "Tesla")

Values = Sequence[str | tuple[str, str]]


def complete_cuda(ctx: typer.Context, incomplete: str) -> Values:
    """Complete a CUDA release."""
    return _matching(_labels(ctx, CUDA), incomplete)


def complete_label(ctx: typer.Context, incomplete: str) -> Values:
    """Complete a release of the products of --redist, by default of CUDA."""
    names = ctx.params.get("redist") or CUDA
    products = [names] if isinstance(names, str) else names
    return _matching((label for name in products for label in _labels(ctx, name)), incomplete)


def complete_pin(ctx: typer.Context, incomplete: str) -> Values:
    """Complete a product, or its release after `=`."""
    return _product_or_release(ctx, incomplete, "=")


def complete_release(ctx: typer.Context, incomplete: str) -> Values:
    """Complete a release of CUDA, a product, or the release of a product after `@`."""
    return [*complete_cuda(ctx, incomplete), *_product_or_release(ctx, incomplete, "@")]


def complete_gpu(ctx: typer.Context, incomplete: str) -> Values:
    """Complete a compute capability, or the name of a GPU without blanks."""
    return _matching_gpus(ctx, incomplete)


def complete_package(ctx: typer.Context, incomplete: str) -> Values:
    """Complete the name of a package."""
    return _matching(_packages(ctx), incomplete)


def complete_component(ctx: typer.Context, incomplete: str) -> Values:
    """Complete the name of a group of packages, or of a package."""
    return _matching(("all", "compiler", "math", "runtime", *_packages(ctx)), incomplete)


def complete_word(ctx: typer.Context, incomplete: str) -> Values:
    """Complete the first word of explain: a subject, or a name of any subject."""
    subjects = [(name, text) for name, text in _SUBJECTS.items() if name.startswith(incomplete)]
    names = _matching((*_labels(ctx, CUDA), *_packages(ctx)), incomplete)
    return [*subjects, *names, *_matching_gpus(ctx, incomplete)]


def complete_name(ctx: typer.Context, incomplete: str) -> Values:
    """Complete the name after the subject of explain."""
    subject = ctx.params.get("subject", "")
    if subject == "gpu":
        return _matching_gpus(ctx, incomplete)
    names = _NAMES.get(subject)
    return [] if names is None else _matching(names(ctx), incomplete)


def _product_or_release(ctx: typer.Context, incomplete: str, separator: str) -> Values:
    """Complete a product, and after the separator its release."""
    name, has_separator, label = incomplete.partition(separator)
    if has_separator:
        return [f"{name}{separator}{one}" for one in _matching(_labels(ctx, name), label)]
    return [(one.name, one.title) for one in REDISTS.values() if one.name.startswith(name)]


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin with a text."""
    return [*dict.fromkeys(name for name in names if name.startswith(incomplete))]


def _matching_gpus(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the GPUs that begin with a text in any case, and keep its case."""
    names = (name for name in _gpus(ctx) if name.lower().startswith(incomplete.lower()))
    return [*dict.fromkeys(incomplete + name[len(incomplete) :] for name in names)]


def _folders(ctx: typer.Context) -> Iterator[Path]:
    """Yield the data folder of the call, and the shipped one."""
    yield Path(ctx.params.get("data_dir") or "data")
    package = Path(__file__).parents[1]
    shipped = package / "data"
    yield shipped if shipped.is_dir() else package.parent / "data"


def _manifests(ctx: typer.Context, redist: str) -> Iterator[dict[str, Path]]:
    """Yield the manifests of a product by label, for each folder with manifests."""
    for folder in _folders(ctx):
        for channel in ("", "wheels"):
            paths = (folder / "manifests" / channel / redist).glob(f"{_PREFIX}*{_SUFFIX}")
            yield {path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX): path for path in paths}


def _labels(ctx: typer.Context, redist: str) -> Iterator[str]:
    """Yield the releases of a product."""
    if redist in REDISTS:
        yield from chain.from_iterable(_manifests(ctx, redist))


def _packages(ctx: typer.Context) -> Iterator[str]:
    """Yield the packages in each product's newest manifests."""
    from cudaredist.primitives import parse_label

    for redist in REDISTS:
        for manifests in filter(None, _manifests(ctx, redist)):
            with suppress(ValueError):
                entries = _read(manifests[max(manifests, key=parse_label)])
                yield from (name for name, entry in entries.items() if isinstance(entry, dict))


def _gpus(ctx: typer.Context) -> Iterator[str]:
    """Yield the compute capabilities, and the names of GPUs that have one word."""
    for folder in _folders(ctx):
        for name, entry in _read(folder / "gpus.json").get("capabilities", {}).items():
            yield name
            for product in entry.get("products", ()):
                words = [word for word in product.split() if word not in _VENDORS]
                if len(words) == 1 or (words[0] in _SERIES and len(words[1:]) < _MOST_WORDS):
                    yield "".join(words)


def _jetson_releases(ctx: typer.Context) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the releases of JetPack, with those of Jetson Linux."""
    for folder in _folders(ctx):
        for name, entry in _read(folder / "policy" / "jetpack.json").get("releases", {}).items():
            yield name, entry.get("l4t", ())


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, empty if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        document = json.loads(path.read_bytes())
        if isinstance(document, dict):
            return document
    return {}


_NAMES: dict[str, Callable[[typer.Context], Iterable[str]]] = {
    "nvcc": lambda ctx: _labels(ctx, CUDA),
    "cuda": lambda ctx: _labels(ctx, CUDA),
    "jetpack": lambda ctx: (name for name, _ in _jetson_releases(ctx)),
    "l4t": lambda ctx: (name for _, names in _jetson_releases(ctx) for name in names),
    "package": _packages,
}
"""The names of a subject. A set is a file, which the shell completes."""
