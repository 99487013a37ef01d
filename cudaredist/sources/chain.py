"""Several sources in order: if one fails, try the next."""

import contextlib
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    UnreachedError,
    UsageError,
)
from cudaredist.formats.wheel_policy import WheelPolicy
from cudaredist.hints import redacted, server_line
from cudaredist.primitives import PREVIEW, Version
from cudaredist.sources.folder import FolderSource
from cudaredist.sources.nvidia_channel_lists import (
    NvidiaChannelLists,
    labels_by_nvidia_channel,
    selected_releases,
)
from cudaredist.sources.protocol import (
    WHEELS,
    Delivery,
    Listing,
    NvidiaChannelQuery,
    Settings,
    Source,
    SourceFile,
    check_locations,
)

_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")
_Value = TypeVar("_Value")

_begins_with_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://").match


_MAX_FAILURES = 4
"""Consecutive archives without a connection, retries included, before a source is skipped."""

_MANIFESTS_LIMIT = 1000
"""Maximum manifests in a listing. NVIDIA's listings have fewer than 100."""


def open_sources(
    locations: Iterable[str], settings: Settings, policy: WheelPolicy | None = None
) -> "SourceChain":
    """Open addresses and folders as one chain, in the order given.

    The policy replaces wheels in manifests of the wheels channel.

    Raises `UsageError` if a location is neither an address nor a folder, if it is plain http to
    another machine without permission, and if it is an address in an offline run.
    """
    bases = list(locations)
    check_locations(bases)
    return SourceChain([_open(base, settings, policy) for base in bases])


def open_source(location: str, settings: Settings) -> Source:
    """Open one address or folder. Raises the errors of `open_sources`."""
    check_locations([location])
    return _open(location, settings, None)


def _open(location: str, settings: Settings, policy: WheelPolicy | None) -> Source:
    location = location.strip()
    if location == WHEELS:
        from cudaredist.sources.wheel_source import WheelSource  # noqa: PLC0415 - one channel of two

        return WheelSource(settings, policy=policy)
    scheme = _begins_with_scheme(location)
    if scheme is None:
        if re.match(r"(?:https?|file):", location, re.IGNORECASE):
            message = f"{redacted(location)}: two slashes are missing after the colon"
            hint = server_line("use https://host/folder, file:///folder or a folder")
            raise UsageError(message, hint=hint)
        return FolderSource(Path(location))
    match scheme[1].lower():
        case "http" | "https":
            # Importing httpx takes half of a short command's time, and folders do not need it.
            from cudaredist.sources.http import HttpSource  # noqa: PLC0415

            return HttpSource(location, settings)
        case "file":
            machine, slash, path = location[scheme.end() :].partition("/")
            if machine not in {"", "localhost"} or not slash:
                message = f"{redacted(location)}: a file:// address cannot contain a host"
                raise UsageError(message, hint=server_line("use file:///folder or a folder"))
            return FolderSource(Path(os.path.normpath(unquote(slash + path))))
        case other:
            hint = server_line("use https://, file:// or a folder")
            raise UsageError(f"{other}:// addresses are not supported", hint=hint)


class SourceChain:
    """Sources in order of preference, tried until one answers."""

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise UsageError("no source given", hint="add --base-url with an address or folder")
        self._sources = tuple(sources)
        self._nvidia_channels = {source.name: NvidiaChannelLists(source) for source in sources}
        """The lists of releases on NVIDIA's second server, by the source's name."""
        self._failures_to_connect: Counter[str] = Counter()
        """Consecutive archives for which a source could not be connected to, by its name."""

    @property
    def has_server(self) -> bool:
        """Whether any source is a server, with resumable downloads."""
        return any(not isinstance(source, FolderSource) for source in self._sources)

    def listing(
        self,
        folders: Sequence[str],
        labels: Iterable[Version] = (),
        query: NvidiaChannelQuery | None = None,
    ) -> Listing:
        """Return the manifests of the first source that answers.

        The manifests of all `folders` are combined, with those of the NVIDIA channels in `query`.
        If that source lacks some of `labels`, later sources are searched for them, and for those
        that begin with one. Raises `NotAtSourceError` if every source answered that it has none of
        the folders, otherwise the most severe other error.
        """
        errors: list[CudaRedistError] = []
        whole: Listing | None = None
        missing = set(labels)
        for source in self._sources:
            if whole is not None and not missing:
                break
            try:
                listing = self._listing_of(source, folders, query)
            except (SourceError, ContentError) as error:
                _log.info("%s did not answer: %s", source.name, error)
                errors.append(error)
                continue
            labels_there = set(listing.labels)
            if whole is None:
                whole = listing
            else:
                added = {label for label in labels_there if any(map(label.begins_with, missing))}
                whole = _combined(whole, listing, added)
            missing -= labels_there
        if whole is None:
            raise most_severe(errors)
        failures = (*errors, *whole.failures)
        is_complete = all(isinstance(error, NotAtSourceError) for error in failures)
        return whole._replace(is_complete=is_complete)

    def _listing_of(
        self, source: Source, folders: Sequence[str], query: NvidiaChannelQuery | None
    ) -> Listing:
        """List the folders and NVIDIA channels of one source."""
        errors: list[CudaRedistError] = []
        listing = Listing(source.name, {}, {}, is_complete=True)
        try:
            listing.folders.update(_folders_by_label(source, folders))
        except (NotAtSourceError, EmptyIndexError) as error:
            errors.append(error)
        if query is not None:
            try:
                listing = self._with_nvidia_channels(source, listing, query)
            except (SourceError, ContentError) as error:
                _log.info("%s did not list channels: %s", source.name, error)
                listing = listing._replace(failures=(error,))
        if not listing.labels and not listing.nvidia_channels:
            raise most_severe([*errors, *listing.failures])
        return listing._replace(sources=dict.fromkeys(listing.labels, source.name))

    def _with_nvidia_channels(
        self, source: Source, listing: Listing, query: NvidiaChannelQuery
    ) -> Listing:
        """Add the releases of NVIDIA channels.

        A source without `releases.json` has a folder with early-access releases instead.
        """
        listed = self._nvidia_channels[source.name].releases(query)
        if listed is not None:
            releases = selected_releases(listed.releases, query)
            previews = {
                label for label, entry in releases.items() if entry.nvidia_channel == PREVIEW
            }
            return listing._replace(
                releases=releases,
                nvidia_channels=labels_by_nvidia_channel(listed.releases),
                previews=frozenset(previews - listing.folders.keys()),
                failures=() if listed.error is None else (listed.error,),
            )
        folders: dict[Version, str] = {}
        if PREVIEW in query.nvidia_channels:
            with contextlib.suppress(NotAtSourceError, EmptyIndexError):
                folders = _folders_by_label(source, [query.preview_folder])
        added = frozenset(folders.keys() - listing.folders.keys())
        return listing._replace(folders=folders | listing.folders, previews=added)

    def read(
        self,
        path: str,
        limit: int,
        *,
        first: str | None = None,
        etag: Callable[[str], str | None] | None = None,
        inspect: Callable[[bytes], None] | None = None,
    ) -> tuple[str, Delivery]:
        """Return a file's address and bytes from the first good source.

        `first` is the name of the source to try first, usually the one that listed the file. `etag`
        returns the known ETag of an address. `inspect` may raise `ContentError` for invalid bytes.
        The next source is then tried, as for any other failure.
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
        use: Callable[[SourceFile], _Answer],
        *,
        size: int | None = None,
    ) -> _Answer:
        """Pass a large file to `use` from the first good source.

        If `use` raises a `CudaRedistError`, for example about a wrong hash, the next source is
        tried. At each source, `paths` are tried in order. If all fail, the most severe error is
        raised.
        """

        def deliver(source: Source, path: str) -> _Answer:
            if self._failures_to_connect[source.name] >= _MAX_FAILURES:
                reason = f"skipped after {_MAX_FAILURES} consecutive failures"
                raise SourceError(source.name, reason)
            is_reached = True
            try:
                stream = partial(source.stream, path, size=size)
                place = source.place_of(path)
                part = source.part_reader(path)
                return use(SourceFile(place, stream, source.local_path(path), part))
            except UnreachedError:
                is_reached = False
                raise
            finally:
                if is_reached:
                    self._failures_to_connect[source.name] = 0
                else:
                    self._failures_to_connect[source.name] += 1

        return _first_answer(
            [partial(deliver, source, path) for source in self._sources for path in paths]
        )

    def sizes(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the sizes of files that any source lists.

        If a source fails, its sizes are missing.
        """
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


def _combined(whole: Listing, other: Listing, added: Collection[Version]) -> Listing:
    """Add some labels of another source to a listing."""
    return whole._replace(
        folders={**whole.folders, **_only(added, other.folders)},
        sources={**whole.sources, **_only(added, other.sources)},
        releases={**whole.releases, **_only(added, other.releases)},
        previews=whole.previews | other.previews.intersection(added),
        failures=(*whole.failures, *other.failures),
    )


def _only(labels: Collection[Version], values: Mapping[Version, _Value]) -> dict[Version, _Value]:
    """Return the values of some labels."""
    return {label: value for label, value in values.items() if label in labels}


def _folders_by_label(source: Source, folders: Sequence[str]) -> dict[Version, str]:
    """Return the folder of each label at a source.

    Missing and empty folders are skipped.
    """
    folder_of: dict[Version, str] = {}
    failures: list[CudaRedistError] = []
    for folder in folders:
        try:
            labels = source.labels(folder)
        except (NotAtSourceError, EmptyIndexError) as error:
            failures.append(error)
            continue
        if len(labels) > _MANIFESTS_LIMIT:
            reason = f"lists {len(labels):,} manifests, more than the limit of {_MANIFESTS_LIMIT:,}"
            raise SourceError(source.place_of(folder), reason, hint="use another --base-url")
        for label in labels:
            folder_of.setdefault(label, folder)
    if not folder_of:
        raise most_severe(failures)
    return folder_of


def _first_answer(attempts: Iterable[Callable[[], _Answer]]) -> _Answer:
    """Return the result of the first successful attempt.

    If all fail, the most severe error is raised.
    """
    errors: list[CudaRedistError] = []
    for attempt in attempts:
        try:
            return attempt()
        except (SourceError, ContentError, IntegrityError) as error:
            _log.info("failed: %s", error)
            errors.append(error)
    if not errors:
        raise NotAtSourceError("an archive", "its path is outside the source")
    raise most_severe(errors)


def most_severe(errors: Sequence[CudaRedistError]) -> CudaRedistError:
    """Return the most severe error.

    A wrong hash is the most severe, an absence the least.
    """
    for error in errors:
        if isinstance(error, IntegrityError):
            return error
    for error in errors:
        if not isinstance(error, NotAtSourceError):
            return error
    return errors[0]
