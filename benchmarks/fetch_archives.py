"""Compare the inspection of archives from a slow server with the time of their bytes on the line.

The server sends 20 MB/s in total. The archives have the proportions of a release of CUDA: two of
them are more than a third of all bytes. They are downloaded, verified and inspected with eight
jobs. No archive is opened before it is verified, so the cores are idle until the first one is
complete. A program that inspects unverified bytes while they arrive needs the time of the line.

Two cores of an idle machine inspect the archives in 60 % of that time. On a slower or busy machine,
the server is slower too, so that the share stays the same. If the inspection took as long as the
line, the idle time could not be made up for: the largest archive is a fifth of all bytes, and so is
the loss. The goal is 1.05. It is 0.95 to 1.00 on an idle machine of two cores, and 1.19 with eight
downloads at the same time. It can be below 1, since the server makes up for its own delays.
"""

import asyncio
import contextlib
import hashlib
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from process_archives import binaries_of_machine, timed
from serving import serve_connections, serving
from verdict import TOLERANCE, check_limit

from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.tasks import each

LIMIT = 1.05
RATE, SHARE = 20_000_000, 0.6
"""Bytes per second of all connections together, and the largest share of the inspection."""
JOBS = 8
SIZE = 160 << 20
"""Bytes of all binaries, before compression."""
SHARES = (20, 18, 9, 9, 8, 6, 6, 6, *(2,) * 6, *(1,) * 6)
"""Sizes of the archives of CUDA 12.9.1 for linux-x86_64, in percent."""
ROUNDS = 3
_CHUNK = 32 << 10
_CREDIT = 0.2
"""Seconds of the line that an earlier delay leaves."""


def make_archives(folder: Path) -> list[ArchiveRequest]:
    """Create archives of this machine's binaries, and return their requests, largest first.

    A binary is smaller than the smallest archive, and can be in several archives.
    """
    smallest = SIZE * min(SHARES) // 100
    binaries = binaries_of_machine(10 * SIZE)
    files = cycle(path for path in binaries if path.stat().st_size < smallest)
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


def serve(pipe: Connection, folder: Path, rate: float = RATE) -> None:
    """Serve the files of a folder with a limited rate, shared by all connections."""
    turn = asyncio.Lock()
    free = 0.0

    async def pause(size: int) -> None:
        """Wait until the line is free for so many bytes. Connections take turns."""
        nonlocal free
        async with turn:
            now = time.monotonic()
            # A sleep that took too long is made up for.
            free = max(now - _CREDIT, free) + size / rate
            await asyncio.sleep(max(0, free - now))

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

    serve_connections(pipe, answer)


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
        requests = make_archives(Path(root))
        size = sum(request.size or 0 for request in requests)

        def measured() -> float:
            local = max(timed(lambda: examine(root, requests)) for _ in range(2))
            rate = min(RATE, SHARE * size / local)
            line = size / rate
            with serving(serve, Path(root), rate) as port:
                times = [
                    timed(lambda: examine(f"http://127.0.0.1:{port}", requests))
                    for _ in range(ROUNDS)
                ]
            ratio = median(times) / line
            print(
                f"{len(requests)} archives, {size / 1e6:.0f} MB, {rate / 1e6:.1f} MB/s / line "
                f"(<= {LIMIT}): {ratio:.2f} ({median(times):.2f} s, {line:.2f} s; "
                f"from a folder {local:.2f} s)"
            )
            return ratio

        check_limit("archives of a slow server / line", LIMIT * TOLERANCE, measured)


if __name__ == "__main__":
    main()
