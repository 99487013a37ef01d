"""Dependencies of packages by their headers.

Features list the includes, each with its condition. An include counts if its condition is true for
a C++ compiler of the platform or for nvcc when the user defines no macro. All other includes are
optional: they make no dependency.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cudaredist.formats.packageset import Depends
from cudaredist.primitives import Platform
from cudaredist.sets.draft import Draft
from cudaredist.sets.file_outputs import resolve
from cudaredist.sets.header_conditions import ROOTS, holds


class Included(NamedTuple):
    """A header of other packages, included by a package's headers."""

    name: str
    by_path: str
    """One of the headers that include it."""
    providers: tuple[str, ...]
    """Attributes of the packages that contain it, the best first."""


def included_headers(drafts: Mapping[str, Draft], platform: Platform) -> dict[str, list[Included]]:
    """Return the headers that each package includes from others."""
    index: dict[str, list[str]] = defaultdict(list)
    for attr, draft in drafts.items():
        for name in _provided(draft):
            index[name].append(attr)
    return {attr: list(_included(draft, drafts, index, platform)) for attr, draft in drafts.items()}


def header_depends(
    included: Iterable[Included], drafts: Mapping[str, Draft]
) -> tuple[list[Depends], list[Included]]:
    """Return dependencies by headers, and headers without available providers."""
    depends: dict[str, Depends] = {}
    lacking = []
    for header in included:
        available = [attr for attr in header.providers if drafts[attr].is_available]
        if not available:
            lacking.append(header)
        elif depends.keys().isdisjoint(available):
            attr = available[0]
            depends[attr] = Depends(
                attr=attr,
                output=resolve(("include", "dev"), drafts[attr].outputs),
                kind="header",
                header=header.name,
                included_by=header.by_path,
            )
    return list(depends.values()), lacking


def _provided(draft: Draft) -> Iterator[str]:
    """Yield the names for including the headers of a package."""
    if draft.headers is None or draft.split is None or not draft.has_files:
        return
    for path in draft.headers.paths:
        if draft.split.place(path) is not None:
            yield from (path.removeprefix(root) for root in ROOTS if path.startswith(root))


def _included(
    draft: Draft, drafts: Mapping[str, Draft], index: Mapping[str, list[str]], platform: Platform
) -> Iterator[Included]:
    if draft.headers is None or not draft.has_files:
        return
    for name, includers in sorted(draft.headers.missing.items()):
        for path, condition in includers.items():
            # An include in quotes prefers a header in the folder of the including one.
            folder = path.rpartition("/")[0].removeprefix("include").lstrip("/")
            sibling = f"{folder}/{name}" if folder else name
            attrs = index.get(sibling) or index.get(name, [])
            others = (attr for attr in attrs if attr != draft.attr)
            providers = [attr for attr in others if draft.can_use(drafts[attr])]
            if providers and holds(condition, platform):
                yield Included(name, path, tuple(sorted(providers)))
                break
