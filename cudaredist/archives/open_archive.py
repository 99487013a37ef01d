"""Open an archive as a stream of members."""

from collections.abc import Iterable

from cudaredist.archives.compression import decompressed
from cudaredist.archives.decompress import Budget
from cudaredist.archives.members import Limits
from cudaredist.archives.stream import Stream, StreamReader
from cudaredist.archives.tar import TarReader
from cudaredist.archives.zip import ZipReader
from cudaredist.errors import InvalidArchiveError

_TARS = {".tar": None, ".tar.xz": "xz", ".tar.gz": "gzip", ".tgz": "gzip", ".tar.zst": "zstd"}
_ZIPS = (".zip", ".whl")
SUFFIXES = (*_TARS, *_ZIPS)
"""The suffixes of supported archives."""

_DEFAULTS = Limits()


def open_archive(
    name: str,
    chunks: Iterable[bytes],
    *,
    size: int | None = None,
    limits: Limits = _DEFAULTS,
    jobs: int = 1,
) -> StreamReader:
    """Read the archive called `name` from chunks of any size.

    `size` is the sum of the chunks' sizes, if known. The reader takes all chunks, and does not
    catch errors of their iterator. If `jobs` is above 1 and the file allows it, xz blocks are
    unpacked on that many threads.
    """
    lower = name.lower()
    # Closing the reader must not close the caller's generator, whose rest is read to verify a hash.
    packed = Stream(name, (chunk for chunk in chunks))
    budget = Budget(packed, size, limits)
    if lower.endswith(_ZIPS):
        return ZipReader(packed, budget, limits)
    for suffix, kind in _TARS.items():
        if lower.endswith(suffix):
            if kind is None:
                return TarReader(packed, limits)
            unpacked = budget.spent(decompressed(kind, packed, limits, jobs))
            return TarReader(Stream(name, unpacked), limits)
    raise InvalidArchiveError(name, f"not a supported archive; supported: {', '.join(SUFFIXES)}")
