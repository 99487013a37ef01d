"""Cache the facts and features of archives by hash.

An entry's kind contains the versions of the schema and the rules, so that entries of other versions
are ignored.
"""

import contextlib
import json
from typing import Any, TypeAlias

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.features.derive import RULES, derive
from cudaredist.features.facts import FACTS_SCHEMA, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.formats.features import WholeFeatures
from cudaredist.jsontext import parse_json
from cudaredist.store.cache import Cache

Document: TypeAlias = dict[str, Any]
"""A part of a feature file as plain JSON values."""

FACTS_KIND = f"facts/{FACTS_SCHEMA}"
FEATURES_KIND = f"features/{FACTS_SCHEMA}.{RULES}"
FILES_KIND = f"files/{FACTS_SCHEMA}.{RULES}"
"""Maps a manifest's hash to the hash of its complete feature file."""

_ENTRY_LIMIT = 16 << 20
"""The limit in bytes for the features of one archive: a thousand times the largest known ones."""


def known_facts(cache: Cache, sha256: str | None) -> Facts | None:
    """Return an archive's facts from the cache, or None."""
    data = None if sha256 is None else cache.get(FACTS_KIND, sha256)
    return None if data is None else facts_from_bytes(data)


def remember_facts(cache: Cache, sha256: str | None, facts: Facts) -> None:
    """Cache an archive's facts if its hash was verified."""
    if sha256 is not None:
        cache.put(FACTS_KIND, sha256, facts_to_bytes(facts))


def known_features(cache: Cache, sha256: str | None) -> Document | None:
    """Return an archive's features from the cache, or None.

    If only the facts are cached, derive the features from them. Invalid features count as missing.
    """
    if sha256 is None:
        return None
    data = cache.get(FEATURES_KIND, sha256)
    if data is not None:
        with contextlib.suppress(InvalidFileError):
            return _parse_features(data)
    facts = known_facts(cache, sha256)
    if facts is not None:
        with contextlib.suppress(InvalidFileError):
            return remember_features(cache, sha256, derive(facts))
    return None


def remember_features(cache: Cache, sha256: str | None, features: WholeFeatures) -> Document:
    """Return features, and cache them if the archive's hash was verified.

    Raises `InvalidFileError` if they are not valid in a feature file, because one archive must not
    invalidate the file for all others.
    """
    document = features.model_dump(mode="json")
    data = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
    parsed = _parse_features(data)
    if sha256 is not None:
        cache.put(FEATURES_KIND, sha256, data)
    return parsed


def _parse_features(data: bytes) -> Document:
    """Parse the features of an archive.

    Raises `InvalidFileError` for values that a feature file must not contain.
    """
    document = parse_json(data, what="feature entry", limit=_ENTRY_LIMIT)
    if not isinstance(document, dict):
        raise InvalidFileError("feature entry", [Problem("", "expected an object")])
    return document
