"""Compare downloads of manifests with plain clients.

There are 100 manifests and sixteen connections. The server is a separate process with a delay of 50
ms per response. The peer is a loop with one httpx client for each connection that parses the
manifests with json.loads, hashes them, and writes them to the disk. cudaredist also reads the
index, validates every field and locks the manifests. Reading costs 3.6 to 4.0 times json.loads.

The goal for the ratio of CPU times is 1.3. It is 1.1 to 1.4, even if the load of the machine is
ten times the number of its cores.

The goal for the wall-clock time is 1.15 times the ideal: sixteen connections that ignore the
bodies. The lowest of several times counts. It is 1.10 on an idle machine of two cores. On a busy
machine, even the plain clients exceed the goal, up to 1.6. Then their time counts as 1.15.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from serving import serve_connections, serving
from support.factory import manifest
from verdict import TOLERANCE, check_limit, cpu_ratio

from cudaredist.commands.download.download import ManifestDownload, store_destination
from cudaredist.redists import REDISTS
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.selection import Selection
from cudaredist.tasks import Workers

LIMIT, WALL_LIMIT = 1.3, 1.15
CONNECTIONS = 16
DELAY = 0.05
"""Delay of each response, in seconds."""
LABELS = [f"12.{minor}.{patch}" for minor in range(10) for patch in range(10)]
PACKAGES = tuple(f"package_{n}" for n in range(40))
FOLDER = "/compute/cuda/redist/"
PEAK = "/peak"
"""Address of the largest number of requests at the same time."""
ROUNDS = 15


def serve(pipe: Connection) -> None:
    """Serve a hundred manifests of realistic size with a delay.

    The server does as little as possible, because the benchmark measures the client.
    """
    files = {f"{FOLDER}redistrib_{x}.json": manifest(x, packages=PACKAGES) for x in LABELS}
    links = "".join(f"<a href='{path.rpartition('/')[2]}'>x</a>" for path in files)
    links = f"<html>{links}</html>"
    files[FOLDER] = links.encode()

    active = peak = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal active, peak
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                path = request.split(b" ", 2)[1].decode()
                body = str(peak).encode() if path == PEAK else files[path]
                active += 1
                peak = max(peak, active)
                await asyncio.sleep(DELAY)
                active -= 1
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()

    serve_connections(pipe, answer)


def names() -> queue.SimpleQueue[str]:
    """Return a queue with the names of the manifests."""
    pending: queue.SimpleQueue[str] = queue.SimpleQueue()
    for label in LABELS:
        pending.put(f"redistrib_{label}.json")
    return pending


def in_threads(work: Callable[[], object]) -> None:
    """Run a function in one thread for each connection."""
    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ideal(port: int) -> None:
    """Request the listing, then the manifests, and ignore the bodies."""
    pending = names()

    def request(*paths: str) -> None:
        """Request paths, or all pending manifests, over one connection."""
        with (
            socket.create_connection(("127.0.0.1", port)) as connection,
            connection.makefile("rb") as answer,
            contextlib.suppress(queue.Empty),
        ):
            for path in paths or iter(pending.get_nowait, None):
                connection.sendall(f"GET {FOLDER}{path} HTTP/1.1\r\n\r\n".encode())
                answer.readline()
                length = int(answer.readline().split()[1])
                answer.read(len(b"\r\n") + length)

    request("")
    in_threads(request)


def plain(port: int) -> None:
    """Download with one httpx client for each connection, parse, hash and write."""
    pending = names()

    def work(folder: Path) -> None:
        with httpx.Client(verify=False) as client:  # noqa: S501 - the server uses http
            while True:
                try:
                    name = pending.get_nowait()
                except queue.Empty:
                    return
                data = client.get(f"http://127.0.0.1:{port}{FOLDER}{name}").content
                json.loads(data)
                hashlib.sha256(data).hexdigest()
                with (folder / name).open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())

    with tempfile.TemporaryDirectory() as folder:
        httpx.get(f"http://127.0.0.1:{port}{FOLDER}")
        in_threads(lambda: work(Path(folder)))


def ours(port: int) -> None:
    """Download to an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings()
        destination = store_destination(
            Store(Path(folder)), [REDISTS["cuda"]], {}, is_explicit=True
        )
        report = ManifestDownload(
            open_sources([f"http://127.0.0.1:{port}"], settings),
            destination,
            Selection(versions=("all",)),
            Cache(Path(folder) / "cache"),
            Workers(CONNECTIONS, settings.stop),
        ).run()
        assert [outcome.status for outcome in report.manifests] == ["written"] * len(LABELS)


def wall_ratio(port: int) -> float:
    """Return the ratio of our wall-clock time and the ideal."""
    times: dict[Callable[[int], None], list[float]] = {ideal: [], plain: [], ours: []}
    for _ in range(ROUNDS):
        for work, measured in times.items():
            started = time.perf_counter()
            work(port)
            measured.append(time.perf_counter() - started)
    least, clients, own = map(min, times.values())
    texts = f"{own:.3f} s, plain clients {clients:.3f} s, ideal {least:.3f} s"
    print(f"{len(LABELS)} manifests / ideal (<= {WALL_LIMIT}): {own / least:.2f} ({texts})")
    return own / max(least, clients / WALL_LIMIT)


def main() -> None:
    """Measure and print."""
    with serving(serve) as port:
        ours(port)  # imports and other first-run costs are not measured

        peak = int(httpx.get(f"http://127.0.0.1:{port}{PEAK}").text)
        assert peak > CONNECTIONS / 2, f"only {peak} requests in parallel"

        def measured() -> float:
            ratio, text = cpu_ratio(lambda: ours(port), lambda: plain(port), ROUNDS)
            print(f"{len(LABELS)} manifests / plain clients (<= {LIMIT}): {text}")
            return ratio

        check_limit("CPU of downloading manifests / plain clients", LIMIT * TOLERANCE, measured)
        name = "time of downloading manifests / ideal"
        check_limit(name, WALL_LIMIT * TOLERANCE, lambda: wall_ratio(port))


if __name__ == "__main__":
    main()
