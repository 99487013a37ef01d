"""Answers of servers that are broken, lie, or attack, as behaviours of the fault server."""

import contextlib
import gzip
import hashlib
import secrets
from collections.abc import Callable

from support.server import Behaviour, Handler


def raw(answer: Callable[[bytes], bytes]) -> Behaviour:
    """Send these bytes as they are instead of an answer, then end the connection."""

    def send(handler: Handler, data: bytes) -> None:
        handler.wfile.write(answer(data))
        handler.close_connection = True

    return send


def headers(*lines: bytes, encode: Callable[[bytes], bytes] = bytes) -> Behaviour:
    """Send the right status with these header lines, then the requested bytes, encoded.

    `%d` in a line stands for the true length.
    """

    def send(handler: Handler, data: bytes) -> None:
        start, status, body = handler.asked_part(data)
        head = [b"HTTP/1.1 %d Status" % status]
        if status == 206:
            last = start + len(body) - 1
            head.append(b"Content-Range: bytes %d-%d/%d" % (start, last, len(data)))
        head += (line.replace(b"%d", b"%d" % len(body)) for line in lines)
        handler.wfile.write(b"\r\n".join([*head, b"", encode(body)]))
        handler.close_connection = True

    return send


def with_header(line: bytes) -> Behaviour:
    """Send a good answer that has one more header line."""
    return headers(b"Content-Length: %d", line)


def chunked(encode: Callable[[bytes], bytes]) -> Behaviour:
    """Send a chunked body in this encoding."""
    return headers(b"Transfer-Encoding: chunked", encode=encode)


def chunk(size: bytes, data: bytes) -> bytes:
    return b"%b\r\n%b\r\n" % (size, data)


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


# -- parts


def part(content_range: str | None, **more: str) -> Behaviour:
    """Answer with the requested part, or all, as a part with this Content-Range.

    The names `first`, `last` and `total` stand for the true values, with offsets if given.
    """

    def send(handler: Handler, data: bytes) -> None:
        start, _, body = handler.asked_part(data)
        said = dict(more)
        if content_range is not None:
            values = {"first": start, "last": start + len(body) - 1, "total": len(data)}
            said["Content_Range"] = content_range.format(**values, beyond=len(data) + 1000)
        handler.answer(206, body, **said)

    return send


def shifted(offset: int) -> Behaviour:
    """Answer with bytes that begin elsewhere, and say so truly."""

    def send(handler: Handler, data: bytes) -> None:
        start, _, body = handler.asked_part(data)
        start = max(0, min(start + offset, len(data) - 1))
        body = data[start : start + len(body)]
        last = start + len(body) - 1
        handler.answer(206, body, Content_Range=f"bytes {start}-{last}/{len(data)}")

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
    """Answer with half of the requested part, and say that it is the whole part."""
    start, status, body = handler.asked_part(data)
    said = {"Content_Range": f"bytes {start}-{start + len(body) - 1}/{len(data)}"}
    handler.answer(status, body[: len(body) // 2], **(said if status == 206 else {}))


# -- validators


def new_etag(handler: Handler, data: bytes) -> None:
    """Answer well, with another ETag each time."""
    start, status, body = handler.asked_part(data)
    said = {"Content_Range": f"bytes {start}-{start + len(body) - 1}/{len(data)}"}
    etag = f'"{secrets.token_hex(8)}"'
    handler.answer(status, body, ETag=etag, **(said if status == 206 else {}))


def breaking(count: int, etag: Callable[[bytes], str], *, is_altered: bool = False) -> Behaviour:
    """Send `count` bytes of what is requested, then end; what is resumed may be altered."""

    def send(handler: Handler, data: bytes) -> None:
        start, status, body = handler.asked_part(data)
        if start and is_altered:
            body = bytes(len(body))
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        if status == 206:
            handler.send_header(
                "Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(data)}"
            )
        handler.send_header("ETag", etag(data))
        handler.end_headers()
        handler.wfile.write(body if start else body[:count])
        handler.close_connection = True

    return send


def any_etag(_: bytes) -> str:
    return f'"{secrets.token_hex(8)}"'


def true_etag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:16]}"'


# -- connections


def flood_of_hints(handler: Handler, _: bytes) -> None:
    """Announce an answer as fast as the client reads, until it goes away."""
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)
    handler.close_connection = True


def hints_before(handler: Handler, data: bytes) -> None:
    """Announce the answer a few times, then give it."""
    handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" * 5)
    handler.serve(data)


def to_same_port_over_tls(handler: Handler, _: bytes) -> None:
    """Redirect to https on this port, which speaks no TLS."""
    handler.answer(302, b"", Location=f"https://127.0.0.1:{handler.server.owner.port}/")


def redirect_in_a_circle(handler: Handler, _: bytes) -> None:
    handler.answer(302, b"", Location=handler.path)


def half_of_gzip(handler: Handler, data: bytes) -> None:
    packed = gzip.compress(data, mtime=0)
    handler.answer(200, packed[: len(packed) // 2], Content_Encoding="gzip")
