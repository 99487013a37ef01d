"""License files of an archive, recognized by name, with their hashes."""

import hashlib
import re
from collections.abc import Iterator

_LIMIT = 1000
"""Limit for the number of license files per archive."""
_begins_like_one = re.compile(
    r"licen[cs]e|copying|copyright|eula|notice|third[-_ ]?party", re.IGNORECASE
).match
_is_code = re.compile(
    r".*\.(?:h|hpp|cuh|inl|c|cc|cpp|cu|py|js|css|so|dll|exe|png|svg|gif|json|ya?ml)",
    re.IGNORECASE,
).fullmatch


def is_license(path: str) -> bool:
    """Check if a file is named like a license."""
    name = path.rpartition("/")[2]
    return _begins_like_one(name) is not None and _is_code(name) is None


class LicenseFiles:
    """Hashes the license files among an archive's members."""

    def __init__(self) -> None:
        self._by_position: dict[int, str] = {}

    def following(self, position: int, name: str, content: Iterator[bytes]) -> Iterator[bytes]:
        """Return a member's content, hashed if it is a license.

        The caller must then read the content to its end.
        """
        if len(self._by_position) >= _LIMIT or not is_license(name):
            return content
        return self._hashed(position, content)

    def at(self, position: int) -> str | None:
        """Return the hash of a member, or None without a license."""
        return self._by_position.get(position)

    def _hashed(self, position: int, content: Iterator[bytes]) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for chunk in content:
            digest.update(chunk)
            yield chunk
        self._by_position[position] = digest.hexdigest()
