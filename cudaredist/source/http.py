"""An HTTP(S) index as a source: with `watch`, the only place with httpx.

Retries what may pass, follows few redirects and none that weakens the connection, bounds the bytes
and the seconds of every answer, and never shows the credentials of an address. Proxies and
certificates come from the environment, as httpx reads them.
"""

import contextlib
import ipaddress
import logging
import ssl
import threading
import time
import zlib
from collections.abc import Iterator
from urllib.parse import quote

import httpx

from cudaredist import __version__
from cudaredist.errors import (
    CannotResumeError,
    CudaRedistError,
    EmptyIndexError,
    InsecureAddressError,
    SourceError,
    StoppedError,
    TooLargeError,
    TransientError,
    UsageError,
)
from cudaredist.primitives import Version
from cudaredist.source.http_deadline import Watch
from cudaredist.source.http_response import (
    LEAST,
    NO_ADDRESS,
    Download,
    client_error,
    content_range,
    status_error,
    strong_etag,
)
from cudaredist.source.http_retry import pause_after, retrying
from cudaredist.source.index import INDEX_LIMIT, is_whole, parse_index
from cudaredist.source.protocol import Delivery, Part, Settings, redacted

_log = logging.getLogger(__name__)

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK, _PARTIAL, _NOT_MODIFIED, _UNSATISFIABLE = 200, 206, 304, 416
_MOST_REDIRECTS = 5
_LAST_PORT = 65535
# httpx lets some errors of other libraries through, as those about host names.
_CLIENT_ERRORS = (httpx.TransportError, httpx.InvalidURL, ValueError, OverflowError)
_GZIP = 16 + zlib.MAX_WBITS


class HttpSource:
    """The folder that holds `compute/<redist>/redist/` on a server."""

    def __init__(
        self, address: str, settings: Settings, transport: httpx.BaseTransport | None = None
    ) -> None:
        try:
            url = httpx.URL(address)
            url.host.encode("idna")
        except (httpx.InvalidURL, ValueError) as error:
            raise UsageError(f"{redacted(address)}: not a usable address") from error
        if not url.host or url.query or url.fragment or not _has_usable_port(url):
            raise UsageError(
                f"{_shown(url)}: expected https://host/folder without '?' or '#'",
                hint="give the address of the folder itself",
            )
        if settings.offline:
            raise UsageError(
                f"{_shown(url)} needs the network, which --offline refuses",
                hint="give a folder instead, or leave --offline out",
            )
        self._auth = (url.username, url.password) if url.userinfo else None
        path = url.path if url.path.endswith("/") else f"{url.path}/"
        self._root = url.copy_with(username=None, password=None, path=path)
        self._address = str(self._root)
        self._settings = settings
        if not self._is_allowed(self._root):
            raise InsecureAddressError(self.name)
        self._transport = transport
        self._watch = Watch(settings.timeout)
        self._clients: list[httpx.Client] = []
        self._local = threading.local()
        self._mutex = threading.Lock()
        self._trusting: ssl.SSLContext | None = None
        try:
            self._client(self._root.scheme)
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
            raise UsageError(
                f"cannot prepare a connection: {type(error).__name__}",
                hint="look at SSL_CERT_FILE, SSL_CERT_DIR, HTTPS_PROXY, HTTP_PROXY and ALL_PROXY",
            ) from error

    @property
    def name(self) -> str:
        """The address without credentials."""
        return self._address

    def place_of(self, path: str) -> str:
        """Return the file's address without credentials."""
        return self._address + quote(path, safe="/+~@=,")

    def close(self) -> None:
        """Close all connections."""
        self._watch.close()
        for client in self._clients:
            client.close()

    def labels(self, folder: str) -> tuple[Version, ...]:
        """Return the labels that the folder's listing names, or else its `index.html`.

        Some servers list a folder at its own address, some only serve a page put there.
        """
        failure: CudaRedistError | None = None
        for name in ("", "index.html"):
            path = f"{folder}/{name}" if folder else name
            try:
                page = retrying(self._settings)(self._listing, path)
            except TransientError:
                raise
            except SourceError as error:
                failure = failure or error
            else:
                labels = parse_index(page, self.place_of(path))
                if labels:
                    return labels
                failure = EmptyIndexError(self.place_of(path))
        raise failure or EmptyIndexError(self.place_of(folder))

    def read(self, path: str, limit: int, etag: str | None = None) -> Delivery:
        """Return a file's bytes, or that `etag` still stands for it, trying as often as allowed."""
        return retrying(self._settings)(self._attempt, path, limit, etag)

    def part(self, path: str, start: int | None, length: int, etag: str | None = None) -> Part:
        """Return some bytes of a file by a range request, trying as often as allowed."""
        return retrying(self._settings)(self._part, self.place_of(path), start, length, etag)

    def _part(self, shown: str, start: int | None, length: int, etag: str | None) -> Part:
        asked = f"-{length}" if start is None else f"{start}-{start + length - 1}"
        headers = {"Range": f"bytes={asked}"}
        if etag is not None:
            headers["If-Range"] = etag
        with (
            self._translated(shown),
            self._watch.answer() as deadline,
            self._answered(shown, headers) as response,
        ):
            if response.status_code == _OK:
                raise SourceError(shown, "is served only as a whole, or changed meanwhile")
            if response.status_code != _PARTIAL:
                raise status_error(shown, response)
            first, last, total = content_range(shown, response)
            if total is None:
                raise SourceError(shown, "answered with a part of a file of unknown size")
            begin = max(0, total - length) if start is None else start
            if (first, last) != (begin, min(begin + length, total) - 1):
                raise SourceError(shown, "answered with another part than asked for")
            current = strong_etag(response.headers.get("ETag"))
            if etag is not None and current != etag:
                raise SourceError(shown, "changed meanwhile")
            data = self._body(response, shown, length, deadline)
            if len(data) != last - first + 1:
                raise TransientError(shown, "ended in the middle", hint="try again")
            return Part(data, first, total, current)

    def stream(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a file's bytes from `start` on, taking up a broken connection where it broke.

        Failures are counted anew once a good piece came, so that a long download survives many.
        """
        download = Download(self.place_of(path), start, size)
        failures, waited, reached = 0, 0.0, start
        while True:
            try:
                yield from self._from_there(download)
            except (CannotResumeError, StoppedError):
                raise
            except TransientError as error:
                if download.received - reached >= LEAST:
                    failures, waited, reached = 0, 0.0, download.received
                failures += 1
                pause = pause_after(error, failures)
                waited += pause
                if failures > self._settings.retries or waited > self._settings.longest_wait:
                    raise
                if not download.can_resume:
                    raise CannotResumeError(error.where, error.reason, hint=error.hint) from error
                _log.info("%s; going on at byte %d in %.1f s", error, download.received, pause)
                if self._settings.stop.wait(pause):
                    raise StoppedError from None
            else:
                return

    def _from_there(self, download: Download) -> Iterator[bytes]:
        """Ask for what is still missing of a download and yield it."""
        with contextlib.ExitStack() as stack:
            with self._translated(download.place), self._watch.answer():
                response = stack.enter_context(
                    self._answered(download.place, download.request_headers())
                )
                if response.status_code not in {_OK, _PARTIAL, _UNSATISFIABLE}:
                    raise status_error(download.place, response)
                download.accept(response)
            chunks = response.iter_raw()
            while True:
                # Only the waiting is bounded: the time between two chunks may be the reader's own.
                with self._translated(download.place), self._watch.answer() as deadline:
                    chunk = download.timed(chunks, self._settings.timeout)
                if chunk is None:
                    if time.monotonic() >= deadline:
                        raise self._silent(download.place)
                    break
                if self._settings.stop.is_set():
                    raise StoppedError
                yield chunk
        download.finish()

    def _silent(self, shown: str) -> TransientError:
        return TransientError(
            shown,
            f"nothing came for {self._settings.timeout:g} s",
            hint="try again, or raise --timeout",
        )

    @contextlib.contextmanager
    def _translated(self, shown: str) -> Iterator[None]:
        """Turn whatever the client raises into one of our errors."""
        try:
            yield
        except httpx.TimeoutException as error:
            raise self._silent(shown) from error
        except (*_CLIENT_ERRORS, OSError) as error:
            raise client_error(shown, error) from error

    def _client(self, scheme: str) -> httpx.Client:
        """Return this thread's client for a scheme.

        One client for all threads would look through all connections before and after each
        request, which for small files costs more than the request itself.
        """
        client: httpx.Client | None = getattr(self._local, scheme, None)
        if client is None:
            client = httpx.Client(
                headers={"User-Agent": f"cudaredist/{__version__}", "Accept-Encoding": "identity"},
                timeout=self._settings.timeout,
                transport=self._transport,
                verify=self._tls(scheme),
            )
            setattr(self._local, scheme, client)
            self._clients.append(client)
        return client

    def _tls(self, scheme: str) -> ssl.SSLContext:
        """Return what connections are verified with; reading all authorities takes a while.

        A client for http gets a context that trusts nobody, so that it could not be used for https.
        """
        with self._mutex:
            if scheme != "https":
                return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if self._trusting is None:
                self._trusting = httpx.create_ssl_context()
            return self._trusting

    def _is_allowed(self, url: httpx.URL) -> bool:
        if url.scheme == "https":
            return True
        return url.scheme == "http" and (self._settings.allow_http or _is_loopback(url.host))

    def _attempt(self, path: str, limit: int, etag: str | None) -> Delivery:
        """Ask once; every way to fail ends in one of our errors."""
        shown = self.place_of(path)
        with self._watch.answer() as deadline:
            try:
                return self._asked(shown, limit, deadline, etag)
            except (*_CLIENT_ERRORS, OSError) as error:
                if isinstance(error, httpx.TimeoutException) or time.monotonic() >= deadline:
                    raise self._too_slow(shown) from error
                raise client_error(shown, error) from error

    def _listing(self, path: str) -> bytes:
        """Ask once for a listing; one that was cut must not make releases look gone.

        An empty page is no listing: object stores have empty objects in place of folders.
        """
        page = self._attempt(path, INDEX_LIMIT, None).data or b""
        if page and not is_whole(page):
            raise TransientError(
                self.place_of(path),
                "the listing has no end (</html>), so it may lack manifests",
                hint="try again later, or use another --base-url",
            )
        return page

    def _asked(self, shown: str, limit: int, deadline: float, etag: str | None) -> Delivery:
        """Send the request, read the answer."""
        headers = {} if etag is None else {"If-None-Match": etag}
        with self._answered(shown, headers) as response:
            return self._delivery(response, shown, limit, deadline, etag)

    @contextlib.contextmanager
    def _answered(self, shown: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """Send the request and follow redirects, to the answer that is none; its body is unread."""
        url = httpx.URL(shown)
        for _ in range(_MOST_REDIRECTS + 1):
            if self._settings.stop.is_set():
                raise StoppedError
            request = self._client(url.scheme).build_request(
                "GET", url, headers=headers, extensions={"trace": self._watch.note}
            )
            is_own = (url.scheme, url.host, url.port) == self._origin
            auth = self._auth if is_own else None
            response = self._client(url.scheme).send(request, stream=True, auth=auth)
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("GET %s: %d", _shown(url), response.status_code)
            try:
                if response.status_code not in _REDIRECTS:
                    yield response
                    return
                url = self._redirected(url, response.headers.get("Location"), shown)
            finally:
                response.close()
        raise SourceError(shown, f"redirected more than {_MOST_REDIRECTS} times")

    def _too_slow(self, shown: str) -> TransientError:
        reason = f"not complete within {self._settings.timeout:g} s"
        return TransientError(shown, reason, hint="try again, or raise --timeout")

    @property
    def _origin(self) -> tuple[str, str, int | None]:
        return self._root.scheme, self._root.host, self._root.port

    def _redirected(self, url: httpx.URL, location: str | None, shown: str) -> httpx.URL:
        if not location:
            raise SourceError(shown, "redirected without saying where to")
        target = url.join(location)
        if (url.scheme == "https" and target.scheme != "https") or not self._is_allowed(target):
            raise SourceError(
                shown,
                f"redirected to {_shown(target)}, which is not encrypted",
                hint="redirects stay on https; give the final address with --base-url",
            )
        if not target.host or not _has_usable_port(target):
            raise SourceError(shown, NO_ADDRESS)
        _log.debug("%s redirects to %s", shown, _shown(target))
        return target.copy_with(username=None, password=None)

    def _delivery(
        self,
        response: httpx.Response,
        shown: str,
        limit: int,
        deadline: float,
        etag: str | None,
    ) -> Delivery:
        status = response.status_code
        if status == _NOT_MODIFIED and etag:
            return Delivery(self.name, None)
        if status != _OK:
            raise status_error(shown, response)
        data = self._body(response, shown, limit, deadline)
        return Delivery(self.name, data, strong_etag(response.headers.get("ETag")))

    def _body(self, response: httpx.Response, shown: str, limit: int, deadline: float) -> bytes:
        """Read the whole body, never more than `limit` bytes of it, encoded or not."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        length = response.headers.get("Content-Length", "")
        if encoding not in {"identity", "", "gzip", "x-gzip"}:
            raise SourceError(shown, "sent in an encoding that was not asked for")
        inflate = None if encoding in {"identity", ""} else zlib.decompressobj(_GZIP)
        if inflate is None and length.isascii() and length.isdigit() and int(length[:18]) > limit:
            raise TooLargeError(shown, limit)
        body = bytearray()
        for chunk in response.iter_raw():
            if self._settings.stop.is_set():
                raise StoppedError
            if time.monotonic() >= deadline:
                raise self._too_slow(shown)
            body += chunk if inflate is None else _inflated(inflate, chunk, limit, body, shown)
            if len(body) > limit:
                raise TooLargeError(shown, limit)
            if inflate is not None and inflate.unused_data:
                raise SourceError(shown, "sent as gzip with something else behind")
        # A connection that the watch ended looks like the end of an answer without a length.
        if time.monotonic() >= deadline:
            raise self._too_slow(shown)
        if inflate is not None and not inflate.eof:
            raise TransientError(shown, "ended in the middle")
        return bytes(body)


def _inflated(
    inflate: "zlib._Decompress", chunk: bytes, limit: int, body: bytearray, shown: str
) -> bytes:
    try:
        return inflate.decompress(chunk, limit + 1 - len(body))
    except zlib.error as error:
        raise SourceError(shown, "sent as gzip, and is not") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _has_usable_port(url: httpx.URL) -> bool:
    return url.port is None or 0 < url.port <= _LAST_PORT


def _shown(url: httpx.URL) -> str:
    """Return an address for people: no credentials, no query (it may hold a token)."""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None))
