"""Ranges of versions in policies."""

from cudaredist.formats.set_policy import Bounds
from cudaredist.primitives import Version


def is_within(version: Version, bounds: Bounds) -> bool:
    """Check if a version is within bounds.

    An upper bound of `12.9` includes 12.9.1. Suffixes are ignored.
    """
    least = Version.parse(bounds.min).components if bounds.min else ()
    # 0.7 is not older than 0.7.0.
    filled = version.components + (0,) * (len(least) - len(version.components))
    end = Version.parse(bounds.max).components if bounds.max else ()
    return filled >= least and version.components[: len(end)] <= end


def bounds_text(bounds: Bounds) -> str:
    """Describe bounds in words."""
    if bounds.min and bounds.max:
        return bounds.min if bounds.min == bounds.max else f"{bounds.min} to {bounds.max}"
    if bounds.min:
        return f"{bounds.min} or newer"
    return f"{bounds.max} or older" if bounds.max else "any"
