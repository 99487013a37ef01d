"""License files of an archive, recognized by name."""

import re
from collections.abc import Iterable

LICENSES_LIMIT = 1000
"""Limit for the number of license files per archive."""
_begins_like_license = re.compile(
    r"licen[cs]e|copying|copyright|eula|notice|third[-_ ]?party", re.IGNORECASE
).match
_is_code = re.compile(
    r".*\.(?:h|hpp|cuh|inl|c|cc|cpp|cu|py|js|css|so|dll|exe|png|svg|gif|json|ya?ml)",
    re.IGNORECASE,
).fullmatch


_is_notice = re.compile(r"notice|copyright|third[-_ ]?party", re.IGNORECASE).match


def main_license(paths: Iterable[str]) -> str | None:
    """Return the path of a package's license, or None.

    Notices do not count. The license of a folder applies only to that folder.
    """
    licenses = [path for path in paths if not _is_notice(path.rpartition("/")[2])]
    return min(licenses, key=lambda path: (path.count("/"), path), default=None)


def is_license(path: str) -> bool:
    """Check if a file is named like a license."""
    name = path.rpartition("/")[2]
    return _begins_like_license(name) is not None and _is_code(name) is None
