"""Mirroring 1 GB of archives, against a plain loop with httpx and SHA-256, in one run.

The server is a process of its own. The plain loop downloads the same archives one after the other,
hashes them and writes them to files that are on the disk at the end. `mirror sync` with one job
also reads the manifest, verifies, locks and writes index pages. The ratio of wall-clock times must
stay at 1.1 or below; the median of seven pairs counts. The peak memory of the command, as a process
of its own, must stay below 64 MB.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import httpx
from serving import serving
from support.factory import archive_path, manifest
from support.running import invoke
from verdict import check_limit

LIMIT = 1.1
MEMORY_LIMIT = 64
SIZE = 64 << 20
PACKAGES = tuple(f"package_{n}" for n in range(16))
LABEL, PLATFORM = "12.9.1", "linux-x86_64"
FOLDER = "/compute/cuda/redist/"
PATHS = [archive_path(package, PLATFORM, LABEL) for package in PACKAGES]
_MEASURE = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "cudaredist", *sys.argv[1:]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def archive(path: str) -> bytes:
    """Return an archive's bytes, which nobody opens."""
    return hashlib.sha256(path.encode()).digest() * (SIZE // 32)


def serve(pipe: Connection) -> None:
    """Serve a release until told to end."""
    files = {f"{FOLDER}{path}": archive(path) for path in PATHS}
    contents = {path: files[f"{FOLDER}{path}"] for path in PATHS}
    document = manifest(LABEL, packages=PACKAGES, platforms=[PLATFORM], contents=contents)
    files[f"{FOLDER}redistrib_{LABEL}.json"] = document
    files[FOLDER] = f"<html><a href='redistrib_{LABEL}.json'>x</a></html>".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                body = memoryview(files[request.split(b" ", 2)[1].decode()])
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode())
                for start in range(0, len(body), 1 << 20):
                    writer.write(body[start : start + (1 << 20)])
                    await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def plain(url: str, folder: Path) -> float:
    """Return the seconds of a plain loop."""
    started = time.perf_counter()
    folder.mkdir()
    with httpx.Client() as client:
        listed = client.get(f"{url}{FOLDER}redistrib_{LABEL}.json").json()
        for number, package in enumerate(PACKAGES):
            entry = listed[package][PLATFORM]
            digest = hashlib.sha256()
            address = f"{url}{FOLDER}{entry['relative_path']}"
            with client.stream("GET", address) as response, (folder / str(number)).open("wb") as to:
                for chunk in response.iter_bytes():
                    digest.update(chunk)
                    to.write(chunk)
                to.flush()
                os.fsync(to.fileno())
            assert digest.hexdigest() == entry["sha256"]
    return time.perf_counter() - started


def command(url: str, folder: Path) -> tuple[object, ...]:
    """Return the words of the command."""
    return ("mirror", "sync", folder, "--redist", "cuda", "--base-url", url, "-j", 1)


def ours(url: str, folder: Path) -> float:
    """Return the seconds of mirror sync in this process."""
    started = time.perf_counter()
    result = invoke(*command(url, folder), "--json")
    elapsed = time.perf_counter() - started
    statuses = [one["status"] for one in json.loads(result.stdout)["archives"]]
    assert statuses == ["copied"] * len(PACKAGES), result.output
    return elapsed


def memory(url: str, folder: Path) -> float:
    """Return the peak memory of mirror sync in MB."""
    words = [sys.executable, "-c", _MEASURE, *map(str, command(url, folder)), "--quiet"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure, print, and exit 1 above the limits."""
    # In memory if possible: the speed of a shared disk varies more than the limit allows.
    memory_disk = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory_disk) as root, serving(serve) as port:
        os.environ["CUDAREDIST_CACHE_DIR"] = f"{root}/cache"
        url, folder = f"http://127.0.0.1:{port}", Path(root) / "copy"

        def pair() -> tuple[float, float]:
            seconds = []
            for work in (plain, ours):
                seconds.append(work(url, folder))
                shutil.rmtree(folder)
            return seconds[0], seconds[1]

        pair()  # imports and the like are no part of copying

        def measured() -> float:
            pairs = [pair() for _ in range(7)]
            ratio = median(own / limit for limit, own in pairs)
            print(
                f"mirroring {len(PATHS) * SIZE >> 20} MB: {ratio:.2f} x a plain loop (<= {LIMIT}); "
                f"medians {median(p[1] for p in pairs):.2f} s and "
                f"{median(p[0] for p in pairs):.2f} s"
            )
            return ratio

        check_limit(LIMIT, measured)

        def peak() -> float:
            megabytes = memory(url, folder)
            shutil.rmtree(folder)
            print(f"peak memory of mirror sync: {megabytes:.0f} MB (<= {MEMORY_LIMIT})")
            return megabytes

        check_limit(MEMORY_LIMIT, peak)


if __name__ == "__main__":
    main()
