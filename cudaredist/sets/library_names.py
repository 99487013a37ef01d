"""Names of libraries: comparison, and owners outside package sets."""

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache

from cudaredist.formats.library_policy import External, LibraryPolicy

DRIVER_OWNERS = frozenset({"driver", "jetson"})
"""Owners of the libraries of the driver, which only machines with a GPU have."""


def find_external(soname: str, policy: LibraryPolicy) -> External | None:
    """Return policy's entry for an external library, or None."""
    name = key_of(soname)
    return next((entry for entry in policy.external if name_pattern(entry.names)(name)), None)


def key_of(soname: str) -> str:
    """Return a library name for comparison: DLL names ignore case."""
    return soname.lower() if soname.lower().endswith(".dll") else soname


@lru_cache(maxsize=4096)
def name_pattern(names: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """Return a function that matches the key of a name. `*` matches any characters."""
    return re.compile("|".join(translate(key_of(name)) for name in names) or "(?!)").match


def stem_of(name: str) -> str:
    """Return a library's name without `.so` and its version."""
    return name.partition(".so")[0]
