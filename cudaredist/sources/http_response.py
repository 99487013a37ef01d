"""Interpretation of HTTP answers: validators, errors and download progress."""

import re
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
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
INVALID_REDIRECT = "redirected to an invalid address"
NO_RANGES = "the file changed, or the server does not support range requests"
LEAST = 64 << 10
"""Bytes that must arrive while waiting as long as the timeout. With fewer, a download stalls."""


class Download:
    """The state of one download over several answers."""

    def __init__(self, place: str, start: int, size: int | None) -> None:
        self.place = place
        self.received = start
        """The position of the next byte in the file."""
        self._size = size
        self._start = start
        self._validator: str | None = None
        self._total = size
        self._seconds = 0.0
        self._bytes = 0

    def request_headers(self) -> dict[str, str]:
        """Return the headers that request the remaining bytes."""
        if not self.received:
            return {}
        headers = {"Range": f"bytes={self.received}-"}
        if self._validator is not None:
            headers["If-Range"] = self._validator
        return headers

    @property
    def can_resume(self) -> bool:
        """Whether the same file can be resumed, or nothing arrived."""
        return self._validator is not None or self.received == self._start

    def accept(self, response: httpx.Response) -> None:
        """Validate an answer's headers before its body is read.

        Raises `SourceError` if the body does not continue the file.
        """
        check_encoding(self.place, response)
        headers = response.headers
        validator = strong_etag(headers.get("ETag")) or headers.get("Last-Modified")
        total = stated_length(response)
        if response.status_code == _UNSATISFIABLE:
            if not self.received:
                raise status_error(self.place, response)
            raise CannotResumeError(self.place, "the file is shorter than before")
        if response.status_code == _PARTIAL:
            first, _, total = content_range(self.place, response)
            if first != self.received:
                raise CannotResumeError(self.place, "the server sent another part than requested")
        elif self.received:
            raise CannotResumeError(self.place, NO_RANGES)
        if self._validator is not None and validator != self._validator:
            raise CannotResumeError(self.place, "the file changed during the download")
        self._validator = validator
        if self._size is not None and total is not None and self._size != total:
            raise ArchiveMismatchError(self.place, "size", f"{self._size:,}", f"{total:,} bytes")
        self._total = total if self._size is None else self._size
        self._seconds, self._bytes = 0.0, 0

    def timed(self, chunks: Iterator[bytes], timeout: float) -> bytes | None:
        """Return the next chunk, or None at the end.

        Raises `TransientError` if too few bytes arrive in `timeout` seconds of waiting. Time
        between two calls does not count.
        """
        if self._seconds > timeout:
            if self._bytes < LEAST:
                reason = f"received only {self._bytes:,} bytes in {timeout:g} s"
                hint = "try again, or increase --timeout"
                raise TransientError(self.place, reason, hint=hint)
            self._seconds, self._bytes = 0.0, 0
        started = time.monotonic()
        chunk = next(chunks, None)
        self._seconds += time.monotonic() - started
        if chunk is None:
            return None
        self.received += len(chunk)
        self._bytes += len(chunk)
        if self._size is not None and self.received > self._size:
            raise ArchiveMismatchError(self.place, "size", f"{self._size:,}", "larger")
        return chunk

    def finish(self) -> None:
        """Raise `TransientError` if the body ended early.

        httpx does not notice every broken connection, for example of a body without a length.
        """
        if self._total is not None and self.received < self._total:
            raise TransientError(self.place, "the answer ended early", hint="try again")


def content_range(shown: str, response: httpx.Response) -> tuple[int, int, int | None]:
    """Return a part's first and last byte and the file's size.

    The size is None if the server does not know it.
    """
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    if match is not None:
        first, last = int(match[1]), int(match[2])
        total = None if match[3] == "*" else int(match[3])
        if first <= last and (total is None or last < total):
            return first, last, total
    raise CannotResumeError(shown, "the server sent a part without a valid Content-Range header")


def check_encoding(shown: str, response: httpx.Response, accepted: Collection[str] = ()) -> bool:
    """Return whether a body is encoded. Raises `SourceError` for an encoding not accepted."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"identity", "", *accepted}:
        raise SourceError(shown, "the server used an encoding that was not requested")
    return encoding in accepted


def stated_length(response: httpx.Response) -> int | None:
    """Return the value of `Content-Length`, None without a valid one."""
    length = response.headers.get("Content-Length", "")
    return int(length[:18]) if length.isascii() and length.isdigit() else None


def strong_etag(value: str | None) -> str | None:
    """Return an ETag if it is strong, otherwise None.

    A weak ETag or a date may stay the same when the bytes change.
    """
    is_strong = value is not None and value.startswith('"') and value.isascii()
    return value if is_strong and len(value or "") <= _LONGEST_ETAG else None


def status_error(shown: str, response: httpx.Response) -> SourceError:
    """Return the error for a status: missing, refused, transient or other."""
    status = response.status_code
    phrase = httpx.codes.get_reason_phrase(status)
    reason = f"the server answered {status} {phrase}".rstrip()
    if status in _GONE:
        return NotAtSourceError(shown, reason)
    if status in _REFUSED:
        return RefusedError(shown, reason)
    if status in _TRANSIENT or status >= _SERVER_ERRORS:
        pause = _retry_after(response.headers.get("Retry-After"))
        hint = "the server has a problem; try again later"
        return TransientError(shown, reason, retry_after=pause, hint=hint)
    return SourceError(shown, reason)


def _retry_after(value: str | None) -> float | None:
    """Return the seconds of a `Retry-After` header, or None.

    Its value is a number of seconds or a date.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return None


def client_error(shown: str, error: Exception) -> SourceError:
    """Translate an error of the client into a `SourceError`.

    Parts of addresses are removed, because they may contain credentials.
    """
    text = str(error)
    # Messages about addresses may quote credentials.
    if not isinstance(error, httpx.TransportError) or "location header" in text:
        return SourceError(shown, INVALID_REDIRECT)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return _certificate_error(shown, text)
    if isinstance(error, httpx.ConnectError):
        reason, hint = f"cannot connect ({text})", "check the network and the address"
        return UnreachedError(shown, reason, hint=hint)
    if isinstance(error, httpx.ProxyError):
        reason, hint = f"the proxy failed ({text})", "check HTTPS_PROXY and NO_PROXY"
    else:
        reason, hint = f"the connection broke ({text or type(error).__name__})", "try again"
    return TransientError(shown, reason, hint=hint)


def _certificate_error(shown: str, text: str) -> SourceError:
    """Return the error for a certificate, by OpenSSL's message."""
    if "expired" in text or "not yet valid" in text:
        hint = "check the date of this machine with `date`, or tell the owner of the server"
        return SourceError(shown, "its certificate is not valid on this date", hint=hint)
    if "mismatch" in text:
        hint = "check the address, or tell the owner of the server"
        return SourceError(shown, "its certificate is for another host", hint=hint)
    hint = "set SSL_CERT_FILE to the file of your certificate authority"
    return SourceError(shown, "its certificate is not trusted", hint=hint)
