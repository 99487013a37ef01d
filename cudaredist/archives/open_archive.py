"""Open an archive as a sequence of members."""

from collections.abc import Iterator
from typing import BinaryIO

from cudaredist.archives.decompress import Compression, Decompressor
from cudaredist.archives.members import Limits, Members
from cudaredist.archives.stream import Stream
from cudaredist.archives.tar import TarReader
from cudaredist.archives.zip import ZipReader
from cudaredist.errors import InvalidArchiveError

_TARS: dict[str, Compression | None] = {
    ".tar": None,
    ".tar.xz": "xz",
    ".tar.gz": "gzip",
    ".tgz": "gzip",
    ".tar.zst": "zstd",
}
_ZIPS = (".zip", ".whl")
SUFFIXES = (*_TARS, *_ZIPS)
"""The suffixes of supported archives."""

_DEFAULTS = Limits()
_CHUNK = 256 << 10


def open_archive(name: str, file: BinaryIO, limits: Limits = _DEFAULTS) -> Members:
    """Return the members of an archive, which are read from an open file.

    The suffix of `name` is the format. The archive's hash has to be verified before, because this
    reads whatever is in the file. Errors of the file pass through unchanged.
    """
    lower = name.lower()
    if lower.endswith(_ZIPS):
        return ZipReader(name, file, limits).members()
    for suffix, kind in _TARS.items():
        if lower.endswith(suffix):
            if kind is None:
                unpacked = _chunks(file)
            else:
                unpacked = Decompressor(name, kind, file, limits).chunks()
            return TarReader(Stream(name, unpacked), limits).members()
    raise InvalidArchiveError(name, f"not a supported archive; supported: {', '.join(SUFFIXES)}")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(_CHUNK):
        yield chunk
