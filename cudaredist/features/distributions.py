"""Whether the license text of an archive lists a file as distributable.

The lists are those of the policy of licenses, or the same from the index. Lookups import no models.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from cudaredist.formats.names import Distribution
from cudaredist.grouping import grouped

_version_of_library = re.compile(r"(?<=\.so)(?:\.[0-9]+)+\Z")


class _Listed(Protocol):
    """Files of one component and platform that a license text lists as distributable."""

    @property
    def system(self) -> str:
        """`All`, or the operating system."""

    @property
    def files(self) -> Sequence[str]:
        """Names without version and architecture, or suffixes such as `.so`."""

    @property
    def is_conditional(self) -> bool:
        """Whether the text permits it only in applications that meet further criteria."""


class _Text(Protocol):
    """A license text: an entry of the policy, or the same from the index."""

    @property
    def has_list(self) -> bool | None:
        """Whether it lists the files that may be distributed. None: unknown."""

    @property
    def listed(self) -> Sequence[_Listed]:
        """The list."""


def distribution_of(path: str, text: _Text | str | None) -> Distribution:
    """Return whether the list of an archive's license text contains a file of the archive.

    The result is unknown without a text in policy. A conditional file may only be distributed in
    applications that meet criteria of the text.
    """
    if text is None or isinstance(text, str) or text.has_list is None:
        return "unknown"
    if not text.has_list:
        return "no-list"
    name = posixpath.basename(path)
    names = (name, _without_version(name))
    own = {"All", "Windows" if path.lower().endswith((".dll", ".lib")) else "Linux"}
    matching = [
        one
        for one in text.listed
        if one.system in own and any(_matches(path, names, pattern) for pattern in one.files)
    ]
    if not matching:
        return "not-listed"
    return "conditional" if all(one.is_conditional for one in matching) else "listed"


def distribution_in_words(distribution: Mapping[str, Distribution]) -> str:
    """Return which libraries a license text lists as distributable, nothing if unknown.

    The libraries are given by path.
    """
    names = grouped((kind, posixpath.basename(path)) for path, kind in distribution.items())
    if "no-list" in names:
        return "the license text has no list"
    kinds = {"listed": "", "conditional": "under conditions: ", "not-listed": "not listed: "}
    words = [f"{kinds[kind]}{' '.join(names[kind])}" for kind in kinds if kind in names]
    if "not-listed" not in names:
        return "; ".join(["all libraries", *words[1:]]) if words else ""
    return "; ".join(words if "listed" in names else ["none", *words])


def _matches(path: str, names: tuple[str, str], pattern: str) -> bool:
    """Check if a path has a listed name, with a version or architecture embedded.

    `names` are that of the file, and the same without its version.
    """
    name, plain = names
    if pattern.startswith("."):
        return plain.endswith(pattern)
    if "/" in pattern:
        return path == pattern or path.endswith(f"/{pattern}")
    return pattern.lower() in (name.lower(), plain.lower())


def _without_version(name: str) -> str:
    """Return a name without version and architecture.

    For example, `cudart64_90.dll` is a variation of `cudart.dll`, and `libcudart.so.12` one of
    `libcudart.so`.
    """
    stem, dot, suffix = name.rpartition(".")
    if suffix.lower() != "dll":
        return _version_of_library.sub("", name)
    bare = stem.rstrip("0123456789_")
    version = stem.removeprefix(bare)
    return f"{bare}{dot}{suffix}" if "_" in version or version in {"32", "64"} else name
