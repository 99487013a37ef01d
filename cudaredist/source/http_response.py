"""What an HTTP answer means: validators, errors, and how far a download has come."""

import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import httpx

from cudaredist.errors import (
    ArchiveMismatchError,
    CannotResumeError,
    NotAtSourceError,
    RefusedError,
    SourceError,
    TransientError,
    UnreachedError,
)

_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 403})
_TRANSIENT = frozenset({408, 425, 429})
_PARTIAL, _UNSATISFIABLE, _SERVER_ERRORS = 206, 416, 500
_LONGEST_ETAG = 256
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
NO_ADDRESS = "redirected to something that is no address"
LEAST = 64 << 10
"""Bytes that must come while the timeout passes in waiting; less is a stalled connection."""


class Download:
    """One file on its way: what has come of it, and whether an answer continues it."""

    def __init__(self, place: str, start: int, size: int | None) -> None:
        self.place = place
        self.received = start
        """The byte at which the next one yielded lies."""
        self._size = size
        self._start = start
        self._validator: str | None = None
        self._total = size
        self._waited = 0.0
        self._came = 0

    def request_headers(self) -> dict[str, str]:
        """Return the headers that ask for the rest, of exactly the file begun with."""
        if not self.received:
            return {}
        headers = {"Range": f"bytes={self.received}-"}
        if self._validator is not None:
            headers["If-Range"] = self._validator
        return headers

    @property
    def can_resume(self) -> bool:
        """Whether more of exactly this file can be asked for, or nothing came of it yet."""
        return self._validator is not None or self.received == self._start

    def accept(self, response: httpx.Response) -> None:
        """Judge the head of an answer; raises where its body is not what was asked for."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in {"identity", ""}:
            raise SourceError(self.place, "sent in an encoding that was not asked for")
        validator = strong_etag(response.headers.get("ETag")) or response.headers.get(
            "Last-Modified"
        )
        length = response.headers.get("Content-Length", "")
        total = int(length[:18]) if length.isascii() and length.isdigit() else None
        if response.status_code == _UNSATISFIABLE:
            if not self.received:
                raise status_error(self.place, response)
            raise CannotResumeError(self.place, "is no longer as long as it was")
        if response.status_code == _PARTIAL:
            first, _, total = content_range(self.place, response)
            if first != self.received:
                raise CannotResumeError(self.place, "answered with another part than asked for")
        elif self.received:
            raise CannotResumeError(self.place, "changed meanwhile, or is served only as a whole")
        if self._validator is not None and validator != self._validator:
            raise CannotResumeError(self.place, "changed meanwhile")
        self._validator = validator
        if None not in {self._size, total} and self._size != total:
            found = f"{total:,} bytes"
            raise ArchiveMismatchError(self.place, "size", f"{self._size:,}", found)
        self._total = total if self._size is None else self._size
        self._waited, self._came = 0.0, 0

    def timed(self, chunks: Iterator[bytes], timeout: float) -> bytes | None:
        """Return the next chunk, None at the end; only time spent waiting for chunks counts."""
        if self._waited > timeout:
            if self._came < LEAST:
                raise TransientError(
                    self.place,
                    f"only {self._came:,} bytes came in {timeout:g} s",
                    hint="try again, or raise --timeout",
                )
            self._waited, self._came = 0.0, 0
        started = time.monotonic()
        chunk = next(chunks, None)
        self._waited += time.monotonic() - started
        if chunk is None:
            return None
        self.received += len(chunk)
        self._came += len(chunk)
        if self._size is not None and self.received > self._size:
            raise ArchiveMismatchError(self.place, "size", f"{self._size:,}", "larger")
        return chunk

    def finish(self) -> None:
        """Judge the end of a body: a connection that was cut can look like a good end."""
        if self._total is not None and self.received < self._total:
            raise TransientError(self.place, "ended in the middle", hint="try again")


def content_range(shown: str, response: httpx.Response) -> tuple[int, int, int | None]:
    """Return a part's first and last byte, and the file's size if the server states it."""
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    if match is not None:
        first, last = int(match[1]), int(match[2])
        total = None if match[3] == "*" else int(match[3])
        if first <= last and (total is None or last < total):
            return first, last, total
    raise CannotResumeError(shown, "answered with a part without saying which")


def strong_etag(value: str | None) -> str | None:
    """Return an ETag that stands for exactly these bytes.

    Weak ones, and dates, may stay the same while bytes change, which must not go unseen.
    """
    is_strong = value is not None and value.startswith('"') and value.isascii()
    return value if is_strong and len(value or "") <= _LONGEST_ETAG else None


def status_error(shown: str, response: httpx.Response) -> SourceError:
    """Return the error that a status stands for: not there, may pass, or neither."""
    status = response.status_code
    phrase = httpx.codes.get_reason_phrase(status)
    reason = f"the server answered {status} {phrase}".rstrip()
    if status in _GONE:
        return NotAtSourceError(shown, reason)
    if status in _REFUSED:
        return RefusedError(shown, reason)
    if status in _TRANSIENT or status >= _SERVER_ERRORS:
        return TransientError(
            shown,
            reason,
            retry_after=_retry_after(response.headers.get("Retry-After")),
            hint="the server is in trouble; try again later",
        )
    return SourceError(shown, reason)


def _retry_after(value: str | None) -> float | None:
    """Read `Retry-After`, seconds or a date; None where it is absent or makes no sense."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def client_error(shown: str, error: Exception) -> SourceError:
    """Return our error for what the client raised, without parts of addresses in it."""
    text = str(error)
    # Texts about addresses may hold parts of them that nobody should see.
    if not isinstance(error, httpx.TransportError) or "location header" in text:
        return SourceError(shown, NO_ADDRESS)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return SourceError(
            shown,
            "its certificate is not trusted",
            hint="name your authority's file in SSL_CERT_FILE",
        )
    if isinstance(error, httpx.ConnectError):
        reason, hint = f"cannot connect ({text})", "is the network up, and the address right?"
        return UnreachedError(shown, reason, hint=hint)
    if isinstance(error, httpx.ProxyError):
        reason, hint = f"the proxy failed ({text})", "look at HTTPS_PROXY and NO_PROXY"
    else:
        reason, hint = f"the connection broke ({text or type(error).__name__})", "try again"
    return TransientError(shown, reason, hint=hint)
