"""Dependencies of packages by their headers.

Features list the includes, each with its condition. An include counts if its condition is true for
a C++ compiler of the platform or for nvcc when the user defines no macro. All other includes are
optional: they make no dependency.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from cudaredist.formats.packageset import Depends
from cudaredist.primitives import Platform
from cudaredist.sets.draft import Draft
from cudaredist.sets.file_outputs import resolve
from cudaredist.tables.nvcc.expressions import ExpressionError, evaluate, tokenize

ROOTS = ("include/", "include/cccl/")
"""Folders that nvcc searches for headers, from nvcc.profile. CUDA 13 has the second one."""

_OF_SYSTEM = {
    "linux": {"__linux__": "1", "__GNUC__": "13", "__unix__": "1"},
    "windows": {"_WIN32": "1", "_WIN64": "1", "_MSC_VER": "1940"},
}
"""Macros that the C++ compilers of a system define."""
_OF_MACHINE = {
    ("linux", "x86_64"): {"__x86_64__": "1"},
    ("linux", "aarch64"): {"__aarch64__": "1"},
    ("linux", "ppc64le"): {"__powerpc64__": "1", "__PPC64__": "1"},
    ("windows", "x86_64"): {"_M_X64": "100", "_M_AMD64": "100"},
    ("windows", "aarch64"): {"_M_ARM64": "1"},
}
"""Further macros by system and machine."""
_OF_NVCC = {"__CUDACC__": "1", "__NVCC__": "1"}
_DEFINED = "defined"


class Included(NamedTuple):
    """A header of other packages, included by a package's headers."""

    name: str
    by_path: str
    """One of the headers that include it."""
    providers: tuple[str, ...]
    """Attributes of the packages that contain it, the best first."""


def included_headers(drafts: Mapping[str, Draft], platform: Platform) -> dict[str, list[Included]]:
    """Return the headers that each package includes from others."""
    index: dict[str, list[str]] = defaultdict(list)
    for attr, draft in drafts.items():
        for name in _provided(draft):
            index[name].append(attr)
    return {attr: list(_included(draft, drafts, index, platform)) for attr, draft in drafts.items()}


def header_depends(
    included: Iterable[Included], drafts: Mapping[str, Draft]
) -> tuple[list[Depends], list[Included]]:
    """Return dependencies by headers, and headers without available providers."""
    depends: dict[str, Depends] = {}
    lacking = []
    for header in included:
        available = [attr for attr in header.providers if drafts[attr].is_available]
        if not available:
            lacking.append(header)
        elif depends.keys().isdisjoint(available):
            attr = available[0]
            depends[attr] = Depends(
                attr=attr,
                output=resolve(("include", "dev"), drafts[attr].outputs),
                kind="header",
                header=header.name,
                included_by=header.by_path,
            )
    return list(depends.values()), lacking


def _provided(draft: Draft) -> Iterator[str]:
    """Yield the names for including the headers of a package."""
    if draft.headers is None or draft.split is None or not draft.has_files:
        return
    for path in draft.headers.paths:
        if draft.split.place(path) is not None:
            yield from (path.removeprefix(root) for root in ROOTS if path.startswith(root))


def _included(
    draft: Draft, drafts: Mapping[str, Draft], index: Mapping[str, list[str]], platform: Platform
) -> Iterator[Included]:
    if draft.headers is None or not draft.has_files:
        return
    for name, includers in sorted(draft.headers.missing.items()):
        for path, condition in includers.items():
            # An include in quotes prefers a header in the folder of the including one.
            folder = path.rpartition("/")[0].removeprefix("include").lstrip("/")
            sibling = f"{folder}/{name}" if folder else name
            attrs = index.get(sibling) or index.get(name, [])
            others = (attr for attr in attrs if attr != draft.attr)
            providers = [attr for attr in others if draft.can_use(drafts[attr])]
            if providers and holds(condition, platform):
                yield Included(name, path, tuple(sorted(providers)))
                break


@lru_cache(maxsize=4096)
def holds(condition: str, platform: Platform) -> bool:
    """Check if a condition is true for any compiler.

    The compilers are the platform's C++ compiler and nvcc, of each system if the platform has none.
    """
    return not condition or any(_is_true(condition, macros) for macros in _macros(platform))


def _macros(platform: Platform) -> Iterator[Mapping[str, str]]:
    """Yield the macros of the platform's host compilers, and those of nvcc."""
    for system, macros in _OF_SYSTEM.items():
        if platform.os in {system, "any"}:
            of_machine = _OF_MACHINE.get((system, platform.machine or ""), {})
            host = {"__cplusplus": "202002", **macros, **of_machine}
            yield host
            yield host | _OF_NVCC


def _is_true(condition: str, macros: Mapping[str, str]) -> bool:
    tokens: list[str] = []
    try:
        for token in tokenize(condition):
            is_operand = tokens[-1:] == [_DEFINED] or tokens[-2:] == [_DEFINED, "("]
            tokens.append(token if is_operand else macros.get(token, token))
        return evaluate(tuple(tokens), macros.__contains__) != 0
    except ExpressionError:
        # The condition calls `__has_include` or another function, or it was cut.
        return False
