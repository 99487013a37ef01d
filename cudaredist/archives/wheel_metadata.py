"""The file METADATA of a wheel, without unpacking the wheel."""

import lzma
import zipfile
from io import RawIOBase
from pathlib import Path
from typing import IO

from cudaredist.archives.zip import ZIP_ERRORS
from cudaredist.errors import InvalidArchiveError

METADATA_LIMIT = 4 << 20


def metadata_in(file: IO[bytes] | RawIOBase | Path, name: str) -> bytes:
    """Return the metadata of a wheel. Raises `InvalidArchiveError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = list(filter(_is_metadata, archive.namelist()))
            if len(members) != 1:
                raise ValueError(f"{len(members) or 'no'} METADATA files")
            with archive.open(members[0]) as content:
                metadata = content.read(METADATA_LIMIT + 1)
    except (*ZIP_ERRORS, OSError, lzma.LZMAError) as error:
        reason = str(error) or "no METADATA files"
        raise InvalidArchiveError(name, f"not a valid wheel: {reason}") from error
    if len(metadata) > METADATA_LIMIT:
        reason = f"not a valid wheel: METADATA exceeds {METADATA_LIMIT:,} bytes"
        raise InvalidArchiveError(name, reason)
    return metadata


def _is_metadata(name: str) -> bool:
    """Check if a member of a wheel is its METADATA."""
    folder, _, file = name.partition("/")
    return folder.endswith(".dist-info") and file == "METADATA"
