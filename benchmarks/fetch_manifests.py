"""Compare downloads of manifests with plain clients.

There are 100 manifests and sixteen connections. The server is a separate process with a delay of 50
ms per response. The peer is a loop with one httpx client for each connection that parses the
manifests with json.loads, hashes them, and writes them to the disk. cudaredist also reads the
index, validates every field and locks the manifests. Reading costs 3.6 to 4.0 times json.loads.

The goal for the ratio of CPU times is 1.3. It is 1.1 to 1.4, even if the load of the machine is
ten times the number of its cores. Wall-clock times (limit 1.15, compared with connections that
ignore the bodies) were 1.2 to 1.3 on slower machines and 2.6 on busy ones, so they decided nothing.
That requests are sent in parallel is counted by the server: more than half of the connections must
be in use at the same time.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import sys
import tempfile
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from serving import serving
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

LIMIT = 1.3
CONNECTIONS = 16
DELAY = 0.05
"""Delay of each response, in seconds."""
LABELS = [f"12.{minor}.{patch}" for minor in range(10) for patch in range(10)]
PACKAGES = tuple(f"package_{n}" for n in range(40))
FOLDER = "/compute/cuda/redist/"
PEAK = "/peak"
"""Address of the largest number of requests at the same time."""


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

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=128)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def plain(port: int) -> None:
    """Download with one httpx client for each connection, parse, hash and write."""
    pending: queue.SimpleQueue[str] = queue.SimpleQueue()
    for label in LABELS:
        pending.put(f"redistrib_{label}.json")

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
        threads = [threading.Thread(target=work, args=(Path(folder),)) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


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


def main() -> None:
    """Measure and print."""
    with serving(serve) as port:
        ours(port)  # imports and other first-run costs are not measured

        peak = int(httpx.get(f"http://127.0.0.1:{port}{PEAK}").text)
        assert peak > CONNECTIONS / 2, f"only {peak} requests in parallel"

        def measured() -> float:
            ratio, text = cpu_ratio(lambda: ours(port), lambda: plain(port), 15)
            print(f"{len(LABELS)} manifests / plain clients (<= {LIMIT}): {text}")
            return ratio

        check_limit("CPU of downloading manifests / plain clients", LIMIT * TOLERANCE, measured)


if __name__ == "__main__":
    main()
