"""The headers of archives.

Of a wheel on a server, only the headers are read, by range requests. Their checksums are verified,
but not the hash of the whole wheel. All other archives are verified as a whole.
"""

import zlib
from functools import partial

from cudaredist.archives.header_members import (
    headers_from_bytes,
    headers_in,
    headers_of_wheel,
    headers_to_bytes,
)
from cudaredist.archives.members import Members
from cudaredist.errors import InvalidArchiveError, NotAtSourceError, SourceError
from cudaredist.sources.protocol import Part, PartReader, SourceFile
from cudaredist.sources.ranged_file import RangedFile
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.tasks import raise_if_stopped

_KIND = "headers/3"
"""Headers that were read by range requests, or from verified archives."""
_AHEAD = 1 << 20


class ArchiveHeaders:
    """Reads the headers of archives, with a cache."""

    def __init__(self, service: ArchiveService) -> None:
        self._service = service

    def of(self, request: ArchiveRequest) -> tuple[dict[str, bytes], bool]:
        """Return the headers of an archive, and whether they were in the cache."""
        cache, sha256 = self._service.cache, request.sha256
        cached = None if cache is None or sha256 is None else cache.get(_KIND, sha256)
        if cached is not None:
            return headers_from_bytes(zlib.decompress(cached)), True
        headers = self._read(request)
        if cache is not None and sha256 is not None:
            cache.put(_KIND, sha256, zlib.compress(headers_to_bytes(headers)))
        return headers, False

    def _read(self, request: ArchiveRequest) -> dict[str, bytes]:
        service = self._service
        raise_if_stopped(service.stop)

        def by_ranges(file: SourceFile) -> dict[str, bytes]:
            if file.part is None:
                raise NotAtSourceError(file.place, "is only read as a whole")
            wheel = RangedFile(partial(self._part, file.part), _AHEAD)
            return headers_of_wheel(wheel, request.name)

        def whole(members: Members) -> dict[str, bytes]:
            return headers_in(members, request.name)

        try:
            headers = service.chains[request.bases].consume(request.paths, by_ranges)
        except (SourceError, InvalidArchiveError):
            # Not all servers have range requests.
            return service.read(request, whole)
        service.count_opened()
        return headers

    def _part(self, read: PartReader, start: int | None, length: int, etag: str | None) -> Part:
        part = read(start, length, etag)
        self._service.count_fetched(len(part.data))
        return part
