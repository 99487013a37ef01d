"""Ranges of versions in policies."""

from typing import Protocol

from cudaredist.primitives import Version


class Range(Protocol):
    """A range of versions: `Bounds` of a policy, or the same from the index."""

    @property
    def min(self) -> str | None:
        """The lowest version, None if there is no bound."""

    @property
    def max(self) -> str | None:
        """The highest version, None if there is no bound."""


def is_within(version: Version, bounds: Range) -> bool:
    """Check if a version is within bounds.

    An upper bound of `12.9` includes 12.9.1. Suffixes are ignored.
    """
    least = Version.parse(bounds.min).components if bounds.min else ()
    # 0.7 is not older than 0.7.0.
    filled = version.components + (0,) * (len(least) - len(version.components))
    end = Version.parse(bounds.max).components if bounds.max else ()
    return filled >= least and version.components[: len(end)] <= end


def bounds_text(bounds: Range) -> str:
    """Describe bounds in words."""
    if bounds.min and bounds.max:
        return bounds.min if bounds.min == bounds.max else f"{bounds.min} to {bounds.max}"
    if bounds.min:
        return f"{bounds.min} or newer"
    return f"{bounds.max} or older" if bounds.max else "any"
