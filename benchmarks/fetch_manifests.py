"""Compare downloads of manifests with bare connections.

There are 100 manifests and sixteen connections. The server is a separate process with a delay of 50
ms per response. The bare client requests the same paths in the same order, and ignores the response
bodies. cudaredist also parses, verifies, stores and locks the manifests. The ratio of wall-clock
times (median of five pairs) must not exceed 1.15.
"""

import asyncio
import contextlib
import http.client
import queue
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from serving import serving
from support.factory import manifest
from verdict import check_limit

from cudaredist.pipeline.manifests.download import ManifestDownload, into_store
from cudaredist.pipeline.selection import Selection
from cudaredist.redists import REDISTS
from cudaredist.source.chain import open_sources
from cudaredist.source.protocol import Settings
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store

LIMIT = 1.15
CONNECTIONS = 16
DELAY = 0.05
"""Delay of each response, in seconds."""
LABELS = [f"12.{minor}.{patch}" for minor in range(10) for patch in range(10)]
PACKAGES = tuple(f"package_{n}" for n in range(40))
FOLDER = "/compute/cuda/redist/"


def serve(pipe: Connection) -> None:
    """Serve a hundred manifests of realistic size with a delay.

    The server does as little as possible, because the benchmark measures the client.
    """
    files = {f"{FOLDER}redistrib_{x}.json": manifest(x, packages=PACKAGES) for x in LABELS}
    links = "".join(f"<a href='{path.rpartition('/')[2]}'>x</a>" for path in files)
    links = f"<html>{links}</html>"
    files[FOLDER] = links.encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                body = files[request.split(b" ", 2)[1].decode()]
                await asyncio.sleep(DELAY)
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=128)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def bare(port: int) -> float:
    """Return the time of sixteen bare connections, in seconds.

    They request the listing and all manifests.
    """
    started = time.perf_counter()
    first = http.client.HTTPConnection("127.0.0.1", port)
    first.request("GET", FOLDER)
    first.getresponse().read()
    pending: queue.SimpleQueue[str] = queue.SimpleQueue()
    for label in LABELS:
        pending.put(f"{FOLDER}redistrib_{label}.json")

    def work(connection: http.client.HTTPConnection) -> None:
        while True:
            try:
                path = pending.get_nowait()
            except queue.Empty:
                return
            connection.request("GET", path)
            connection.getresponse().read()

    others = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(CONNECTIONS - 1)]
    threads = [threading.Thread(target=work, args=(c,)) for c in (first, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


def ours(port: int) -> float:
    """Return the time of a download to an empty folder, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        settings = Settings()
        destination = into_store(Store(Path(folder)), [REDISTS["cuda"]], are_asked_for=True)
        report = ManifestDownload(
            sources=open_sources([f"http://127.0.0.1:{port}"], settings),
            to=destination,
            selection=Selection(versions=("all",)),
            cache=Cache(Path(folder) / "cache"),
            stop=settings.stop,
            jobs=CONNECTIONS,
        ).run()
        elapsed = time.perf_counter() - started
        assert [outcome.status for outcome in report.manifests] == ["written"] * len(LABELS)
        return elapsed


def main() -> None:
    """Measure, print, and exit 1 if the limit is exceeded."""
    with serving(serve) as port:
        ours(port)  # imports and other first-run costs are not measured

        def measured() -> float:
            pairs = [(bare(port), ours(port)) for _ in range(5)]
            ratio = median(own / limit for limit, own in pairs)
            print(
                f"{len(LABELS)} manifests: {ratio:.2f} x {CONNECTIONS} bare connections "
                f"(<= {LIMIT}); medians {median(p[1] for p in pairs):.3f} s and "
                f"{median(p[0] for p in pairs):.3f} s"
            )
            return ratio

        check_limit(LIMIT, measured)


if __name__ == "__main__":
    main()
