"""Resolution of an archive's links, each only once."""

from collections.abc import Mapping

from cudaredist.features.facts import Entry

MEMBER_NAME_LIMIT = 1024
_LINK_LIMIT = 40
"""Limit for the links followed for one path, as in Linux."""


class _Walk:
    """A link during resolution: the path and remaining parts."""

    def __init__(self, link: str, folder: str, target: str) -> None:
        self.link = link
        self.here = folder
        self.parts = target.split("/")[::-1]
        self.links = 1


class Links:
    """The ends of links, shared by all links through them."""

    def __init__(self, placed: Mapping[str, Entry], top: str) -> None:
        self._placed = placed
        self._top = top
        self._ends: dict[str, tuple[str, int] | None] = {}
        """The final path of each link, and the number of links on the way.

        None for links without an end, and during their resolution.
        """

    def end_of(self, path: str) -> str | None:
        """Return the final path of a link, if inside the archive."""
        # No recursion: a link may lead through thousands of others.
        walks = [] if path in self._ends else self._begin(path)
        while walks:
            through = self._advance(walks[-1])
            if through is None:
                walks.pop()
            else:
                walks += self._begin(through)
        end = self._ends[path]
        return end and end[0]

    def _begin(self, link: str) -> list[_Walk]:
        """Return the walk to a link's end, if any."""
        entry = self._placed[link]
        target = entry.target
        self._ends[link] = None
        if target is None or target.startswith("/") or len(target) > MEMBER_NAME_LIMIT:
            return []
        if entry.kind == "hardlink":
            # The name of another member, including its top directory.
            return [_Walk(link, "", target.removeprefix("./").removeprefix(self._top))]
        return [_Walk(link, link.rpartition("/")[0], target)]

    def _advance(self, walk: _Walk) -> str | None:
        """Continue to the end, or return a link to resolve first."""
        while walk.parts:
            part = walk.parts[-1]
            step = f"{walk.here}/{part}" if walk.here else part
            if part in {"", "."}:
                step = walk.here
            elif part == "..":
                if not walk.here:
                    return None
                step = walk.here.rpartition("/")[0]
            elif (entry := self._placed.get(step)) is not None and entry.target is not None:
                if step not in self._ends:
                    return step
                end = self._ends[step]
                if end is None or walk.links + end[1] >= _LINK_LIMIT:
                    return None
                step, walk.links = end[0], walk.links + end[1]
            walk.here = step
            walk.parts.pop()
        self._ends[walk.link] = (walk.here, walk.links)
        return None
