"""A local folder as a source, with the layout of a server."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from cudaredist.errors import (
    ArchiveMismatchError,
    EmptyIndexError,
    NotAtSourceError,
    SourceError,
    TooLargeError,
)
from cudaredist.hints import server_line
from cudaredist.primitives import Version
from cudaredist.private import open_file
from cudaredist.sources.protocol import Delivery, Part, Source, listed_label

_CHUNK = 1 << 18


class FolderSource(Source):
    """A folder or mount that contains `compute/<redist>/redist/` and perhaps `handwritten/`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.name = str(root)

    def place_of(self, path: str) -> str:
        """Return the file's path."""
        return str(self._root / path)

    def local_path(self, path: str) -> Path:
        """Return the file's path."""
        return self._root / path

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return the labels of the manifests in a folder, in ascending order."""
        place = self._root / folder
        with reading(place, "no such folder"):
            if not self._root.is_dir():
                hint = server_line("set --base-url to the address or folder that contains compute/")
                raise SourceError(str(self._root), "no such folder", hint=hint)
            labels = {label for entry in place.iterdir() if (label := listed_label(entry.name))}
        if not labels:
            raise EmptyIndexError(str(place))
        return tuple(sorted(labels))

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:  # noqa: ARG002 - files have none
        """Return the bytes of a regular file of at most `limit` bytes."""
        place = self._root / path
        with reading(place), open_file(place, follow=True) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise TooLargeError(str(place), limit)
        return Delivery(self.name, data)

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a regular file, beginning at byte `start`."""
        place = self._root / path
        with reading(place), open_file(place, follow=True) as file:
            total = os.fstat(file.fileno()).st_size
            if size is not None and total != size:
                raise ArchiveMismatchError(str(place), "size", f"{size:,}", f"{total:,} bytes")
            file.seek(start)
            while chunk := file.read(_CHUNK):
                yield chunk

    def part(self, path: str, start: int | None, length: int, etag: str | None = None) -> Part:  # noqa: ARG002 - files have none
        """Return some bytes of a regular file, by default its last."""
        place = self._root / path
        with reading(place), open_file(place, follow=True) as file:
            total = os.fstat(file.fileno()).st_size
            begin = max(0, total - length) if start is None else start
            file.seek(begin)
            return Part(file.read(length), begin, total)

    def close(self) -> None:
        """Do nothing, because no file stays open."""


@contextlib.contextmanager
def reading(place: Path, missing: str = "no such file") -> Iterator[None]:
    """Translate errors of a local path to `NotAtSourceError` and `SourceError`."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise NotAtSourceError(str(place), missing) from None
    except OSError as error:
        raise SourceError(str(place), error.strerror or str(error)) from error
