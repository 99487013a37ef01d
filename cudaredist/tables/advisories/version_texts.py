"""The meaning of the versions in bulletins, such as "All versions up to and including 12.6U1".

The rules read only texts with one meaning. The policy decides the others, and a text without a
decision has no meaning: then the state of a version is unknown.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from cudaredist.formats.advisories import AdvisoryPolicy, VersionDecision
from cudaredist.primitives import Version

Numbers: TypeAlias = tuple[int, ...]
_Value = TypeVar("_Value")

_LABEL_LENGTH = 3
_NAME = r"(?:[A-Za-z][A-Za-z0-9+ ]*? )?"
_VERSION = r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,4})(?:\.x)?(?: ?(?:Update |U)([0-9]{1,3}))?"
_VGPU = r"(?:\( ?All versions (?:prior|up) to and including [^()]+\))+"
_LIMIT = r"(?: ?\([^()]+\)|\.? (?:for support of|Only GPUs) [^()]+)?"
"""The release of vGPU software with this driver, or the GPUs that are affected."""
_match = {
    name: re.compile(pattern, re.IGNORECASE).fullmatch
    for name, pattern in {
        "before": rf"All (?:drivers? )?versions? prior to {_NAME}{_VERSION}{_LIMIT}",
        "through": rf"All (?:drivers? )?versions? (?:prior|up) to and including {_NAME}{_VERSION}",
        "up-to": rf"All (?:drivers? )?versions? up to {_NAME}{_VERSION}",
        "span": rf"{_VERSION} ?(?:-|to) ?{_VERSION}",
        "vgpu": rf"{_VERSION} ?{_VGPU}",
        "exact": rf"{_NAME}{_VERSION}",
        "fixed": rf"{_NAME}{_VERSION}(?: ?\([^()]*\))?",
    }.items()
}


class Span(NamedTuple):
    """Consecutive versions. None means no limit."""

    first: Numbers | None
    last: Numbers | None
    is_last_included: bool

    def contains(self, version: Numbers) -> bool:
        """Check if a version is in the span."""
        if self.first is not None and version < padded(self.first):
            return False
        if self.last is None:
            return True
        if not self.is_last_included:
            return version < padded(self.last)
        last = padded(self.last, _LABEL_LENGTH)
        return version[: len(last)] <= last


class Fixed(NamedTuple):
    """A fixed version."""

    numbers: Numbers
    text: str


class VersionTexts(NamedTuple):
    """The meaning of all stated versions of one product and vulnerability."""

    affected: tuple[Span, ...]
    fixed: tuple[Fixed, ...]
    unreadable: tuple[str, ...]
    """Texts without a meaning."""


def padded(version: Sequence[int], length: int = 5) -> Numbers:
    """Return the numbers of a version with zeros, so that 12.8 is equal to 12.8.0."""
    return (*version, *(0,) * (length - len(version)))


def numbers_of(version: Version) -> Numbers:
    """Return the numbers of a label or version for comparisons with spans."""
    return padded(version.components)


def read_versions(
    affected: Iterable[str], fixed: Iterable[str], bulletin: str, policy: AdvisoryPolicy
) -> VersionTexts:
    """Return the meaning of a bulletin's versions."""
    decisions = {one.stated: one for one in policy.versions if one.bulletin == bulletin}
    first_fixed, unreadable_fixed = _read_each(fixed, decisions, _fixed)
    spans, unreadable_spans = _read_each(affected, decisions, _affected)
    unreadable = (*unreadable_fixed, *unreadable_spans)
    return VersionTexts(tuple(spans), tuple(sorted(first_fixed)), unreadable)


def _read_each(
    texts: Iterable[str],
    decisions: Mapping[str, VersionDecision],
    read: Callable[[str, VersionDecision | None], _Value | None],
) -> tuple[list[_Value], list[str]]:
    """Return the meanings of texts, and the texts that cannot be read."""
    values: list[_Value] = []
    unreadable: list[str] = []
    for text in texts:
        decision = decisions.get(text)
        if decision is not None and decision.ignored:
            continue
        value = read(text, decision)
        if value is None:
            unreadable.append(text)
        else:
            values.append(value)
    return values, unreadable


def _fixed(text: str, decision: VersionDecision | None) -> Fixed | None:
    """Return the first fixed version."""
    if decision is not None:
        version = decision.at_least
        return (
            None if version is None else Fixed(padded(Version.parse(version).components), version)
        )
    match = _match["fixed"](_plain(text))
    if match is None:
        return None
    numbers = _numbers(match[1], match[2])
    return Fixed(padded(numbers), match[1] if match[2] is None else ".".join(map(str, numbers)))


def _affected(text: str, decision: VersionDecision | None) -> Span | None:
    """Return the affected versions.

    "Up to" a version can mean with or without it, so it counts as without. The bulletins that use
    these words name the same version as the fixed one.
    """
    if decision is not None:
        limit = decision.before or decision.through
        if limit is None:
            return None
        return Span(None, Version.parse(limit).components, decision.before is None)
    plain = _plain(text)
    for kind in ("before", "through", "up-to", "vgpu"):
        match = _match[kind](plain)
        if match is not None:
            is_included = kind in {"through", "vgpu"}
            return Span(None, _numbers(match[1], match[2]), is_included)
    match = _match["span"](plain)
    if match is not None:
        first, last = _numbers(match[1], match[2]), _numbers(match[3], match[4])
        return Span(first, last, is_last_included=True)
    match = _match["exact"](plain)
    if match is not None:
        version = _numbers(match[1], match[2])
        return Span(version, version, is_last_included=True)
    return None


def _plain(text: str) -> str:
    return " ".join(text.split())


def _numbers(version: str, update: str | None) -> Numbers:
    """Return the numbers of a version. "12.6 Update 1" is 12.6.1."""
    numbers = Version.parse(version).components
    return numbers if update is None else (*padded(numbers, 2)[:2], int(update))
