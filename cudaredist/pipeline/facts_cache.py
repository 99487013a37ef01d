"""Facts and features of archives in the cache, by the archive's hash.

An entry's kind names the numbers of the schema and of the rules that made it, so that older entries
do not count.
"""

import contextlib
import json
from typing import Any, TypeAlias

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.features.derive import RULES, derive
from cudaredist.features.facts import FACTS_SCHEMA, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.jsontext import parse_json
from cudaredist.schema.features import WholeFeatures
from cudaredist.store.cache import Cache

Document: TypeAlias = dict[str, Any]
"""A part of a feature file as plain JSON values."""

FACTS_KIND = f"facts/{FACTS_SCHEMA}"
FEATURES_KIND = f"features/{FACTS_SCHEMA}.{RULES}"
FILES_KIND = f"files/{FACTS_SCHEMA}.{RULES}"
"""By a manifest's hash, the hash of the feature file that describes all of it."""

_ENTRY_LIMIT = 16 << 20
"""Bytes that the features of one archive may have at most: a thousand times the largest seen."""


def known_facts(cache: Cache, sha256: str | None) -> Facts | None:
    """Return the facts of an archive; None if the cache does not have them."""
    data = None if sha256 is None else cache.get(FACTS_KIND, sha256)
    return None if data is None else facts_from_bytes(data)


def remember_facts(cache: Cache, sha256: str | None, facts: Facts) -> None:
    """Cache the facts of an archive, unless its hash was not verified."""
    if sha256 is not None:
        cache.put(FACTS_KIND, sha256, facts_to_bytes(facts))


def known_features(cache: Cache, sha256: str | None) -> Document | None:
    """Return an archive's features; the rules are applied again to cached facts if they changed.

    Features that no feature file may contain do not count.
    """
    if sha256 is None:
        return None
    data = cache.get(FEATURES_KIND, sha256)
    if data is not None:
        with contextlib.suppress(InvalidFileError):
            return _checked_features(data)
    facts = known_facts(cache, sha256)
    if facts is not None:
        with contextlib.suppress(InvalidFileError):
            return remember_features(cache, sha256, derive(facts))
    return None


def remember_features(cache: Cache, sha256: str | None, features: WholeFeatures) -> Document:
    """Cache features, unless the archive's hash was not verified, and return them.

    Raises `InvalidFileError` if no feature file may contain them: one archive must not spoil the
    file of all others.
    """
    document = features.model_dump(mode="json")
    data = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
    checked = _checked_features(data)
    if sha256 is not None:
        cache.put(FEATURES_KIND, sha256, data)
    return checked


def _checked_features(data: bytes) -> Document:
    """Return the features of one archive; raises `InvalidFileError` for values no file may have."""
    document = parse_json(data, what="feature entry", limit=_ENTRY_LIMIT)
    if not isinstance(document, dict):
        raise InvalidFileError("feature entry", [Problem("", "expected an object")])
    return document
