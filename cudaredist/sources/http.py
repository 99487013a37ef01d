"""A folder on an HTTP(S) server as a source."""

from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

import httpx

from cudaredist.errors import (
    CudaRedistError,
    EmptyIndexError,
    InsecureAddressError,
    SourceError,
    TransientError,
    UsageError,
)
from cudaredist.hints import again, redacted
from cudaredist.primitives import Version
from cudaredist.redists import NVIDIA_BASE, NVIDIA_PREVIEWS
from cudaredist.sources.http_client import (
    Access,
    HttpAnswer,
    HttpClient,
    has_usable_port,
    origin_of,
)
from cudaredist.sources.http_response import strong_etag
from cudaredist.sources.index import INDEX_LIMIT, is_whole, parse_index
from cudaredist.sources.protocol import Delivery, Settings, Source


class HttpSource(Source):
    """A folder on a server that contains `compute/<redist>/redist/`."""

    def __init__(self, address: str, settings: Settings) -> None:
        try:
            url = httpx.URL(address)
            url.host.encode("idna")
        except (httpx.InvalidURL, ValueError) as error:
            raise UsageError(f"{redacted(address)}: not a usable address") from error
        auth = (url.username, url.password) if url.userinfo else None
        path = url.path if url.path.endswith("/") else f"{url.path}/"
        is_folder = bool(url.host) and not url.query and not url.fragment
        root = url.copy_with(username=None, password=None, query=None, fragment=None)
        if not is_folder or not has_usable_port(url):
            message = f"{root}: expected https://host/folder without '?' or '#'"
            raise UsageError(message, hint="use the address of the folder itself")
        if settings.offline:
            message = f"{root} requires the network and cannot be combined with --offline"
            hint = f"use a folder, as in --base-url FOLDER, or run `{again(without=['--offline'])}`"
            raise UsageError(message, hint=hint)
        root = root.copy_with(path=path)
        self.name = str(root)
        origin = origin_of(root)

        def credentials(url: httpx.URL, is_refused: bool) -> tuple[str, str] | None:  # noqa: FBT001 - the client's callback
            return auth if origin_of(url) == origin and not is_refused else None

        self._client = HttpClient(settings, Access(credentials=credentials))
        if not self._client.is_allowed(root):
            raise InsecureAddressError(self.name)
        self._client.prepare(root)

    def place_of(self, path: str) -> str:
        """Return the file's address without credentials."""
        # NVIDIA has early-access releases on another server.
        is_preview = self.name == f"{NVIDIA_BASE}/" and path.startswith(("release/", "pool/"))
        root = f"{NVIDIA_PREVIEWS}/" if is_preview else self.name
        return root + quote(path, safe="/+~@=,")

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return the labels in the folder's listing, or in its `index.html`.

        Some servers list a folder at its own address, others only serve a stored page.
        """
        failure: CudaRedistError | None = None
        for name in ("", "index.html"):
            place = self.place_of(f"{folder}/{name}" if folder else name)
            try:
                page = self._client.read(place, INDEX_LIMIT, use=partial(_whole_listing, place))
            except TransientError:
                raise
            except SourceError as error:
                failure = failure or error
            else:
                labels = parse_index(page, place)
                if labels:
                    return labels
                failure = EmptyIndexError(place)
        raise failure or EmptyIndexError(self.place_of(folder))

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:
        """Return a file, without its bytes if `etag` is valid.

        Transient failures are retried.
        """

        def delivery(answer: HttpAnswer) -> Delivery:
            current = strong_etag(answer.headers.get("ETag"))
            return Delivery(self.name, answer.data, None if answer.data is None else current)

        headers = {} if etag is None else {"If-None-Match": etag}
        return self._client.read(self.place_of(path), limit, use=delivery, headers=headers)

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a file's bytes, and resume after a broken connection."""
        return self._client.stream(self.place_of(path), start, size)


def _whole_listing(place: str, answer: HttpAnswer) -> bytes:
    """Return a listing, or raise `TransientError` if it is truncated.

    A truncated listing would make existing releases look removed. An empty page is returned as it
    is: object stores have empty objects in place of folders.
    """
    page = answer.data or b""
    if page and not is_whole(page):
        reason = "the listing has no end (</html>), so manifests may be missing"
        raise TransientError(place, reason, hint="try again later, or use another --base-url")
    return page
