"""Read a remote or local file once and hash it."""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from cudaredist.errors import InsecureAddressError, IntegrityError, ReadingFrom, UsageError
from cudaredist.hints import again, redacted
from cudaredist.progress import Progress
from cudaredist.sources.chain import SourceChain, open_sources
from cudaredist.sources.protocol import ByteStream, Settings

_T = TypeVar("_T")


class HashedFile(NamedTuple):
    """A file's name, size and hashes. The address is None for a local file."""

    name: str
    url: str | None
    size: int
    sha256: str
    md5: str

    def compare(self, recorded: str | None, record: str, *, accept_changed: bool) -> None:
        """Raise `IntegrityError` if a record has another SHA-256, unless `accept_changed`."""
        if recorded not in {None, self.sha256} and not accept_changed:
            raise IntegrityError(
                f"{self.name}: the SHA-256 is {self.sha256}, and {record} has {recorded}; the "
                "record was kept",
                hint=f"to replace it, run `{again('--replace')}`",
            )


class Recorder(NamedTuple):
    """Reads files to record their hashes."""

    settings: Settings
    progress: Progress
    begin: Callable[[], None]
    """Called before the first write."""
    accept_changed: bool
    """Whether to replace records that have other hashes."""

    def read(
        self, location: str, check: Callable[[str, Iterable[bytes]], _T]
    ) -> tuple[HashedFile, _T]:
        """Read a file once, and return it with the result of a check of its bytes.

        `check` gets the address or path, and all bytes. Raises `ReadError` if a local file is
        missing or cannot be read, `UsageError` for plain http to another machine, and the errors of
        sources and `check`.
        """
        name = location.rpartition("/")[2]

        def use(place: str, stream: ByteStream) -> tuple[HashedFile, _T]:
            size, sha256, md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)

            def chunks() -> Iterator[bytes]:
                nonlocal size
                for chunk in stream(0):
                    sha256.update(chunk)
                    md5.update(chunk)
                    size += len(chunk)
                    self.progress.advance(number, len(chunk))
                    yield chunk

            result = check(place, chunks())
            url = place if sources.has_server else None
            return HashedFile(name, url, size, sha256.hexdigest(), md5.hexdigest()), result

        with contextlib.closing(_opened(location, self.settings)) as sources:
            self.progress.expect(1, None)
            number = self.progress.begin(name, None)
            answer = sources.consume([name], use)
            self.progress.end(number)
        return answer


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
