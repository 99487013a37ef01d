"""Reasons why package sets omit a package in every release. Lookups import no models."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from cudaredist.formats.reason import Reason


class _Withheld(Protocol):
    """A package that sets deliberately omit: an entry of the policy, or the same from the index."""

    @property
    def reason(self) -> str:
        """The reason of policy."""

    @property
    def lacks(self) -> Sequence[str]:
        """Required packages and sonames that no set contains."""


def reasons_to_withhold(name: str, entry: _Withheld, source: str) -> Iterator[Reason]:
    """Yield the reasons to omit a package that policy withholds. `source` is the file of policy."""
    yield Reason(code="withheld-by-policy", text=entry.reason, subject=name, source=source)
    for lacking in entry.lacks:
        text = f"requires {lacking}, which no set has"
        yield Reason(code="dependency-unavailable", text=text, subject=lacking, source=source)


def unpublished(name: str) -> Reason:
    """Return the reason to omit a package that no manifest contains."""
    text = f"no local manifest contains {name}"
    return Reason(code="not-in-manifest", text=text, subject=name, source="manifests")
