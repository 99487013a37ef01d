"""A folder as a source: the same layout as on a server, read from disk."""

import os
import stat
from pathlib import Path

from cudaredist.errors import EmptyIndexError, NotAtSourceError, SourceError, TooLargeError
from cudaredist.primitives import Version, label_of_manifest_name
from cudaredist.source.interface import Delivery


class FolderSource:
    """A folder that holds `compute/<redist>/redist/` (and `handwritten/`), or a mount of one."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def name(self) -> str:
        """The folder as given."""
        return str(self._root)

    def place_of(self, path: str) -> str:
        """Return the file's path."""
        return str(self._root / path)

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return the labels of the manifests that lie in a folder, in ascending order."""
        place = self._root / folder
        try:
            if not self._root.is_dir():
                raise SourceError(str(self._root), "no such folder")
            found = {label_of_manifest_name(entry.name) for entry in place.iterdir()}
        except (FileNotFoundError, NotADirectoryError):
            raise NotAtSourceError(str(place), "no such folder") from None
        except OSError as error:
            raise SourceError(str(place), error.strerror or str(error)) from error
        labels = tuple(sorted(label for label in found if label is not None))
        if not labels:
            raise EmptyIndexError(str(place))
        return labels

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:  # noqa: ARG002 - files have none
        """Return the bytes of a regular file of at most `limit` bytes."""
        place = self._root / path
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for its other end for ever.
            handle = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise SourceError(str(place), "not a regular file")
                data = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise NotAtSourceError(str(place), "no such file") from None
        except OSError as error:
            raise SourceError(str(place), error.strerror or str(error)) from error
        if len(data) > limit:
            raise TooLargeError(str(place), limit)
        return Delivery(self.name, data)

    def close(self) -> None:
        """Do nothing: no file stays open."""
