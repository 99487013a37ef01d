"""Branches of conditional code, as sets of releases.

A set is a number with a bit for each release.
"""

import re
from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from cudaredist.source_code.conditions import (
    STEPS_OF_TOKEN,
    Macro,
    Macros,
    Value,
    evaluate,
    tokens_of,
)
from cudaredist.source_code.work_limit import WorkLimit

_is_other_platform = re.compile(
    r"(?:.*_)?(?:HIP|HIPCC|HIPIFY|HIPBLAS|ROCM|AMDGPU|MUSA|MACA|CANN|SYCL|OPENCL|METAL)(?:_.*)?",
    re.ASCII | re.IGNORECASE,
).fullmatch
"""Matches macros of other platforms, which are not defined in CUDA code."""
has_version = re.compile(
    r"(?:CU|NV|NPP|NCCL|THRUST|CCCL)\w{0,40}(?:VER|MAJOR|MINOR|[0-9]{2}|NEW|OLD|LEGACY)",
    re.IGNORECASE,
).search
"""Matches macros that may depend on the release, such as HAVE_CUDA13."""
_HEADER_CHECKS = frozenset({"__has_include", "__has_include_next"})
_NVIDIA = "NVIDIA"
_DEPTH_LIMIT = 64
"""Conditions inside each other that are distinguished."""


class ReleaseMacros(NamedTuple):
    """The macros of one release, or of several with equal macros and headers."""

    releases: int
    """The set of releases."""
    known: MutableMapping[str, Macro | None]
    has_header: Callable[[str], Value]


class Context(NamedTuple):
    """The releases of a place in the code."""

    releases: int
    """The releases that may compile it."""
    is_doubtful: bool = False
    """Whether an unknown macro decides, which may depend on the release."""
    branches: tuple[tuple[int, int], ...] = ()
    """The unknown conditions around it, each with the number of the branch."""


class Truth(NamedTuple):
    """The releases for which a condition may be true, and for which it may be false."""

    true: int
    false: int
    is_doubtful: bool


class Evaluator:
    """Evaluates conditions for all releases. Each condition is evaluated once."""

    def __init__(
        self, macros: Sequence[ReleaseMacros], doubtful: AbstractSet[str] = frozenset()
    ) -> None:
        """`doubtful` macros of the source may depend on the release."""
        self._macros, self._doubtful = macros, doubtful
        self._merged = _merged(macros)
        self.work = WorkLimit(0)
        """The limit of the file whose conditions are evaluated."""
        self._known: dict[str, Truth] = {}
        self.all_releases = sum(each.releases for each in macros)
        self._dependent = {name for each in macros for name in each.known} | _HEADER_CHECKS

    def truth(self, condition: str) -> Truth:
        """Return the releases for which a condition is true."""
        known = self._known.get(condition)
        if known is None:
            known = self._known[condition] = self._evaluate(condition)
        return known

    def _evaluate(self, condition: str) -> Truth:
        tokens = tokens_of(condition)
        true = false = 0
        is_unknown = False
        others = [name for name in tokens if is_other_platform(name)]
        undefined: dict[str, Macro | None] = dict.fromkeys(others)
        macros = self._macros if _HEADER_CHECKS.intersection(tokens) else self._merged
        if not self._dependent.intersection(tokens):
            # The value is the same for all releases.
            macros = [macros[0]._replace(releases=self.all_releases)] if macros else []
        for each in macros:
            self.work.spend(STEPS_OF_TOKEN * len(tokens))
            known = ChainMap(undefined, each.known) if others else each.known
            value = evaluate(tokens, Macros(known, each.has_header, self.work))
            true |= each.releases if value is None or value else 0
            false |= 0 if value else each.releases
            is_unknown = is_unknown or value is None
        names = (name for name in tokens if self._macros and name not in self._macros[0].known)
        is_doubtful = is_unknown and any(
            name in self._doubtful or has_version(name) for name in names
        )
        return Truth(true, false, is_doubtful)


def _merged(macros: Sequence[ReleaseMacros]) -> list[ReleaseMacros]:
    """Return the macros of releases, with one entry for those with equal macros.

    Their headers can differ.
    """
    merged: list[ReleaseMacros] = []
    for each in macros:
        if merged and merged[-1].known == each.known:
            merged[-1] = each._replace(releases=merged[-1].releases | each.releases)
        else:
            merged.append(each)
    return merged


def is_other_platform(macro: str) -> bool:
    """Check if a macro belongs to another platform, such as HIP."""
    return bool(_is_other_platform(macro)) and _NVIDIA not in macro.upper()


@dataclass(slots=True)
class _Condition:
    """An open `#if`."""

    outer: Context
    number: int
    branch: int = 0
    taken: int = 0
    """The releases of an earlier branch."""
    is_unknown: bool = False
    is_doubtful: bool = False

    def context(self, truth: Truth) -> Context:
        """Return the context of the next branch, and count its releases as taken."""
        self.branch += 1
        self.is_unknown |= bool(truth.true & truth.false & self.outer.releases)
        self.is_doubtful |= truth.is_doubtful
        releases = self.outer.releases & ~self.taken & truth.true
        self.taken |= truth.true & ~truth.false
        branches = self.outer.branches
        if self.is_unknown and len(branches) < _DEPTH_LIMIT:
            branches = (*branches, (self.number, self.branch))
        return Context(releases, self.outer.is_doubtful or self.is_doubtful, branches)


@dataclass(slots=True)
class Branches:
    """The open conditions of a file."""

    evaluator: Evaluator
    context: Context = field(init=False)
    """The current one."""
    _open: list[_Condition] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        """Begin outside of all conditions."""
        self.context = Context(self.evaluator.all_releases)

    def read(self, name: str, text: str) -> None:
        """Follow a directive, such as `if` with its condition."""
        if name in {"ifdef", "ifndef", "elifdef", "elifndef"}:
            macro = (tokens_of(text) or [""])[0]
            sign = "!" if "n" in name.removeprefix("elif") else ""
            text = f"{sign}defined({macro})"
        if name in {"if", "ifdef", "ifndef"}:
            self._count += 1
            condition = _Condition(self.context, self._count)
            self._open.append(condition)
            self.context = condition.context(self.evaluator.truth(text))
        elif name in {"elif", "elifdef", "elifndef"} and self._open:
            self.context = self._open[-1].context(self.evaluator.truth(text))
        elif name == "else" and self._open:
            every = self.evaluator.all_releases
            self.context = self._open[-1].context(Truth(every, 0, is_doubtful=False))
        elif name == "endif" and self._open:
            self.context = self._open.pop().outer
