"""Requests over HTTP(S): retries, few redirects, limits of bytes and seconds, no credentials shown.

Proxies and certificates come from the environment, as httpx reads them, unless `Access` names
others. No redirect may weaken the connection.
"""

import contextlib
import ipaddress
import logging
import os
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import httpx

from cudaredist import __version__
from cudaredist.errors import (
    CannotResumeError,
    SourceError,
    StoppedError,
    TooLargeError,
    TransientError,
    UsageError,
)
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
from cudaredist.source.protocol import Part, Settings, without_credentials

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK, _PARTIAL, _NOT_MODIFIED, _UNAUTHORIZED, _UNSATISFIABLE = 200, 206, 304, 401, 416
_MOST_REDIRECTS = 5
_LAST_PORT = 65535
# httpx lets some errors of other libraries through, as those about host names.
_CLIENT_ERRORS = (httpx.TransportError, httpx.InvalidURL, ValueError, OverflowError)
_HTTP_HINT = "use https, or --allow-http if you trust every machine on the way"
_GZIP = 16 + zlib.MAX_WBITS


class HttpAnswer(NamedTuple):
    """A complete answer."""

    url: str
    """The address that answered, after redirects."""
    headers: Mapping[str, str]
    data: bytes | None
    """The body; None if the server still serves the bytes that the ETag sent stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How connections are made, and with which credentials."""

    credentials: Callable[[httpx.URL, bool], tuple[str, str] | None] = lambda *_: None
    """Return user and password for an address; the flag is set after the server refused."""
    trusted_hosts: frozenset[str] = frozenset()
    """Hosts, or host:port, that need neither encryption nor a certificate."""
    cert: str | None = None
    """A file or folder of authorities."""
    client_cert: str | None = None
    proxy: str | None = None


class HttpClient:
    """Reads whole files, parts and streams by their addresses, from any thread."""

    def __init__(
        self, settings: Settings, access: Access, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._settings = settings
        self._access = access
        self._transport = transport
        self._watch = Watch(settings.timeout)
        self._clients: list[httpx.Client] = []
        self._local = threading.local()
        self._mutex = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext] = {}

    def close(self) -> None:
        """Close all connections."""
        self._watch.close()
        for client in self._clients:
            client.close()

    def is_allowed(self, url: httpx.URL) -> bool:
        """Return whether an address is encrypted, or need not be."""
        if url.scheme == "https":
            return True
        is_exempt = self._settings.allow_http or _is_loopback(url.host) or self._is_trusted(url)
        return url.scheme == "http" and is_exempt

    def _is_trusted(self, url: httpx.URL) -> bool:
        return not self._access.trusted_hosts.isdisjoint({url.host, url.netloc.decode("ascii")})

    def read(
        self,
        address: str,
        limit: int,
        *,
        use: Callable[[HttpAnswer], _Result],
        headers: Mapping[str, str] | None = None,
    ) -> _Result:
        """Return the result of `use` for a file of at most `limit` bytes.

        Both are repeated after a `TransientError`, as often as the settings allow.
        """

        def attempt() -> _Result:
            return use(self._attempt(address, limit, dict(headers or {})))

        return retrying(self._settings)(attempt)

    def part(self, address: str, start: int | None, length: int, etag: str | None = None) -> Part:
        """Return some bytes of a file by a range request, trying as often as allowed."""
        return retrying(self._settings)(self._part, address, start, length, etag)

    def _part(self, address: str, start: int | None, length: int, etag: str | None) -> Part:
        shown = shown_address(address)
        requested = f"-{length}" if start is None else f"{start}-{start + length - 1}"
        headers = {"Range": f"bytes={requested}"}
        if etag is not None:
            headers["If-Range"] = etag
        with (
            self._translated(shown),
            self._watch.answer() as deadline,
            self._answered(address, headers) as response,
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

    def stream(self, address: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield a file's bytes from `start` on, taking up a broken connection where it broke.

        Failures are counted anew once a good piece came, so that a long download survives many.
        """
        download = Download(shown_address(address), start, size)
        failures, waited, reached = 0, 0.0, start
        while True:
            try:
                yield from self._from_there(address, download)
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

    def _from_there(self, address: str, download: Download) -> Iterator[bytes]:
        """Ask for what is still missing of a download and yield it."""
        with contextlib.ExitStack() as stack:
            with self._translated(download.place), self._watch.answer():
                response = stack.enter_context(self._answered(address, download.request_headers()))
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

    def prepare(self, url: httpx.URL) -> None:
        """Make this thread's client for an address; raises `UsageError` if that is impossible."""
        try:
            self._client(url)
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
            raise UsageError(
                f"cannot prepare a connection: {type(error).__name__}",
                hint="look at SSL_CERT_FILE, SSL_CERT_DIR, HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, "
                "and for wheels at `pip config list`",
            ) from error

    def _client(self, url: httpx.URL) -> httpx.Client:
        """Return this thread's client for an address.

        One client for all threads would look through all connections before and after each
        request, which for small files costs more than the request itself.
        """
        kind = "trusted" if self._is_trusted(url) else url.scheme
        client: httpx.Client | None = getattr(self._local, kind, None)
        if client is None:
            client = httpx.Client(
                headers={"User-Agent": f"cudaredist/{__version__}", "Accept-Encoding": "identity"},
                timeout=self._settings.timeout,
                transport=self._transport,
                verify=self._tls(kind),
                proxy=self._access.proxy,
            )
            setattr(self._local, kind, client)
            self._clients.append(client)
        return client

    def _tls(self, kind: str) -> ssl.SSLContext:
        """Return what connections are verified with; reading all authorities takes a while.

        A client for http gets a context that trusts nobody, so that it could not be used for https.
        """
        with self._mutex:
            if kind == "http":
                return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if kind not in self._contexts:
                context = self._contexts[kind] = self._new_context(kind)
                if self._access.client_cert is not None:
                    context.load_cert_chain(self._access.client_cert)
            return self._contexts[kind]

    def _new_context(self, kind: str) -> ssl.SSLContext:
        cert = self._access.cert
        if kind == "trusted":
            return httpx.create_ssl_context(verify=False)
        if cert is not None:
            is_folder = Path(cert).is_dir()
            return ssl.create_default_context(
                cafile=None if is_folder else cert, capath=cert if is_folder else None
            )
        context = httpx.create_ssl_context()
        if not os.environ.keys() & {"SSL_CERT_FILE", "SSL_CERT_DIR"}:
            # Authorities of a company are often only in the system's store, which pip uses, too.
            context.load_default_certs()
        return context

    def _attempt(self, address: str, limit: int, headers: dict[str, str]) -> HttpAnswer:
        """Ask once; every way to fail ends in one of our errors."""
        shown = shown_address(address)
        with self._watch.answer() as deadline:
            try:
                with self._answered(address, headers) as response:
                    url = str(response.url)
                    if response.status_code == _NOT_MODIFIED and "If-None-Match" in headers:
                        return HttpAnswer(url, response.headers, None)
                    if response.status_code != _OK:
                        raise status_error(shown, response)
                    data = self._body(response, shown, limit, deadline)
                    return HttpAnswer(url, response.headers, data)
            except (*_CLIENT_ERRORS, OSError) as error:
                if isinstance(error, httpx.TimeoutException) or time.monotonic() >= deadline:
                    raise self._too_slow(shown) from error
                raise client_error(shown, error) from error

    @contextlib.contextmanager
    def _answered(self, address: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """Send the request and follow redirects, to the answer that is none; its body is unread."""
        shown = shown_address(address)
        url = httpx.URL(address).copy_with(username=None, password=None)
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
        """Send one request, and once more with other credentials if these are refused."""
        response = self._sent_with(url, headers, self._access.credentials(url, False))  # noqa: FBT003 - the callback's flag
        if response.status_code == _UNAUTHORIZED:
            other = self._access.credentials(url, True)  # noqa: FBT003 - likewise
            if other is not None:
                response.close()
                response = self._sent_with(url, headers, other)
        return response

    def _sent_with(
        self, url: httpx.URL, headers: dict[str, str], auth: tuple[str, str] | None
    ) -> httpx.Response:
        if self._settings.stop.is_set():
            raise StoppedError
        client = self._client(url)
        request = client.build_request(
            "GET", url, headers=headers, extensions={"trace": self._watch.note}
        )
        response = client.send(request, stream=True, auth=auth)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("GET %s: %d", shown_address(str(url)), response.status_code)
        return response

    def _too_slow(self, shown: str) -> TransientError:
        reason = f"not complete within {self._settings.timeout:g} s"
        return TransientError(shown, reason, hint="try again, or raise --timeout")

    def _redirected(self, url: httpx.URL, location: str | None, shown: str) -> httpx.URL:
        if not location:
            raise SourceError(shown, "redirected without saying where to")
        target = url.join(location)
        if (url.scheme == "https" and target.scheme != "https") or not self.is_allowed(target):
            raise SourceError(
                shown,
                f"redirected to {shown_address(str(target))}, which is not encrypted",
                hint="redirects stay on https; give the final address with --base-url",
            )
        if not target.host or not has_usable_port(target):
            raise SourceError(shown, NO_ADDRESS)
        _log.debug("%s redirects to %s", shown, shown_address(str(target)))
        return target.copy_with(username=None, password=None)

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


def has_usable_port(url: httpx.URL) -> bool:
    """Return whether an address names no port, or one that exists."""
    return url.port is None or 0 < url.port <= _LAST_PORT


def shown_address(address: str) -> str:
    """Return an address for people: no credentials, no query (it may hold a token)."""
    return without_credentials(address.partition("#")[0].partition("?")[0])
