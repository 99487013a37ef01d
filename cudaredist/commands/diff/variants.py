"""Align platforms if only one side has variants.

If a manifest begins to nest its archives by CUDA version, its platforms stay the same.
"""

from collections.abc import Collection

from cudaredist.commands.diff.comparable import Fields
from cudaredist.primitives import Place


def align_variants(before: Fields, after: Fields) -> tuple[Fields, Fields]:
    """Return a package's fields with the same platforms on both sides.

    If only one side nests a platform by variant, its variants become the field `variants`.
    """
    old, new = places_of(before), places_of(after)
    nested = {
        platform
        for platform in old | new
        if (_is_flat(platform, old) and _is_nested(platform, new))
        or (_is_nested(platform, old) and _is_flat(platform, new))
    }
    return _with_variants(before, old, nested), _with_variants(after, new, nested)


def places_of(fields: Fields) -> frozenset[Place]:
    """Return the platforms and variants of a package."""
    places = fields.get(("platforms", ""), frozenset())
    return places if isinstance(places, frozenset) else frozenset({places})


def without_platforms_of(places: Collection[Place], other: Collection[Place]) -> frozenset[Place]:
    """Return the places that the other side lacks, nested or flat."""
    other_platforms = {place.partition("/")[0] for place in other}
    lacking = set()
    for place in places:
        platform, is_variant, _ = place.partition("/")
        # The other side may have the platform without its variants, or only with variants.
        same = other if is_variant else other_platforms
        if place not in other and platform not in same:
            lacking.add(place)
    return frozenset(lacking)


def _is_flat(platform: str, places: Collection[Place]) -> bool:
    """Check if a platform has no variants."""
    return platform in places and not _has_variants(platform, places)


def _is_nested(platform: str, places: Collection[Place]) -> bool:
    """Check if a platform has archives only in variants."""
    return platform not in places and _has_variants(platform, places)


def _has_variants(platform: str, places: Collection[Place]) -> bool:
    return any(place.startswith(f"{platform}/") for place in places)


def _with_variants(fields: Fields, places: frozenset[Place], platforms: Collection[str]) -> Fields:
    changed = dict(fields)
    for platform in platforms:
        variants = {place for place in places if place.startswith(f"{platform}/")}
        changed["variants", platform] = frozenset(place.partition("/")[2] for place in variants)
        places = (places - variants) | {platform}
    if platforms:
        changed["platforms", ""] = places
    return changed
