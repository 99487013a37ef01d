"""An HTTP server on loopback that serves files and misbehaves on request."""

import contextlib
import gzip
import hashlib
import math
import os
import re
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import subprocess

Behaviour = Callable[["Handler", bytes], None]


class Part(NamedTuple):
    """A part of a file with its offset, status and headers."""

    start: int
    status: int
    data: bytes
    headers: dict[str, str]


def content_range(start: int, part: bytes, data: bytes) -> dict[str, str]:
    return {"Content_Range": f"bytes {start}-{start + len(part) - 1}/{len(data)}"}


def etag_of(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:16]}"'


class Handler(BaseHTTPRequestHandler):
    """Handler that answers from the server's files or with a path's behaviour."""

    protocol_version = "HTTP/1.1"
    # Otherwise, a small body waits 40 ms for the delayed acknowledgment of its headers.
    disable_nagle_algorithm = True
    server: "_Server"

    def do_GET(self) -> None:
        owner = self.server.owner
        path = self.path.partition("?")[0]
        with owner.mutex:
            owner.requests[path] += 1
            owner.headers.append((path, dict(self.headers.items())))
            count = owner.requests[path]
        time.sleep(owner.delay)
        data = owner.files.get(path)
        fault = owner.faults.get(path)
        with contextlib.suppress(ConnectionError, TimeoutError):
            if fault is not None and count <= fault.last[path]:
                fault.is_served = True
                fault.behaviour(self, data or b"")
            elif path in owner.answers:
                owner.answers[path](self, data or b"")
            elif data is None:
                self.answer(404, b"not here")
            else:
                self.serve(data)

    def do_HEAD(self) -> None:
        owner = self.server.owner
        data = owner.files.get(self.path.partition("?")[0])
        self.send_response(501 if not owner.answers_head else 404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()

    def serve(self, data: bytes) -> None:
        """Answer correctly with a validator, or 304 if the client has the same file."""
        etag = etag_of(data)
        if self.headers.get("If-None-Match") == etag:
            self.answer(304, b"", ETag=etag)
            return
        part = self.asked_part(data, etag)
        self.answer(part.status, part.data, ETag=etag, **part.headers)

    def asked_part(self, data: bytes, etag: str | None = None) -> "Part":
        """Return the requested part, or the whole file if it has another ETag than requested.

        Without `etag`, the requested ETag is ignored, as broken servers do.
        """
        range_match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        is_other = etag is not None and self.headers.get("If-Range", etag) != etag
        if range_match is None or is_other:
            return Part(0, 200, data, {})
        if range_match[1]:
            start, end = int(range_match[1]), int(range_match[2] or len(data)) + 1
        else:
            start, end = max(0, len(data) - int(range_match[2])), len(data)
        if range_match[1] and start >= len(data):
            return Part(0, 416, b"", {})
        return Part(start, 206, data[start:end], content_range(start, data[start:end], data))

    def begin(self, status: int, length: int, **headers: str) -> None:
        """Send a status and headers."""
        self.send_response(status)
        for name, value in {"Content_Length": str(length), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def answer(self, status: int, data: bytes, **headers: str) -> None:
        self.begin(status, len(data), **headers)
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Print no log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: "FaultServer"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors, because clients of tests may disconnect."""


@dataclass
class Fault:
    """A behaviour in place of good answers."""

    behaviour: Behaviour
    last: dict[str, float]
    """The number of the last request of each path that gets it."""
    is_served: bool = False
    """Whether a request got it."""


class FaultServer:
    """A server with files and misbehaviours by path, and a record of requests.

    A misbehaviour that no request got fails the test when the server ends, because then the test
    shows nothing.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, Behaviour] = {}
        """Good answers with headers of their own."""
        self.faults: dict[str, Fault] = {}
        self._all_faults: list[Fault] = []
        self.requests: Counter[str] = Counter()
        self.headers: list[tuple[str, dict[str, str]]] = []
        self.delay = 0.0
        self.answers_head = False
        self.mutex = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.owner = self
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "http" if tls is None else "https"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        if error is None:
            unserved = [", ".join(fault.last) for fault in self._all_faults if not fault.is_served]
            assert not unserved, f"no request got the misbehaviour of {unserved}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def add_folder(self, root: Path) -> None:
        """Serve every file below a folder, and index.html for a folder itself."""
        for path in root.rglob("*"):
            if path.is_file():
                url_path = "/" + path.relative_to(root).as_posix()
                self.files[url_path] = path.read_bytes()
                if path.name == "index.html":
                    self.files[url_path.removesuffix("index.html")] = path.read_bytes()

    def add_manifests(self, redist: str, manifests: dict[str, bytes]) -> None:
        """Serve manifests by label and a listing of them."""
        folder = f"/compute/{redist}/redist/"
        names = [f"redistrib_{label}.json" for label in manifests]
        links = "".join(f"<a href='{name}'>{name}</a>\n" for name in names)
        self.files[folder] = f"<pre>\n<a href='..'>..</a>\n{links}</pre>".encode()
        for name, data in zip(names, manifests.values(), strict=True):
            self.files[folder + name] = data

    def add_releases(self, redist: str, *releases: Mapping[str, bytes]) -> None:
        """Serve files of releases by their paths and list their manifests."""
        manifests = {}
        for path, data in (item for files in releases for item in files.items()):
            self.files[f"/compute/{redist}/redist/{path}"] = data
            if path.startswith("redistrib_"):
                manifests[path.removeprefix("redistrib_").removesuffix(".json")] = data
        self.add_manifests(redist, manifests)

    def misbehave(
        self,
        paths: str | Iterable[str],
        behaviour: Behaviour,
        times: int | None = None,
        *,
        is_optional: bool = False,
    ) -> None:
        """Answer paths with a behaviour, the next `times` requests of each or all.

        At least one of them must be requested, unless it is optional, as in random runs.
        """
        more = math.inf if times is None else times
        names = [paths] if isinstance(paths, str) else list(paths)
        last = {path: self.requests[path] + more for path in names}
        fault = Fault(behaviour, last, is_served=is_optional)
        self.faults |= dict.fromkeys(names, fault)
        self._all_faults.append(fault)

    def behave(self) -> None:
        """End all misbehaviours."""
        self.faults.clear()

    def wait_for_requests(self, count: int, process: "subprocess.Popen[str]") -> None:
        """Wait until the server got a number of requests or the client ended."""
        while len(self.headers) < count and process.poll() is None:
            time.sleep(0.005)

    def count(self, ending: str) -> int:
        """Return the number of requests of paths with a suffix."""
        return sum(n for path, n in self.requests.items() if path.endswith(ending))


# -- behaviours


def status(code: int, **headers: str) -> Behaviour:
    return lambda handler, _: handler.answer(code, b"go away", **headers)


def body(data: bytes, **headers: str) -> Behaviour:
    return lambda handler, _: handler.answer(200, data, **headers)


def without_ranges(handler: Handler, data: bytes) -> None:
    """Answer with the whole file, whatever part is requested."""
    handler.answer(200, data)


def reset_in_the_middle(handler: Handler, data: bytes) -> None:
    """Announce the whole body, send half, then reset the connection."""
    handler.begin(200, len(data))
    handler.wfile.write(data[: len(data) // 2])
    handler.wfile.flush()
    reset(handler, data)


def reset(handler: Handler, _: bytes) -> None:
    """Reset the connection."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    # The handler's readers and writers keep a closed socket open, so close its descriptor.
    os.close(handler.connection.detach())


def breaking_after(count: int, *, resumable: bool = True) -> Behaviour:
    """Send at most `count` requested bytes, then break the connection."""

    def send(handler: Handler, data: bytes) -> None:
        etag = etag_of(data)
        part = handler.asked_part(data, etag) if resumable else Part(0, 200, data, {})
        handler.begin(part.status, len(part.data), ETag=etag, **part.headers)
        handler.wfile.write(part.data[:count])
        handler.wfile.flush()
        handler.close_connection = len(part.data) > count

    return send


def another_part(handler: Handler, data: bytes) -> None:
    """Answer with a part that was not requested."""
    handler.answer(206, data[:10], Content_Range=f"bytes 0-9/{len(data)}")


def never_ending_of_right_length(handler: Handler, data: bytes) -> None:
    """Send the whole body byte by byte."""
    handler.begin(200, len(data))
    _drip(handler, (bytes([byte]) for byte in data), 0.05)


def stalling_after(count: int) -> Behaviour:
    """Send `count` requested bytes, then stall."""

    def send(handler: Handler, data: bytes) -> None:
        handler.begin(200, len(data))
        handler.wfile.write(data[:count])
        handler.wfile.flush()
        silent(handler, b"")

    return send


def truncated(handler: Handler, data: bytes) -> None:
    """Announce the whole body, send half, then close the connection."""
    handler.begin(200, len(data))
    handler.wfile.write(data[: len(data) // 2])
    handler.close_connection = True


def truncated_with_matching_length(handler: Handler, data: bytes) -> None:
    """Announce half and send half."""
    half = data[: len(data) // 2]
    handler.answer(200, half)


def without_length(handler: Handler, data: bytes) -> None:
    """Send the whole body without a length, then close the connection."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(data)
    handler.close_connection = True


def never_ending(handler: Handler, data: bytes) -> None:
    """Announce a megabyte and send it byte by byte, within the read timeout."""
    handler.begin(200, 1 << 20)
    _drip(handler, repeat(b" ", 1 << 20))


def _drip(handler: Handler, pieces: Iterable[bytes], seconds: float = 0.02) -> None:
    for piece in pieces:
        handler.wfile.write(piece)
        handler.wfile.flush()
        time.sleep(seconds)


def header_byte_by_byte(handler: Handler, data: bytes) -> None:
    """Start a header and never finish it."""
    _drip(handler, [b"HTTP/1.1 200 OK\r\nX-Long: ", *[b"x"] * 3000])


def early_hints_for_ever(handler: Handler, data: bytes) -> None:
    """Send early hints repeatedly and never the response."""
    _drip(handler, repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n", 3000))


def chunk_extension_for_ever(handler: Handler, data: bytes) -> None:
    """Start the size line of a chunk and never finish it."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;"
    _drip(handler, [head, *[b"a"] * 3000])


def silent(handler: Handler, _: bytes) -> None:
    """Accept the request and send nothing until the client disconnects."""
    with contextlib.suppress(OSError):
        handler.connection.recv(1)
    handler.close_connection = True


def two_gigabytes(*, with_length: bool) -> Behaviour:
    def send(handler: Handler, data: bytes) -> None:
        handler.send_response(200)
        if with_length:
            handler.send_header("Content-Length", str(2 << 30))
        handler.send_header("Connection", "close")
        handler.end_headers()
        block = bytes(1 << 20)
        for _ in range(2 << 10):
            handler.wfile.write(block)
        handler.close_connection = True

    return send


def gzip_bomb(size: int) -> Behaviour:
    """Send NULs in one gzip member, packed while they are sent."""

    def send(handler: Handler, data: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Connection", "close")
        handler.end_headers()
        with gzip.GzipFile(fileobj=handler.wfile, mode="wb", mtime=0) as file:
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
        handler.close_connection = True

    return send


def gzipped(handler: Handler, data: bytes) -> None:
    handler.answer(200, gzip.compress(data, mtime=0), Content_Encoding="gzip")


def redirect(to: str) -> Behaviour:
    return lambda handler, _: handler.answer(302, b"", Location=to)
