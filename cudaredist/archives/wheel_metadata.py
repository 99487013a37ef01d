"""The file METADATA of a wheel, without unpacking the wheel."""

import lzma
import zipfile
import zlib
from io import RawIOBase
from pathlib import Path

from cudaredist.errors import InvalidArchiveError

METADATA_LIMIT = 4 << 20
_NOT_A_WHEEL = (
    *(zipfile.BadZipFile, EOFError, OSError, lzma.LZMAError, zlib.error),
    *(NotImplementedError, RuntimeError, ValueError),
)
"""The errors that zipfile raises for an invalid file."""


def metadata_in(file: RawIOBase | Path, name: str) -> bytes:
    """Return the metadata of a wheel. Raises `InvalidArchiveError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = list(filter(is_metadata, archive.namelist()))
            if len(members) != 1:
                raise ValueError(f"{len(members) or 'no'} METADATA files")
            with archive.open(members[0]) as content:
                metadata = content.read(METADATA_LIMIT + 1)
    except _NOT_A_WHEEL as error:
        reason = str(error) or "no METADATA files"
        raise InvalidArchiveError(name, f"not a valid wheel: {reason}") from error
    check_metadata(metadata, name)
    return metadata


def check_metadata(metadata: bytes | bytearray, name: str) -> None:
    """Raise `InvalidArchiveError` if metadata is too large."""
    if len(metadata) > METADATA_LIMIT:
        reason = f"not a valid wheel: METADATA exceeds {METADATA_LIMIT:,} bytes"
        raise InvalidArchiveError(name, reason)


def is_metadata(name: str) -> bool:
    """Check if a member of a wheel is its METADATA."""
    folder, _, file = name.partition("/")
    return folder.endswith(".dist-info") and file == "METADATA"
