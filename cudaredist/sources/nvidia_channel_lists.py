"""The releases that a source lists by NVIDIA channel."""

import threading
from collections import defaultdict
from collections.abc import Iterable

from cudaredist.errors import CudaRedistError, NotAtSourceError
from cudaredist.primitives import PREVIEW, Version
from cudaredist.sources.protocol import NvidiaChannelQuery, Source
from cudaredist.sources.releases import (
    DOCUMENT_LIMIT,
    NVIDIA_CHANNELS_PATH,
    ListedReleases,
    NvidiaChannelRelease,
    Products,
    read_nvidia_channels,
    read_releases,
    releases_path,
)


class NvidiaChannelLists:
    """The documents of one source. `channels.json` is requested once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._products: Products | CudaRedistError | None = None
        self._is_requested = False
        self._mutex = threading.Lock()

    def releases(self, query: NvidiaChannelQuery) -> ListedReleases | None:
        """Return the releases of a product. None: the source does not list it.

        Raises `SourceError`, and `ContentError` for invalid documents.
        """
        if not query.is_known and not self._may_have(query.product):
            return None
        path = releases_path(query.product)
        try:
            data = self._source.read(path, DOCUMENT_LIMIT).data or b""
        except NotAtSourceError:
            return None
        return read_releases(data, query.product, self._source.place_of(path))

    def _may_have(self, product: str) -> bool:
        """Check if `channels.json` lists a product, or if there is no such file."""
        with self._mutex:
            if not self._is_requested:
                self._is_requested = True
                try:
                    data = self._source.read(NVIDIA_CHANNELS_PATH, DOCUMENT_LIMIT).data or b""
                    self._products = read_nvidia_channels(
                        data, self._source.place_of(NVIDIA_CHANNELS_PATH)
                    )
                except NotAtSourceError:
                    self._products = None
                except CudaRedistError as error:
                    self._products = error
        if isinstance(self._products, CudaRedistError):
            raise self._products
        return self._products is None or any(
            product in products for products in self._products.values()
        )


def labels_by_nvidia_channel(entries: Iterable[NvidiaChannelRelease]) -> dict[str, tuple[str, ...]]:
    """Return the labels of each NVIDIA channel, in ascending order."""
    nvidia_channels: dict[str, list[Version]] = defaultdict(list)
    for entry in entries:
        nvidia_channels[entry.nvidia_channel].append(entry.label)
    return {
        name: tuple(map(str, sorted(labels))) for name, labels in sorted(nvidia_channels.items())
    }


def selected_releases(
    entries: Iterable[NvidiaChannelRelease], query: NvidiaChannelQuery
) -> dict[Version, NvidiaChannelRelease]:
    """Return the entries of selected NVIDIA channels and of recorded releases.

    A release in several of them is read from its recorded one, or else from another than
    `preview`.
    """
    by_label: dict[Version, list[NvidiaChannelRelease]] = defaultdict(list)
    for entry in entries:
        if entry.nvidia_channel in query.nvidia_channels or entry.label in query.recorded:
            by_label[entry.label].append(entry)

    def order(entry: NvidiaChannelRelease) -> tuple[bool, bool, bool, str]:
        is_recorded = entry.nvidia_channel == query.recorded.get(entry.label)
        is_selected = entry.nvidia_channel in query.nvidia_channels
        return (
            not is_recorded,
            not is_selected,
            entry.nvidia_channel == PREVIEW,
            entry.nvidia_channel,
        )

    return {label: min(same, key=order) for label, same in by_label.items()}
