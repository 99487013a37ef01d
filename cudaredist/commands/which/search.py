"""which: the archives to search.

Slow imports are in the modules that search for files or symbols.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudaredist.store.facts_index import Index, IndexedArchive

if TYPE_CHECKING:
    from cudaredist.sets.usable import UsableWithCuda


@dataclass(frozen=True, slots=True)
class Search:
    """The archives to search."""

    index: Index
    redists: Sequence[str] = ()
    """The redistributables. Empty: all."""
    platform: str | None = None
    usable: "UsableWithCuda | None" = None
    """The archives for a CUDA release. None: all."""

    @property
    def cuda(self) -> str | None:
        """The CUDA release, if any."""
        return None if self.usable is None else str(self.usable.cuda)

    def archives(
        self, condition: str, *values: str | Collection[object]
    ) -> Iterator[IndexedArchive]:
        """Yield the selected archives that match a condition."""
        if self.platform is not None:
            condition = f"platform = ? AND ({condition})"
            values = (self.platform, *values)
        for one in self.index.archives(self.redists, condition, *values):
            if self.usable is None or self.usable.has(one.redist, one.label, one.archive.id):
                yield one

    def sonames(self) -> set[str]:
        """Return the sonames of the selected archives."""
        selected = {one.contents for one in self.archives("contents IS NOT NULL")}
        return {row.soname for row in self.index.sonames() if row.contents in selected}
