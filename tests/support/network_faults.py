"""Broken, wrong and hostile responses as behaviours of the fault server."""

import gzip
import secrets
from collections.abc import Callable

from support.server import Behaviour, Handler, content_range


def raw(answer: Callable[[bytes], bytes]) -> Behaviour:
    """Send raw bytes instead of a response, then close the connection."""

    def send(handler: Handler, data: bytes) -> None:
        handler.wfile.write(answer(data))
        handler.close_connection = True

    return send


def headers(*lines: bytes, encode: Callable[[bytes], bytes] = bytes) -> Behaviour:
    """Send the right status with given header lines, then the encoded bytes.

    `%d` in a line means the true length.
    """

    def send(handler: Handler, data: bytes) -> None:
        part = handler.asked_part(data)
        # Otherwise the client may send its next request while the connection closes.
        head = [b"HTTP/1.1 %d Status" % part.status, b"Connection: close"]
        head += (b"Content-Range: " + value.encode() for value in part.headers.values())
        head += (line.replace(b"%d", b"%d" % len(part.data)) for line in lines)
        handler.wfile.write(b"\r\n".join([*head, b"", encode(part.data)]))
        handler.close_connection = True

    return send


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def all_but_one(data: bytes) -> bytes:
    return data[:-1]


def damaged(data: bytes) -> bytes:
    """Change one byte in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


# -- parts


def part(content_range: str | None, **more: str) -> Behaviour:
    """Answer with the requested part, or the whole file, with a given Content-Range.

    The names `first`, `last` and `total` mean the true values, with offsets if given.
    """

    def send(handler: Handler, data: bytes) -> None:
        start, _, body, _ = handler.asked_part(data)
        headers_of_part = dict(more)
        if content_range is not None:
            values = {"first": start, "last": start + len(body) - 1, "total": len(data)}
            headers_of_part["Content_Range"] = content_range.format(
                **values, beyond=len(data) + 1000
            )
        handler.answer(206, body, **headers_of_part)

    return send


def shifted(offset: int) -> Behaviour:
    """Answer with bytes at another offset, with a correct Content-Range."""

    def send(handler: Handler, data: bytes) -> None:
        part = handler.asked_part(data)
        start = max(0, min(part.start + offset, len(data) - 1))
        body = data[start : start + len(part.data)]
        handler.answer(206, body, **content_range(start, body, data))

    return send


def several_parts(handler: Handler, data: bytes) -> None:
    """Answer with a body of two parts."""
    middle = len(data) // 2
    pieces = [(0, data[:middle]), (middle, data[middle:])]
    body = b"".join(
        b"--x\r\nContent-Range: bytes %d-%d/%d\r\n\r\n%b\r\n"
        % (start, start + len(piece) - 1, len(data), piece)
        for start, piece in pieces
    )
    handler.answer(206, body + b"--x--\r\n", Content_Type="multipart/byteranges; boundary=x")


def half_a_part(handler: Handler, data: bytes) -> None:
    """Answer with half of the requested part and the headers of the whole part."""
    part = handler.asked_part(data)
    handler.answer(part.status, half(part.data), **part.headers)


# -- validators


def new_etag(handler: Handler, data: bytes) -> None:
    """Answer well, with another ETag each time."""
    etag = any_etag(data)
    part = handler.asked_part(data, etag)
    handler.answer(part.status, part.data, ETag=etag, **part.headers)


def new_etag_of_part(handler: Handler, data: bytes) -> None:
    """Answer the requested part, although its ETag is another one than in If-Range."""
    part = handler.asked_part(data)
    handler.answer(part.status, part.data, ETag=any_etag(data), **part.headers)


def breaking(count: int, etag: Callable[[bytes], str], *, is_altered: bool = False) -> Behaviour:
    """Send `count` requested bytes, then close. A resumed part may be altered."""

    def send(handler: Handler, data: bytes) -> None:
        part = handler.asked_part(data)
        body = bytes(len(part.data)) if part.start and is_altered else part.data
        handler.begin(part.status, len(body), ETag=etag(data), **part.headers)
        sent = body if part.start else body[:count]
        handler.wfile.write(sent)
        # Otherwise the client may send its next request while the connection closes.
        handler.close_connection = len(sent) < len(body)

    return send


def any_etag(_: bytes) -> str:
    return f'"{secrets.token_hex(8)}"'


# -- connections


def half_of_gzip(handler: Handler, data: bytes) -> None:
    packed = gzip.compress(data, mtime=0)
    handler.answer(200, packed[: len(packed) // 2], Content_Encoding="gzip")
