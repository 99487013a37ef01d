"""HTTP(S) client with retries and limits of redirects, bytes and seconds.

Proxies and certificates come from `Access`, otherwise from the environment as httpx reads it. A
redirect from https to http is refused. Messages never contain credentials.
"""

import contextlib
import ipaddress
import logging
import math
import os
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import httpx

from cudaredist import __version__
from cudaredist.errors import (
    CannotResumeError,
    SourceError,
    TooLargeError,
    TransientError,
    UsageError,
)
from cudaredist.sources.http_deadline import Watch
from cudaredist.sources.http_response import (
    INVALID_REDIRECT,
    LEAST,
    NO_RANGES,
    Download,
    check_encoding,
    client_error,
    content_range,
    stated_length,
    status_error,
    strong_etag,
)
from cudaredist.sources.http_retry import Attempts, retrying
from cudaredist.sources.protocol import Part, Settings, without_credentials
from cudaredist.tasks import raise_if_stopped

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK, _PARTIAL, _NOT_MODIFIED, _UNAUTHORIZED, _UNSATISFIABLE = 200, 206, 304, 401, 416
_MOST_REDIRECTS = 5
_LAST_PORT = 65535
# httpx passes some errors of other libraries on, for example about host names.
_CLIENT_ERRORS = (httpx.TransportError, httpx.InvalidURL, ValueError, OverflowError)
_HTTP_HINT = "use https, or --allow-http if you trust every machine on the way"
_GZIP = 16 + zlib.MAX_WBITS


class HttpAnswer(NamedTuple):
    """A complete answer."""

    url: str
    """The address that answered, after redirects."""
    headers: Mapping[str, str]
    data: bytes | None
    """The body. None if the file still has the ETag of the request."""


class Access(NamedTuple):
    """Credentials, certificates and proxy of a client's connections."""

    credentials: Callable[[httpx.URL, bool], tuple[str, str] | None] = lambda *_: None
    """Return user and password for an address. The flag is set after the server refused others."""
    trusted_hosts: frozenset[str] = frozenset()
    """Hosts, or host:port, that need neither encryption nor a certificate."""
    cert: str | None = None
    """A file or folder of certificate authorities."""
    client_cert: str | None = None
    proxy: str | None = None


class HttpClient:
    """Thread-safe client that reads whole files, parts and streams."""

    def __init__(self, settings: Settings, access: Access) -> None:
        self._settings = settings
        self._access = access
        self._watch = Watch(settings.timeout)
        self._clients: dict[tuple[int, str], httpx.Client] = {}
        """A client for each thread and kind of connection."""
        self._mutex = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext] = {}

    def close(self) -> None:
        """Close all connections."""
        self._watch.close()
        for client in list(self._clients.values()):
            client.close()

    def is_allowed(self, url: httpx.URL) -> bool:
        """Return whether an address is encrypted or exempt from encryption."""
        if url.scheme == "https":
            return True
        is_exempt = self._settings.allow_http or _is_loopback(url.host) or self._is_trusted(url)
        return url.scheme == "http" and is_exempt

    def _is_trusted(self, url: httpx.URL) -> bool:
        trusted = self._access.trusted_hosts
        return bool(trusted) and not trusted.isdisjoint({url.host, url.netloc.decode("ascii")})

    def read(
        self,
        address: str,
        limit: int,
        *,
        use: Callable[[HttpAnswer], _Result],
        headers: Mapping[str, str] | None = None,
    ) -> _Result:
        """Return the result of `use` for a file of at most `limit` bytes.

        After a `TransientError` of the request or of `use`, both are retried.
        """
        attempt = partial(self._attempt, address, limit, dict(headers or {}))
        return retrying(self._settings, lambda: use(attempt()))

    def part(self, address: str, start: int | None, length: int, etag: str | None = None) -> Part:
        """Return some bytes of a file by a range request, with retries."""
        return retrying(self._settings, partial(self._part, address, start, length, etag))

    def _part(self, address: str, start: int | None, length: int, etag: str | None) -> Part:
        shown = shown_address(address)
        requested = f"-{length}" if start is None else f"{start}-{start + length - 1}"
        headers = {"Range": f"bytes={requested}"}
        if etag is not None:
            headers["If-Range"] = etag
        with self._answer(address, headers) as (response, deadline):
            if response.status_code == _OK:
                raise SourceError(shown, NO_RANGES)
            if response.status_code != _PARTIAL:
                raise status_error(shown, response)
            first, last, total = content_range(shown, response)
            if total is None:
                raise SourceError(shown, "the server sent a part without the size of the file")
            begin = max(0, total - length) if start is None else start
            if (first, last) != (begin, min(begin + length, total) - 1):
                raise SourceError(shown, "the server sent another part than requested")
            current = strong_etag(response.headers.get("ETag"))
            if etag is not None and current != etag:
                raise SourceError(shown, "the file changed during the download")
            data = self._body(response, shown, length, deadline)
            if len(data) != last - first + 1:
                raise TransientError(shown, "the answer ended early", hint="try again")
            return Part(data, first, total, current)

    def stream(self, address: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a file's bytes, and resume after a broken connection.

        When enough bytes have arrived since the last failure, the count of failures starts again,
        so that a long download survives many of them.
        """
        download = Download(shown_address(address), start, size)
        attempts, reached = Attempts(self._settings), start
        while True:
            try:
                yield from self._remaining(address, download)
            except CannotResumeError:
                raise
            except TransientError as error:
                if download.received - reached >= LEAST:
                    attempts, reached = Attempts(self._settings), download.received
                attempts.count(error)
                if not download.can_resume:
                    raise CannotResumeError(error.where, error.reason, hint=error.hint) from error
            else:
                return
            attempts.wait()

    def _remaining(self, address: str, download: Download) -> Iterator[bytes]:
        """Request the remaining bytes of a download and yield them."""
        with self._translated(download.place, self._silent), contextlib.ExitStack() as stack:
            with self._watch.answer():
                response = stack.enter_context(self._answered(address, download.request_headers()))
                if response.status_code not in {_OK, _PARTIAL, _UNSATISFIABLE}:
                    raise status_error(download.place, response)
                download.accept(response)
            chunks = response.iter_raw()
            while True:
                # Only the wait is limited: the caller may take longer between two chunks.
                deadline = self._watch.begin()
                try:
                    chunk = download.timed(chunks, self._settings.timeout)
                finally:
                    self._watch.end()
                if chunk is None:
                    if time.monotonic() >= deadline:
                        raise self._silent(download.place)
                    break
                raise_if_stopped(self._settings.stop)
                yield chunk
        download.finish()

    def _silent(self, shown: str) -> TransientError:
        reason = f"no data received for {self._settings.timeout:g} s"
        return TransientError(shown, reason, hint="try again, or increase --timeout")

    @contextlib.contextmanager
    def _translated(
        self, shown: str, late: Callable[[str], TransientError], deadline: float = math.inf
    ) -> Iterator[None]:
        """Translate errors of httpx and the system into a `SourceError`.

        `late` makes the error for a timeout, or for any failure after the deadline.
        """
        try:
            yield
        except (*_CLIENT_ERRORS, OSError) as error:
            if isinstance(error, httpx.TimeoutException) or time.monotonic() >= deadline:
                raise late(shown) from error
            raise client_error(shown, error) from error

    def prepare(self, url: httpx.URL) -> None:
        """Create this thread's client for an address, or raise `UsageError`."""
        try:
            self._client(url)
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
            raise UsageError(
                f"cannot prepare a connection: {type(error).__name__}",
                hint="check SSL_CERT_FILE, SSL_CERT_DIR, HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, "
                "and `pip config list` for wheels",
            ) from error

    def _client(self, url: httpx.URL) -> httpx.Client:
        """Return this thread's client for an address.

        A client that all threads share would search all connections before and after each request.
        For small files, that takes longer than the request itself.
        """
        kind = "trusted" if self._is_trusted(url) else url.scheme
        key = threading.get_ident(), kind
        if key not in self._clients:
            self._clients[key] = httpx.Client(
                headers={"User-Agent": f"cudaredist/{__version__}", "Accept-Encoding": "identity"},
                timeout=self._settings.timeout,
                verify=self._tls(kind),
                proxy=self._access.proxy,
            )
        return self._clients[key]

    def _tls(self, kind: str) -> ssl.SSLContext:
        """Return the cached TLS context for a kind of connection.

        Reading all certificate authorities is slow.
        """
        with self._mutex:
            if kind not in self._contexts:
                self._contexts[kind] = self._new_context(kind)
            return self._contexts[kind]

    def _new_context(self, kind: str) -> ssl.SSLContext:
        cert = self._access.cert
        for file in (os.environ.get("SSL_CERT_FILE"), cert, self._access.client_cert):
            path = Path(file or ".")
            # The TLS library would wait forever for the other end of a pipe.
            if path.exists() and not path.is_file() and not path.is_dir():
                hint = (
                    "use a file with the certificates: set SSL_CERT_FILE, or run `pip config list`"
                )
                raise UsageError(f"certificates: {path} is not a regular file", hint=hint)
        if kind == "http":
            # It trusts no authority, so that it cannot be used for https.
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if kind == "trusted":
            context = httpx.create_ssl_context(verify=False)
        elif cert is not None:
            is_folder = Path(cert).is_dir()
            files, folders = (None, cert) if is_folder else (cert, None)
            context = ssl.create_default_context(cafile=files, capath=folders)
        else:
            context = httpx.create_ssl_context()
            if not os.environ.keys() & {"SSL_CERT_FILE", "SSL_CERT_DIR"}:
                # A company's authorities are often only in the system's store. pip uses that too.
                context.load_default_certs()
        if self._access.client_cert is not None:
            context.load_cert_chain(self._access.client_cert)
        return context

    def _attempt(self, address: str, limit: int, headers: dict[str, str]) -> HttpAnswer:
        """Send a request once and read the answer."""
        shown = shown_address(address)
        with self._answer(address, headers) as (response, deadline):
            url = str(response.url)
            if response.status_code == _NOT_MODIFIED and "If-None-Match" in headers:
                return HttpAnswer(url, response.headers, None)
            if response.status_code != _OK:
                raise status_error(shown, response)
            data = self._body(response, shown, limit, deadline)
            return HttpAnswer(url, response.headers, data)

    @contextlib.contextmanager
    def _answer(
        self, address: str, headers: dict[str, str]
    ) -> Iterator[tuple[httpx.Response, float]]:
        """Send a request once, and yield the answer and its deadline."""
        with (
            self._watch.answer() as deadline,
            self._translated(shown_address(address), self._too_slow, deadline),
            self._answered(address, headers) as response,
        ):
            yield response, deadline

    @contextlib.contextmanager
    def _answered(self, address: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """Follow redirects and yield the final answer, its body unread."""
        shown = shown_address(address)
        url = httpx.URL(address)
        if url.userinfo:
            url = url.copy_with(username=None, password=None)
        if not self.is_allowed(url):
            raise SourceError(shown, "would be fetched without encryption", hint=_HTTP_HINT)
        for _ in range(_MOST_REDIRECTS + 1):
            response = self._sent(url, headers)
            try:
                if response.status_code not in _REDIRECTS:
                    yield response
                    return
                url = self._redirected(url, response.headers.get("Location"), shown)
            finally:
                response.close()
        raise SourceError(shown, f"redirected more than {_MOST_REDIRECTS} times")

    def _sent(self, url: httpx.URL, headers: dict[str, str]) -> httpx.Response:
        """Send a request, retrying with other credentials after a refusal."""
        response = self._sent_with(url, headers, self._access.credentials(url, False))  # noqa: FBT003 - the callback's flag
        if response.status_code != _UNAUTHORIZED:
            return response
        other = self._access.credentials(url, True)  # noqa: FBT003 - likewise
        if other is None:
            return response
        response.close()
        return self._sent_with(url, headers, other)

    def _sent_with(
        self, url: httpx.URL, headers: dict[str, str], auth: tuple[str, str] | None
    ) -> httpx.Response:
        raise_if_stopped(self._settings.stop)
        client = self._client(url)
        trace = {"trace": self._watch.note}
        request = client.build_request("GET", url, headers=headers, extensions=trace)
        response = client.send(request, stream=True, auth=auth)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("GET %s: %d", shown_address(str(url)), response.status_code)
        return response

    def _too_slow(self, shown: str) -> TransientError:
        reason = f"not complete within {self._settings.timeout:g} s"
        return TransientError(shown, reason, hint="try again, or raise --timeout")

    def _redirected(self, url: httpx.URL, location: str | None, shown: str) -> httpx.URL:
        if not location:
            raise SourceError(shown, "redirected without a Location header")
        target = url.join(location)
        if (url.scheme == "https" and target.scheme != "https") or not self.is_allowed(target):
            reason = f"redirected to {shown_address(str(target))}, which is not encrypted"
            hint = "redirects must stay on https; use --base-url with the final address"
            raise SourceError(shown, reason, hint=hint)
        if not target.host or not has_usable_port(target):
            raise SourceError(shown, INVALID_REDIRECT)
        _log.debug("%s redirects to %s", shown, shown_address(str(target)))
        return target.copy_with(username=None, password=None)

    def _body(self, response: httpx.Response, shown: str, limit: int, deadline: float) -> bytes:
        """Read and decode the whole body.

        Raises `TooLargeError` if the encoded or decoded body has more than `limit` bytes.
        """
        is_encoded = check_encoding(shown, response, {"gzip", "x-gzip"})
        inflate = zlib.decompressobj(_GZIP) if is_encoded else None
        if inflate is None and (stated_length(response) or 0) > limit:
            raise TooLargeError(shown, limit)
        body = bytearray()
        for chunk in response.iter_raw():
            raise_if_stopped(self._settings.stop)
            if time.monotonic() >= deadline:
                raise self._too_slow(shown)
            body += chunk if inflate is None else _inflated(inflate, chunk, limit, body, shown)
            if len(body) > limit:
                raise TooLargeError(shown, limit)
            if inflate is not None and inflate.unused_data:
                raise SourceError(shown, "the gzip data is followed by other bytes")
        # If an answer has no length, a connection that the watch ended looks like its end.
        if time.monotonic() >= deadline:
            raise self._too_slow(shown)
        if inflate is not None and not inflate.eof:
            raise TransientError(shown, "the answer ended early")
        return bytes(body)


def _inflated(
    inflate: "zlib._Decompress", chunk: bytes, limit: int, body: bytearray, shown: str
) -> bytes:
    try:
        return inflate.decompress(chunk, limit + 1 - len(body))
    except zlib.error as error:
        raise SourceError(shown, "the gzip data is invalid") from error


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of an address."""
    return url.scheme, url.host, url.port


def has_usable_port(url: httpx.URL) -> bool:
    """Return whether an address has no port or a valid one."""
    return url.port is None or 0 < url.port <= _LAST_PORT


def shown_address(address: str) -> str:
    """Return an address for messages, without credentials and query.

    The query may contain a token.
    """
    return without_credentials(address.partition("#")[0].partition("?")[0])
