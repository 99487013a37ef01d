"""Comparison of two feature files by the archives that they describe."""

import contextlib
from functools import lru_cache
from pathlib import Path

from cudaredist.errors import CudaRedistError
from cudaredist.store.files import require_file

_CACHED = 4096
"""Feature files that are remembered. A data folder has hundreds."""
_NOT_EXAMINED = b'"not-examined"'
"""The status of an archive that is listed only."""


def may_be_partial(path: Path) -> bool:
    """Check if a feature file lists archives that were not examined.

    Most files list none. They need not be parsed to know that.
    """
    with contextlib.suppress(CudaRedistError, OSError):
        return _has_unexamined(path, *_version_of(path))
    return False


def describes_fewer(path: Path, other: Path) -> bool:
    """Check if a feature file describes fewer archives, and none that the other one does not.

    A file that is missing, broken, or of another tool describes none.
    """
    return _hashes(path) < _hashes(other)


def _version_of(path: Path) -> tuple[int, int, int]:
    about = path.stat()
    return about.st_ino, about.st_mtime_ns, about.st_size


@lru_cache(maxsize=_CACHED)
def _has_unexamined(path: Path, *_version: int) -> bool:
    return _NOT_EXAMINED in require_file(path)


def _hashes(path: Path) -> frozenset[str]:
    with contextlib.suppress(CudaRedistError, OSError):
        return _read_hashes(path, *_version_of(path))
    return frozenset()


@lru_cache(maxsize=_CACHED)
def _read_hashes(path: Path, *_version: int) -> frozenset[str]:
    # Lookups import no models, and only feature files of data folders are compared.
    from cudaredist.formats.features import Features  # noqa: PLC0415
    from cudaredist.formats.registry import read_own_file  # noqa: PLC0415
    from cudaredist.store.examined_archives import examined_archives  # noqa: PLC0415

    features = read_own_file(require_file(path), Features)
    return frozenset(
        archive.sha256 for *_, archive in examined_archives(features) if archive.sha256 is not None
    )
