"""Facts and features of archives in the cache, by the archive's hash.

An entry's kind names the numbers of the schema and of the rules that made it, so that older entries
do not count.
"""

import json
from typing import Any, TypeAlias

from cudaredist.features import (
    FACTS_SCHEMA,
    RULES,
    Facts,
    derive,
    facts_from_bytes,
    facts_to_bytes,
)
from cudaredist.schema import ArchiveFeatures
from cudaredist.store import Cache

Document: TypeAlias = dict[str, Any]
"""A part of a feature file as plain JSON values."""

FACTS_KIND = f"facts/{FACTS_SCHEMA}"
FEATURES_KIND = f"features/{FACTS_SCHEMA}.{RULES}"
FILES_KIND = f"files/{FACTS_SCHEMA}.{RULES}"
"""By a manifest's hash, the hash of the feature file that describes all of it."""


def known_facts(cache: Cache, sha256: str | None) -> Facts | None:
    """Return the facts of an archive; None if the cache does not have them."""
    data = None if sha256 is None else cache.get(FACTS_KIND, sha256)
    return None if data is None else facts_from_bytes(data)


def remember_facts(cache: Cache, sha256: str | None, facts: Facts) -> None:
    """Cache the facts of an archive, unless its hash was not verified."""
    if sha256 is not None:
        cache.put(FACTS_KIND, sha256, facts_to_bytes(facts))


def known_features(cache: Cache, sha256: str | None) -> Document | None:
    """Return an archive's features; the rules are applied again to cached facts if they changed."""
    if sha256 is None:
        return None
    data = cache.get(FEATURES_KIND, sha256)
    if data is not None:
        document: Document = json.loads(data)
        return document
    facts = known_facts(cache, sha256)
    return None if facts is None else remember_features(cache, sha256, derive(facts))


def remember_features(cache: Cache, sha256: str | None, features: ArchiveFeatures) -> Document:
    """Cache features, unless the archive's hash was not verified, and return them."""
    document: Document = features.model_dump(mode="json")
    if sha256 is not None:
        data = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
        cache.put(FEATURES_KIND, sha256, data)
    return document
