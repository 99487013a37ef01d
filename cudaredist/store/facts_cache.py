"""Cache the facts of archives by hash.

An entry's kind contains the version of the schema, so that entries of other versions are ignored.
"""

from cudaredist.features.derive import RULES
from cudaredist.features.facts import FACTS_SCHEMA, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.store.cache import Cache

FACTS_KIND = f"facts/{FACTS_SCHEMA}"
FILES_KIND = f"files/{FACTS_SCHEMA}.{RULES}"
"""Maps a manifest's hash to the hash of its complete feature file."""


def known_facts(cache: Cache, sha256: str | None) -> Facts | None:
    """Return an archive's facts from the cache, or None."""
    data = None if sha256 is None else cache.get(FACTS_KIND, sha256)
    return None if data is None else facts_from_bytes(data)


def remember_facts(cache: Cache, sha256: str | None, facts: Facts) -> None:
    """Cache an archive's facts if its hash was verified."""
    if sha256 is not None:
        cache.put(FACTS_KIND, sha256, facts_to_bytes(facts))
