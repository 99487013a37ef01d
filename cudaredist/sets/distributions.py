"""Distributions that provide the old libraries of packages."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from cudaredist.formats.library_policy import External, LibraryPolicy
from cudaredist.words import listed

NIXPKGS = "nixpkgs"


def find_distributions(
    soname: str, entry: External | None, policy: LibraryPolicy
) -> Mapping[str, str] | None:
    """Map the distributions with a library to their package.

    Returns None for a library that policy names without `*`, and for those of other owners, which
    always exist.
    """
    if entry is None or not policy.distributions or soname.lower().endswith(".dll"):
        return None
    names = [name for name in entry.names if fnmatchcase(soname, name)]
    if entry.owner not in {"distribution", "python"} or soname in names:
        return None
    return {
        name: distribution.sonames[soname]
        for name, distribution in policy.distributions.items()
        if soname in distribution.sonames
    }


def is_old_library(distributions: Mapping[str, str], policy: LibraryPolicy) -> bool:
    """Check if no current distribution with a complete list has a library."""
    known = (policy.distributions[name] for name in distributions)
    return not any(each.is_complete and not each.is_old for each in known)


def old_library_text(distributions: Mapping[str, str], policy: LibraryPolicy) -> str:
    """Describe the distributions with an old library, or those without it."""
    if distributions:
        found = [f"{name} ({package})" for name, package in distributions.items()]
        return f"which only {' and '.join(found)} {'has' if len(found) == 1 else 'have'}"
    without = [name for name, each in policy.distributions.items() if each.is_complete]
    return f"which no distribution is known to have, and which {listed(without)} do not have"
