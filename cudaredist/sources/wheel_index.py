"""Wheels and their metadata in the package indexes of pip's configuration.

Every index and folder is read once in a run. If one does not answer, that is an error and not an
absence, unless it denies access to a project that another index has.
"""

import contextlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from email.parser import HeaderParser
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import httpx

from cudaredist.archives.wheel_metadata import METADATA_LIMIT, metadata_in
from cudaredist.errors import (
    InvalidArchiveError,
    NotAtSourceError,
    RefusedError,
    SourceError,
    TransientError,
    UsageError,
)
from cudaredist.hints import redacted
from cudaredist.primitives import Sha256, sha256_of, sha256_of_file
from cudaredist.sources.credentials import Credentials
from cudaredist.sources.folder import FolderSource, reading
from cudaredist.sources.http_client import HttpAnswer, HttpClient, shown_address
from cudaredist.sources.index import INDEX_LIMIT
from cudaredist.sources.index_page import ACCEPT, LINKS_LIMIT, read_page
from cudaredist.sources.pip_config import read_pip_config
from cudaredist.sources.protocol import Part, Settings, SourceFile, check_locations
from cudaredist.sources.ranged_file import RangedFile
from cudaredist.sources.whole_file import open_whole
from cudaredist.wheels import Metadata, Wheel, parse_wheel

_log = logging.getLogger(__name__)

INDEX = "the package index"

_AT_ONCE = 16
_REQUIREMENTS_LIMIT = 1000
_LICENSE_LIMIT = 100
_HINT = "check `pip config list` and the credentials of the index, or try again"
_begins_with_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:").match


LocalMetadata: TypeAlias = Callable[[Wheel], bytes | None]
"""Finds the metadata of a wheel on this machine."""


class _Contents(NamedTuple):
    """The hash of a whole wheel, and its METADATA."""

    sha256: Sha256
    metadata: bytes


class WheelIndex:
    """All indexes and folders of pip's configuration, read in parallel."""

    def __init__(self, settings: Settings, local_metadata: LocalMetadata = lambda _: None) -> None:
        self._local_metadata = local_metadata
        config = read_pip_config()
        places = dict.fromkeys((*config.find_links, *config.indexes))
        check_locations([*places])
        remote = {address: _url(address) for address in places if _path(address) is None}
        skipped = remote if settings.offline else {}
        self._places = [address for address in places if address not in skipped]
        self._indexes = frozenset(config.indexes)
        if config.timeout is not None and settings.timeout == Settings().timeout:
            settings = replace(settings, timeout=config.timeout)
        credentials = Credentials(remote.values(), config.keyring)
        self._client = HttpClient(settings, config.access._replace(credentials=credentials.find))
        for url in remote.values():
            self._client.prepare(url)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="index")
        self._mutex = threading.Lock()
        self._parsing = threading.Lock()
        """Only one page is parsed at a time, to limit the memory."""
        self._listed = 0
        self._tasks: dict[object, Future[Any]] = {}

    def close(self) -> None:
        """End connections and threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def wheels(self, projects: Sequence[str]) -> dict[str, list[Wheel]]:
        """Return the wheels of projects for supported platforms, including yanked ones.

        If several places have a file of the same name, the first place wins: folders, then indexes.
        """
        pages: dict[str, list[Future[list[Wheel]]]] = {}
        for project in projects:
            pages[project] = []
            for place in self._places:
                # A place of pip's `find-links` lists the wheels of all projects at once.
                page_of = project if place in self._indexes else None
                pages[project].append(self._once(self._page, place, page_of))
        return {project: _merged(project, of_project) for project, of_project in pages.items()}

    def verified(self, wheels: Sequence[Wheel]) -> list[Wheel]:
        """Return wheels with their hashes.

        A wheel is read if no index states its hash.
        """
        contents = {
            wheel: self._once(self._contents, wheel) for wheel in wheels if not wheel.sha256
        }
        return [
            wheel._replace(sha256=contents[wheel].result().sha256) if wheel in contents else wheel
            for wheel in wheels
        ]

    def sizes(self, wheels: Sequence[Wheel]) -> list[int | None]:
        """Return the sizes of wheels, None if unknown."""
        futures = [self._once(self._size, wheel) for wheel in wheels]
        return [future.result() for future in futures]

    def metadata(self, wheels: Sequence[Wheel]) -> list[Metadata]:
        """Return the metadata of wheels, avoiding complete downloads."""
        futures = [self._once(self._metadata, wheel) for wheel in wheels]
        return [future.result() for future in futures]

    def stream(self, wheel: Wheel, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a wheel's bytes."""
        source, path = self._at(wheel)
        return source.stream(path, start, size)

    def local_path(self, wheel: Wheel) -> Path | None:
        """Return the path of a wheel in a local folder, None for other wheels."""
        return _path(wheel.url)

    def part(self, wheel: Wheel, start: int | None, length: int, etag: str | None = None) -> Part:
        """Return some bytes of a wheel."""
        source, path = self._at(wheel)
        return source.part(path, start, length, etag)

    def _at(self, wheel: Wheel) -> tuple[HttpClient | FolderSource, str]:
        path = _path(wheel.url)
        return (self._client, wheel.url) if path is None else (FolderSource(path.parent), path.name)

    def _once(self, work: Callable[..., Any], *arguments: object) -> "Future[Any]":
        """Start a task unless it is known, and return its future.

        No task may wait for another one.
        """
        with self._mutex:
            key = (work.__name__, *arguments)
            if key not in self._tasks:
                self._tasks[key] = self._pool.submit(work, *arguments)
            return self._tasks[key]

    def _page(self, place: str, project: str | None) -> list[Wheel]:
        """Return the wheels of an index's project or a folder."""
        path = _path(place)
        if path is not None:
            if project is not None and not os.path.lexists(path):
                # The folder may not be mounted. That does not mean that its wheels were removed.
                hint = "mount it, or change `pip config`"
                raise SourceError(redacted(place), "no such folder", hint=hint)
            return _in_folder(path if project is None else path / project / "index.html")
        address = place if project is None else f"{place.rstrip('/')}/{project}/"
        shown = shown_address(address)

        def wheels(answer: HttpAnswer) -> list[Wheel]:
            kind = answer.headers.get("Content-Type", "")
            with self._parsing:
                listed = read_page(answer.data or b"", kind, answer.url, shown)
                self._listed += len(listed)
            if self._listed > LINKS_LIMIT:
                raise SourceError(shown, f"the pages list more than {LINKS_LIMIT:,} wheels")
            # A page on a server must not select files of this machine.
            return [wheel for wheel in listed if _path(wheel.url) is None]

        return self._client.read(address, INDEX_LIMIT, use=wheels, headers={"Accept": ACCEPT})

    # -- single wheels

    def _size(self, wheel: Wheel) -> int | None:
        if wheel.size is None:
            with contextlib.suppress(SourceError):
                return self.part(wheel, None, 1).total
        return wheel.size

    def _metadata(self, wheel: Wheel) -> Metadata:
        """Return a wheel's metadata.

        It is local, or from the file next to the wheel, its end, or the whole wheel.
        """
        data = self._local_metadata(wheel)
        for read in (self._metadata_file, self._metadata_at_end):
            try:
                data = data or read(wheel)
            except (TransientError, RefusedError):
                raise
            except SourceError as error:
                _log.debug("%s: %s", wheel.file_name, error)
        text = (data or self._contents(wheel).metadata).decode("utf-8", "replace")
        # The parser of `packaging` takes quadratic time for many different headers.
        headers = HeaderParser().parsestr(text)
        requires = tuple(headers.get_all("Requires-Dist", ()))
        if len(requires) > _REQUIREMENTS_LIMIT:
            reason = f"its METADATA has more than {_REQUIREMENTS_LIMIT:,} requirements"
            raise InvalidArchiveError(wheel.file_name, reason)
        texts = (str(headers.get(name, "")) for name in ("License-Expression", "License"))
        lines = (line.strip() for text in texts for line in text.splitlines())
        return Metadata(
            summary=(headers.get("Summary") or wheel.project).strip(),
            # Some texts begin with a line of asterisks.
            license=next((line for line in lines if line.strip("*")), "unknown")[:_LICENSE_LIMIT],
            requires=requires,
        )

    def _metadata_at_end(self, wheel: Wheel) -> bytes:
        return metadata_in(RangedFile(partial(self.part, wheel)), wheel.file_name)

    def _metadata_file(self, wheel: Wheel) -> bytes | None:
        if wheel.metadata_sha256 is None:
            return None
        path, mark, query = wheel.url.partition("?")
        address = f"{path}.metadata{mark}{query}"

        def verified(answer: HttpAnswer) -> bytes:
            data = answer.data or b""
            if wheel.metadata_sha256 and wheel.metadata_sha256 != sha256_of(data):
                reason = "its hash differs from the hash in the index"
                raise TransientError(shown_address(address), reason)
            return data

        return self._client.read(address, METADATA_LIMIT, use=verified)

    def _contents(self, wheel: Wheel) -> _Contents:
        """Fetch a whole wheel, and return its hash and metadata."""
        stream = partial(self.stream, wheel)
        source = SourceFile(shown_address(wheel.url), stream, _path(wheel.url))
        with open_whole(source, folder=None) as file:
            sha256 = sha256_of_file(file)
            return _Contents(sha256, metadata_in(file, wheel.file_name))


def _url(address: str) -> httpx.URL:
    with contextlib.suppress(httpx.InvalidURL, ValueError):
        url = httpx.URL(address)
        if url.scheme in {"http", "https"} and url.host:
            return url
    message = f"pip's configuration contains {redacted(address)}, which is not a valid address"
    raise UsageError(message, hint="find the file with `pip config debug`")


def _path(address: str) -> Path | None:
    """Return a local address's path, None for a server's address."""
    if address.startswith("file:"):
        return Path(url2pathname(unquote(urlsplit(address).path)))
    try:
        return None if _begins_with_scheme(address) else Path(address).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"pip's configuration contains {redacted(address)}, but this user has no home folder",
            hint="write the whole path, or set HOME",
        ) from error


def _merged(project: str, pages: Sequence["Future[list[Wheel]]"]) -> list[Wheel]:
    """Return the wheels of a project on all pages.

    An index that denies access is an error only if no other page has wheels of the project.
    """
    wheels: dict[str, Wheel] = {}
    refusal: RefusedError | None = None
    for page in pages:
        try:
            for wheel in page.result():
                if wheel.project == project:
                    wheels.setdefault(wheel.file_name, wheel)
        except NotAtSourceError:
            continue
        except RefusedError as error:
            refusal = error
        except SourceError as error:
            raise _no_answer(project, error) from error
    if refusal is not None and not wheels:
        raise _no_answer(project, refusal)
    return list(wheels.values())


def _no_answer(project: str, error: SourceError) -> TransientError:
    return TransientError(INDEX, f"no answer for {project}: {error}", hint=_HINT)


def _in_folder(path: Path) -> list[Wheel]:
    """Return the wheels of a local folder, page or wheel file."""
    wheels: list[Wheel] = []
    with reading(path, "no such file or folder"):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            address = file.absolute().as_uri()
            if file.suffix in {".html", ".htm"}:
                page = FolderSource(file.parent).read(file.name, INDEX_LIMIT).data or b""
                # A folder may also contain other pages.
                if file == path or b".whl" in page:
                    wheels += read_page(page, "text/html", address, str(file))
            elif wheel := parse_wheel(file.name, address):
                wheels.append(wheel._replace(size=file.stat().st_size))
    return wheels
