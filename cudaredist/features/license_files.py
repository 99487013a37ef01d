"""License files of an archive, recognized by name."""

import re

LICENSES_LIMIT = 1000
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
