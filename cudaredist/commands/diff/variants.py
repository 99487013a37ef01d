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
    one_sided = {(True, False), (False, True)}
    nested = {
        platform
        for platform in old | new
        if {_shape(platform, old), _shape(platform, new)} == one_sided
    }
    return _with_variants(before, old, nested), _with_variants(after, new, nested)


def places_of(fields: Fields) -> frozenset[Place]:
    """Return the platforms and variants of a package."""
    places = fields.get(("platforms", ""), frozenset())
    return places if isinstance(places, frozenset) else frozenset({places})


def without_platforms_of(places: Collection[Place], other: Collection[Place]) -> frozenset[Place]:
    """Return the places that the other side lacks, nested or flat."""
    platforms = {place.partition("/")[0] for place in other}
    return frozenset(
        place
        for place in places
        if place not in other
        and (place.partition("/")[0] not in other if "/" in place else place not in platforms)
    )


def _shape(platform: str, places: Collection[Place]) -> tuple[bool, bool]:
    """Check if a platform exists without variants, and with variants."""
    return platform in places, any(place.startswith(f"{platform}/") for place in places)


def _with_variants(fields: Fields, places: frozenset[Place], platforms: Collection[str]) -> Fields:
    changed = dict(fields)
    for platform in platforms:
        variants = {place for place in places if place.startswith(f"{platform}/")}
        changed["variants", platform] = frozenset(place.partition("/")[2] for place in variants)
        places = (places - variants) | {platform}
    if platforms:
        changed["platforms", ""] = places
    return changed
