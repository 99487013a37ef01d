"""Compare archives from a slow server with the faster of its line and this machine.

The server sends 20 MB/s in total. The archives have the proportions of a release of CUDA: two of
them are a third of all bytes. They are downloaded, verified and inspected with eight jobs. No
archive is opened before it is verified, so the cores are idle until the first one is complete.

The ideal is the longer of two times: that of all bytes at 20 MB/s, and that of inspecting the same
archives from a folder with the same jobs, measured next to it. A program that inspects unverified
bytes while they arrive cannot be faster.
"""

import asyncio
import contextlib
import hashlib
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from process_archives import binaries_of_machine, timed
from serving import serving
from verdict import check_limit

from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.tasks import each

LIMIT = 1.05
RATE = 20_000_000
"""Bytes per second of all connections together."""
JOBS = 8
SIZE = 300 << 20
"""Bytes of all binaries, before compression."""
SHARES = (20, 18, 9, 9, 8, 6, 6, 6, *(2,) * 6, *(1,) * 6)
"""Sizes of the archives of CUDA 12.9.1 for linux-x86_64, in percent."""
PAIRS = 3
_CHUNK = 32 << 10


def make_archives(folder: Path) -> list[ArchiveRequest]:
    """Create archives of this machine's binaries, and return their requests, largest first."""
    files = iter(binaries_of_machine(SIZE))
    names = [f"sample_{n}-linux-x86_64-1.0-archive" for n in range(len(SHARES))]
    for name, share in zip(names, SHARES, strict=True):
        tar, size = folder / f"{name}.tar", 0
        with tarfile.open(tar, "w") as archive:
            for number, path in enumerate(files):
                archive.add(path, f"{name}/lib/{number}-{path.name}")
                size += path.stat().st_size
                if size >= SIZE * share / 100:
                    break
        subprocess.run(["xz", "-T0", "-1", tar], check=True)
    requests = []
    for path in folder.glob("*.tar.xz"):
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        requests.append(ArchiveRequest(path.name, (path.name,), sha256, path.stat().st_size))
    return sorted(requests, key=lambda request: request.size or 0, reverse=True)


def serve(pipe: Connection, folder: Path) -> None:
    """Serve the files of a folder with a limited rate, shared by all connections."""
    turn = asyncio.Lock()
    free = 0.0

    async def pause(size: int) -> None:
        """Wait until the line is free for so many bytes. Connections take turns."""
        nonlocal free
        async with turn:
            now = time.monotonic()
            free = max(now, free) + size / RATE
            await asyncio.sleep(free - now)

    def chunks(body: bytes) -> Iterator[bytes]:
        return (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                name = request.split(b" ", 2)[1].decode().lstrip("/")
                body = (folder / name).read_bytes()
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode())
                for chunk in chunks(body):
                    await pause(len(chunk))
                    writer.write(chunk)
                    await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def examine(base: str, requests: list[ArchiveRequest]) -> None:
    """Inspect all archives, like process-manifests."""
    sources = open_sources([base], Settings())
    service = ArchiveService(chains={(): sources}, jobs=JOBS)
    results = each(requests, service.examine, service.threads, service.stop)
    assert all(not isinstance(result, Exception) for result in results), results
    sources.close()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        requests = make_archives(folder)
        size = sum(request.size or 0 for request in requests)
        print(f"{len(requests)} archives, {size / 1e6:.0f} MB")
        with serving(serve, folder) as port:

            def pair() -> float:
                local = timed(lambda: examine(root, requests))
                remote = timed(lambda: examine(f"http://127.0.0.1:{port}", requests))
                print(f"  {remote:.2f} s; folder {local:.2f} s, line {size / RATE:.2f} s")
                return remote / max(local, size / RATE)

            def measured() -> float:
                ratio = median(pair() for _ in range(PAIRS))
                print(f"archives at {RATE / 1e6:.0f} MB/s / ideal (<= {LIMIT}): {ratio:.2f}")
                return ratio

            check_limit("archives at 20 MB/s / ideal", LIMIT, measured)


if __name__ == "__main__":
    main()
