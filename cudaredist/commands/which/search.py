"""which: the archives to search.

Slow imports are in the modules that search for files or symbols.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cudaredist.formats.names import Channel
from cudaredist.primitives import ArchiveId, Version
from cudaredist.store.absence import Unexamined
from cudaredist.store.facts_index import Index, IndexedArchive

if TYPE_CHECKING:
    from cudaredist.sets.usable import UsableWithCuda

_Archives: TypeAlias = Callable[..., Iterator[IndexedArchive]]
"""A question of the index for archives: with redistributables, a condition and its values."""


@dataclass(frozen=True, slots=True)
class Search:
    """The archives to search."""

    index: Index
    redists: Sequence[str] = ()
    """The redistributables. Empty: all."""
    platform: str | None = None
    usable: "Mapping[Channel, UsableWithCuda] | None" = None
    """The archives for a CUDA release, by channel. None: all."""

    @property
    def cuda(self) -> str | None:
        """The CUDA release, if any: the newest one that fits in a channel."""
        if self.usable is None:
            return None
        return str(max(usable.cuda for usable in self.usable.values()))

    def has(self, redist: str, platform: str) -> bool:
        """Check if archives of a redistributable for a platform are selected."""
        return (not self.redists or redist in self.redists) and self.platform in {None, platform}

    def is_usable(self, channel: Channel, redist: str, label: Version, archive: ArchiveId) -> bool:
        """Check if an archive is usable with the CUDA release, if there is one."""
        if self.usable is None:
            return True
        usable = self.usable.get(channel)
        return usable is not None and usable.has(redist, label, archive)

    def archives(
        self, condition: str, *values: str | Collection[object]
    ) -> Iterator[IndexedArchive]:
        """Return the selected archives that match a condition."""
        return self._selected(self.index.archives, condition, values)

    def archives_by_wheel(
        self, condition: str, *values: str | Collection[object]
    ) -> Iterator[IndexedArchive]:
        """Return the selected archives that match, with contents of the wheel of the same version.

        They were not examined themselves.
        """
        return self._selected(self.index.archives_by_wheel, condition, values)

    def _selected(
        self,
        archives: _Archives,
        condition: str,
        values: Sequence[str | Collection[object]],
    ) -> Iterator[IndexedArchive]:
        if self.platform is not None:
            condition = f"platform = ? AND ({condition})"
            values = (self.platform, *values)
        rows = archives(self.redists, condition, *values)
        if self.usable is None:
            return rows
        return (
            row
            for row in rows
            if self.is_usable(row.channel, row.redist, row.label, row.archive.id)
        )

    def unexamined(
        self,
        condition: str,
        packages: Collection[str] = (),
    ) -> list[Unexamined]:
        """Return the releases with selected archives that fulfill a condition.

        `packages` limits them to archives of these packages.
        """
        values: list[str | Collection[object]] = []
        if self.platform is not None:
            condition += " AND platform = ?"
            values.append(self.platform)
        if packages:
            condition += " AND package IN (SELECT value FROM json_each(?))"
            values.append(packages)
        releases = self.index.unexamined(self.redists, condition, *values)
        if self.usable is None:
            return releases
        # Of a CUDA release, and of redistributables that are usable with it.
        redists = {release.redist for release in releases}
        usable = {
            (row.channel, row.redist, str(row.label))
            for row in self.index.archives(redists, "TRUE")
            if self.is_usable(row.channel, row.redist, row.label, row.archive.id)
        }
        return [one for one in releases if (one.channel, one.redist, one.label) in usable]

    def sonames(self) -> set[str]:
        """Return the sonames of the selected archives."""
        selected = {one.contents for one in self.archives("contents IS NOT NULL")}
        return {row.soname for row in self.index.sonames() if row.contents in selected}
