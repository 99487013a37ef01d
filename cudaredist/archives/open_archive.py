"""Archives as one forward stream of members, with bounded memory, from bytes as they arrive."""

from collections.abc import Iterable

from cudaredist.archives.compression import decompressed
from cudaredist.archives.decompress import Budget
from cudaredist.archives.members import ArchiveReader, Limits
from cudaredist.archives.stream import Stream
from cudaredist.archives.tar import TarReader
from cudaredist.archives.zip import ZipReader
from cudaredist.errors import InvalidArchiveError

_TARS = {".tar": None, ".tar.xz": "xz", ".tar.gz": "gzip", ".tgz": "gzip", ".tar.zst": "zstd"}
_ZIPS = (".zip", ".whl")
SUFFIXES = (*_TARS, *_ZIPS)
"""What the name of an archive that can be read ends with."""

_DEFAULTS = Limits()


def open_archive(
    name: str,
    chunks: Iterable[bytes],
    *,
    size: int | None = None,
    limits: Limits = _DEFAULTS,
    jobs: int = 1,
) -> ArchiveReader:
    """Read the archive called `name` from chunks of any size; `size` is theirs together, if known.

    All chunks are asked for, to the last. What their iterator raises passes through unchanged. With
    `jobs` above 1, xz blocks are unpacked on as many threads where the file allows it.
    """
    lower = name.lower()
    budget = Budget(name, size, limits)
    packed = Stream(name, budget.counted(chunks))
    if lower.endswith(_ZIPS):
        return ZipReader(packed, budget, limits)
    for suffix, kind in _TARS.items():
        if lower.endswith(suffix):
            if kind is None:
                return TarReader(packed, limits)
            unpacked = budget.spent(decompressed(kind, packed, limits, jobs))
            return TarReader(Stream(name, unpacked), limits)
    raise InvalidArchiveError(name, f"no known kind of archive, which are {', '.join(SUFFIXES)}")
