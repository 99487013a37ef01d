"""Cache the facts of archives by hash, and those of local files by identity.

An entry's kind contains the version of the schema, so that entries of other versions are ignored.
"""

import hashlib
import os
import time
from pathlib import Path

from cudaredist.binaries.examine_file import examine_file
from cudaredist.binaries.file_facts import Binary
from cudaredist.features.derive import RULES
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.primitives import sha256_of
from cudaredist.store.cache import Cache

FACTS_KIND = f"facts/{FACTS_SCHEMA}"
FILES_KIND = f"files/{FACTS_SCHEMA}.{RULES}"
"""Maps a manifest's hash to the hash of its complete feature file."""
_FOLDERS_KIND = f"folders/{FACTS_SCHEMA}"
"""Facts of the binaries in a folder, by the hash of its path. Each entry's name is an identity."""
_OTHERS_KIND = f"folders/others.{FACTS_SCHEMA}"
"""Digests of the identities of the other files in a folder, by the hash of its path."""
_DIGEST = 8
"""Bytes of a digest. Folders have hundreds of thousands of files that are no binaries."""
_SETTLED = 2 * 10**9
"""Nanoseconds after which another change of a file also changes its times."""


def known_facts(cache: Cache, sha256: str | None) -> Facts | None:
    """Return an archive's facts from the cache, or None."""
    data = None if sha256 is None else cache.get(FACTS_KIND, sha256)
    return None if data is None else facts_from_bytes(data)


def remember_facts(cache: Cache, sha256: str | None, facts: Facts) -> None:
    """Cache an archive's facts if its hash was verified."""
    if sha256 is not None:
        cache.put(FACTS_KIND, sha256, facts_to_bytes(facts))


class FolderFacts:
    """The facts of the files in one folder. Only new and changed files are read."""

    def __init__(self, cache: Cache, folder: Path) -> None:
        self._cache, self._key = cache, sha256_of(os.fsencode(folder.resolve()))
        data = cache.get(_FOLDERS_KIND, self._key)
        facts = None if data is None else facts_from_bytes(data)
        self._known = {} if facts is None else {each.name: each for each in facts.members}
        self._entries: dict[str, Entry] = {}
        digests = cache.get(_OTHERS_KIND, self._key) or b""
        starts = range(0, len(digests), _DIGEST)
        self._known_others = {digests[start : start + _DIGEST] for start in starts}
        self._others: set[bytes] = set()

    def examine(self, path: str, status: os.stat_result) -> Binary | None:
        """Return a file's facts, cached if its status is unchanged. Raises `ReadError`."""
        times = status.st_mtime_ns, status.st_ctime_ns
        identity = f"{status.st_dev} {status.st_ino} {status.st_size} {times[0]} {times[1]}"
        entry, digest = self._known.get(identity), _digest(identity)
        if entry is not None:
            self._entries[identity] = entry
            return entry.binary
        if digest in self._known_others:
            self._others.add(digest)
            return None
        binary = examine_file(path)
        # Windows does not tell when a file was last changed.
        is_settled = os.name != "nt" and time.time_ns() - max(times) > _SETTLED
        if is_settled and binary is None:
            self._others.add(digest)
        elif is_settled:
            self._entries[identity] = Entry(name=identity, kind="file", binary=binary)
        return binary

    def remember(self) -> None:
        """Store the facts of the examined files instead of the previous ones."""
        if self._entries != self._known:
            facts = Facts(schema=FACTS_SCHEMA, members=tuple(self._entries.values()))
            self._cache.put(_FOLDERS_KIND, self._key, facts_to_bytes(facts))
        if self._others != self._known_others:
            self._cache.put(_OTHERS_KIND, self._key, b"".join(sorted(self._others)))


def _digest(identity: str) -> bytes:
    return hashlib.blake2b(identity.encode(), digest_size=_DIGEST).digest()
