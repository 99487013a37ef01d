"""mirror sync: the newest releases that have a selected variant."""

from collections.abc import Iterable
from dataclasses import dataclass

from cudaredist.errors import CudaRedistError
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version
from cudaredist.redists import Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.selection import Selection
from cudaredist.store.targets import Filter
from cudaredist.store.upstream import fetch_listed, nvidia_channel_query


@dataclass(frozen=True, slots=True)
class FittingReleases:
    """Selects the newest releases with an archive that fits a filter.

    For example, `--version 9 --variant cuda12` means the newest 9.x for CUDA 12, although a newer
    one is for CUDA 13 only.
    """

    sources: SourceChain
    cache: Cache
    store: Store
    filter: Filter

    def of(self, selection: Selection, redists: Iterable[Redist]) -> Selection:
        """Return a selection of these releases.

        It is the given selection if no release of any redistributable fits, or if a source fails:
        the download reports it.
        """
        labels: set[Version] = set()
        try:
            for redist in redists:
                labels.update(self._labels(selection, redist))
        except CudaRedistError:
            return selection
        if not labels:
            return selection
        return selection._replace(
            versions=tuple(map(str, sorted(labels))), min_version=None, max_version=None
        )

    def _labels(self, selection: Selection, redist: Redist) -> tuple[Version, ...]:
        """Return the selected labels of a redistributable that fit, or the usual ones."""
        query = nvidia_channel_query(self.store, redist, selection.nvidia_channels)
        listing = self.sources.listing(redist.manifest_folders, (), query)
        candidates = set(listing.labels)
        usual = selection.of(tuple(candidates), listing.is_preview)
        while chosen := selection.of(tuple(candidates), listing.is_preview):
            others = {label for label in chosen if not self._fits(redist, label, listing)}
            if not others:
                return chosen
            candidates -= others
        return usual

    def _fits(self, redist: Redist, label: Version, listing: Listing) -> bool:
        upstream = fetch_listed(self.sources, self.cache, label, listing, None, redist=redist)
        archives = read_manifest(upstream.data, label=label).archives
        return any(self.filter.excluding(archive) is None for archive in archives)
