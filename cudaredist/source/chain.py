"""Several sources in order: the next one is tried where one fails."""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from cudaredist.errors import (
    ContentError,
    CudaRedistError,
    EmptyIndexError,
    IntegrityError,
    NotAtSourceError,
    SourceError,
    StoppedError,
    UnreachedError,
    UsageError,
)
from cudaredist.primitives import Version
from cudaredist.source.folder import FolderSource
from cudaredist.source.protocol import (
    Delivery,
    Listing,
    Part,
    Settings,
    Source,
    redacted,
)

_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


_PATIENCE = 4
"""Archives in a row that a source may not be reached for, each with all its retries."""

WHEELS = "wheels:"
"""The location that stands for NVIDIA's wheels in the package indexes of pip."""


def open_sources(locations: Iterable[str], settings: Settings) -> "SourceChain":
    """Open addresses and folders as one chain, in the order given.

    Raises `UsageError` for what is neither, for plain http to another machine without leave, and
    for an address where the network is refused.
    """
    return SourceChain([_open(location, settings) for location in locations])


def _open(location: str, settings: Settings) -> Source:
    location = location.strip()
    if location == WHEELS:
        from cudaredist.source.wheel_source import WheelSource  # noqa: PLC0415 - one channel of two

        return WheelSource(settings)
    scheme = _SCHEME.match(location)
    if scheme is None:
        if re.match(r"(?:https?|file):", location, re.IGNORECASE):
            raise UsageError(
                f"{redacted(location)}: an address begins with two slashes behind the colon"
            )
        return FolderSource(Path(location))
    match scheme[1].lower():
        case "http" | "https":
            # httpx costs half of a short command's time, and folders do without it.
            from cudaredist.source.http import HttpSource  # noqa: PLC0415

            return HttpSource(location, settings)
        case "file":
            machine, slash, path = location[scheme.end() :].partition("/")
            if machine not in {"", "localhost"} or not slash:
                raise UsageError(f"{redacted(location)}: a file:// address names no machine")
            return FolderSource(Path(os.path.normpath(unquote(slash + path))))
        case other:
            raise UsageError(
                f"no source can be read by {other}://",
                hint="use https://, file:// or a folder",
            )


class SourceChain:
    """Sources in order of preference, asked one after the other until one answers."""

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise UsageError("no source given", hint="name one with --base-url")
        self._sources = tuple(sources)
        self._unreached: Counter[str] = Counter()
        """How often in a row no connection to a source could be made."""

    @property
    def has_server(self) -> bool:
        """Whether a server is among them, where a file can be gone on with in the middle."""
        return any(not isinstance(source, FolderSource) for source in self._sources)

    def listing(self, folders: Sequence[str], wanted: Iterable[Version] = ()) -> Listing:
        """Return what the first source that answers has in these folders, taken together.

        Of the labels `wanted`, those that it lacks are looked for in the sources after it. Raises
        `NotAtSourceError` where every source answered that it has none of the folders, else the
        first error that says more.
        """
        errors: list[CudaRedistError] = []
        first: str | None = None
        folders_of: dict[Version, str] = {}
        source_of: dict[Version, str] = {}
        lacking = set(wanted)
        for source in self._sources:
            if first is not None and not lacking:
                break
            try:
                found = _list(source, folders)
            except StoppedError:
                raise
            except (SourceError, ContentError) as error:
                _log.info("%s did not answer: %s", source.name, error)
                errors.append(error)
                continue
            taken = found.keys() if first is None else found.keys() & lacking
            for label in taken:
                folders_of[label], source_of[label] = found[label], source.name
            first = first or source.name
            lacking -= found.keys()
        if first is None:
            raise _most_telling(errors)
        is_complete = all(isinstance(error, NotAtSourceError) for error in errors)
        return Listing(first, folders_of, source_of, is_complete=is_complete)

    def read(
        self,
        path: str,
        limit: int,
        *,
        first: str | None = None,
        etag: Callable[[str], str | None] | None = None,
        inspect: Callable[[bytes], None] | None = None,
    ) -> tuple[str, Delivery]:
        """Return where a file was found and its bytes, from the first source that delivers it.

        `first` names the source to begin with, usually the one that listed the file. `etag` tells
        the ETag known of a place. `inspect` may raise `ContentError` at bytes that are not
        what they should be; the next source is then tried, as for any other failure.
        """

        def deliver(source: Source) -> tuple[str, Delivery]:
            place = source.place_of(path)
            delivery = source.read(path, limit, etag(place) if etag else None)
            if inspect is not None and delivery.data is not None:
                inspect(delivery.data)
            return place, delivery

        ordered = sorted(self._sources, key=lambda source: source.name != first)
        return _first_answer([partial(deliver, source) for source in ordered])

    def consume(
        self,
        paths: Sequence[str],
        use: Callable[[str, Callable[[int], Iterator[bytes]]], _Answer],
        *,
        size: int | None = None,
    ) -> _Answer:
        """Return what `use` makes of a large file, from the first source that serves it well.

        `use` gets the place, and a function that streams the file from a byte on. What it raises of
        ours, about a wrong hash as well as about bytes that are not understood, makes the next
        source be tried; `paths` are tried in order within a source. The error raised in the end is
        the most telling one.
        """

        def deliver(source: Source, path: str) -> _Answer:
            if self._unreached[source.name] >= _PATIENCE:
                raise SourceError(
                    source.name, f"not asked any more, after {_PATIENCE} archives in vain"
                )
            try:
                answer = use(source.place_of(path), lambda start: source.stream(path, start, size))
            except UnreachedError:
                self._unreached[source.name] += 1
                raise
            except CudaRedistError:
                self._unreached[source.name] = 0
                raise
            self._unreached[source.name] = 0
            return answer

        return _first_answer(
            [partial(deliver, source, path) for source in self._sources for path in paths]
        )

    def reach(
        self,
        paths: Sequence[str],
        use: Callable[[Callable[[int | None, int, str | None], Part]], _Answer],
    ) -> _Answer:
        """Return what `use` makes of single parts of a file, from the first source that has it.

        `use` gets a function that reads a part, as `Source.part` does.
        """

        def deliver(source: Source, path: str) -> _Answer:
            return use(partial(source.part, path))

        return _first_answer(
            [partial(deliver, source, path) for source in self._sources for path in paths]
        )

    def sizes(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the sizes of files that any source lists with one; a failure leaves some out."""
        sizes: dict[str, int] = {}
        for source in reversed(self._sources):
            try:
                sizes |= source.sizes(paths)
            except SourceError as error:
                _log.info("sizes are not known: %s", error)
        return sizes

    def close(self) -> None:
        """Close every source."""
        for source in self._sources:
            source.close()


def _list(source: Source, folders: Sequence[str]) -> dict[Version, str]:
    """Return the folder of each label that a source has; a folder may be missing or empty."""
    found: dict[Version, str] = {}
    failures: list[CudaRedistError] = []
    for folder in folders:
        try:
            labels = source.labels(folder)
        except (NotAtSourceError, EmptyIndexError) as error:
            failures.append(error)
            continue
        for label in labels:
            found.setdefault(label, folder)
    if not found:
        raise _most_telling(failures)
    return found


def _first_answer(attempts: Iterable[Callable[[], _Answer]]) -> _Answer:
    """Return what the first attempt that succeeds gives; raise the most telling error otherwise."""
    errors: list[CudaRedistError] = []
    for attempt in attempts:
        try:
            return attempt()
        except StoppedError:
            raise
        except (SourceError, ContentError, IntegrityError) as error:
            _log.info("tried in vain: %s", error)
            errors.append(error)
    if not errors:
        raise NotAtSourceError("an archive", "its path leads out of the source")
    raise _most_telling(errors)


def _most_telling(errors: Sequence[CudaRedistError]) -> CudaRedistError:
    """Return a wrong hash before bytes not understood, these before silence, absence last."""
    integrity = next((e for e in errors if isinstance(e, IntegrityError)), None)
    return integrity or next((e for e in errors if not isinstance(e, NotAtSourceError)), errors[0])
