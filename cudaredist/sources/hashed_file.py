"""Fetch a remote file or open a local one, and hash it."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from cudaredist.errors import InsecureAddressError, IntegrityError, ReadingFrom, UsageError
from cudaredist.hints import again, redacted
from cudaredist.progress import Progress
from cudaredist.sources.chain import SourceChain, open_sources
from cudaredist.sources.protocol import Settings, SourceFile
from cudaredist.sources.whole_file import open_whole

_CHUNK = 256 << 10


class HashedFile(NamedTuple):
    """A file's name, size and hashes. The address is None for a local file."""

    name: str
    place: str
    """The address or path, for messages."""
    url: str | None
    size: int
    sha256: str
    md5: str

    def compare(self, recorded: str | None, record: str, *, accept_changed: bool) -> None:
        """Raise `IntegrityError` if a record has another SHA-256, unless `accept_changed`."""
        is_changed = recorded is not None and recorded != self.sha256
        if is_changed and not accept_changed:
            raise IntegrityError(
                f"{self.name}: the SHA-256 is {self.sha256}, and {record} has {recorded}; the "
                "record was kept",
                hint=f"to replace it, run `{again('--replace')}`",
            )


class Recorder(NamedTuple):
    """Fetches files to record their hashes."""

    settings: Settings
    progress: Progress
    begin: Callable[[], None]
    """Called before the first write."""
    accept_changed: bool
    """Whether to replace records that have other hashes."""
    folder: Path | None = None
    """The folder for the copy of a remote file. Default: the system's temporary folder."""

    @contextlib.contextmanager
    def fetched(self, location: str) -> Iterator[tuple[HashedFile, BinaryIO]]:
        """Fetch a whole file, and yield its hashes and the open file.

        Raises `ReadError` if a local file is missing or cannot be read, `UsageError` for plain http
        to another machine, and the errors of sources.
        """
        name = location.rpartition("/")[2]

        def open_from(source: SourceFile) -> tuple[str, BinaryIO]:
            advance = partial(self.progress.advance, number)
            return source.place, open_whole(source, self.folder, advance)

        with contextlib.closing(_opened(location, self.settings)) as sources:
            self.progress.expect(1, None)
            number = self.progress.begin(name, None)
            place, file = sources.consume([name], open_from)
            with file, ReadingFrom(place):
                url = place if sources.has_server else None
                yield _hashed(name, place, url, file), file
            self.progress.end(number)


def _hashed(name: str, place: str, url: str | None, file: BinaryIO) -> HashedFile:
    """Hash a file, and go back to its beginning."""
    size, sha256, md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    while chunk := file.read(_CHUNK):
        sha256.update(chunk)
        md5.update(chunk)
        size += len(chunk)
    file.seek(0)
    return HashedFile(name, place, url, size, sha256.hexdigest(), md5.hexdigest())


def _opened(location: str, settings: Settings) -> SourceChain:
    """Open the folder or server of a file."""
    base, slash, _ = location.rpartition("/")
    if ":" not in base:
        with ReadingFrom(redacted(location)):
            Path(location).stat()
    try:
        return open_sources([base + slash or "."], settings)
    except InsecureAddressError as error:
        hint = "use https, or download the file and use its path"
        raise UsageError(error.message, hint=hint) from None
