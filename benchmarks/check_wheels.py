"""Compare `check` of wheels with bare httpx clients.

Every response has a delay of 50 ms. The server is a separate process: a package index with twenty
CUDA releases and a delay of 50 ms per response. The bare script sends the same requests as `check`
with sixteen parallel clients, and ignores the response bodies. The ratio of wall-clock times
(median of three pairs) must not exceed 3.
"""

import asyncio
import contextlib
import json
import os
import queue
import re
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from serving import serve_connections, serving
from support.wheels import wheel
from verdict import check_limit

from cudaredist.commands.check.check_data import check_data
from cudaredist.commands.check.checked_files import CheckedFiles
from cudaredist.commands.download.download import ManifestDownload, store_destination
from cudaredist.redists import REDISTS
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import WHEELS, Settings
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.selection import Selection
from cudaredist.tasks import Workers
from cudaredist.wheel_projects import COMPONENTS

LIMIT = 3.0
CLIENTS = 16
DELAY = 0.05
"""Delay of each response, in seconds."""
LABELS = [f"12.{minor}.{patch}" for minor in range(10) for patch in range(2)]
PROJECTS = [f"nvidia-{component}-cu12" for component in COMPONENTS]
TAGS = ("manylinux2014_aarch64", "manylinux2014_x86_64", "win_amd64")
PADDING = os.urandom(96 << 10)
"""Makes wheels large; `check` requests only a small part of them."""
LOG = "/log"

Requests = list[tuple[str, dict[str, str]]]


def files_of_index() -> dict[str, bytes]:
    """Return the pages and wheels of an index, by path."""
    files: dict[str, bytes] = {}
    for project in ("cuda-toolkit", *PROJECTS):
        entries = []
        for label in LABELS:
            dependencies = [f"{name}=={label}.*" for name in PROJECTS if project == "cuda-toolkit"]
            content = {} if dependencies else {"nvidia/x/padding": PADDING}
            data = wheel(project, label, content, requires=dependencies)
            for tag in ("any",) if dependencies else TAGS:
                name = f"{project.replace('-', '_')}-{label}-py3-none-{tag}.whl"
                files[f"/files/{name}"] = data
                entries.append(
                    {
                        "filename": name,
                        "url": f"../../files/{name}",
                        "hashes": {"sha256": "a" * 64},
                        "size": len(data),
                    }
                )
        page = {"meta": {"api-version": "1.1"}, "name": project, "files": entries}
        files[f"/simple/{project}/"] = json.dumps(page).encode()
    return files


def serve(pipe: Connection) -> None:
    """Serve the index, and the list of requests at `LOG`."""
    files = files_of_index()
    requests: list[tuple[str, str]] = []

    def response_to(request: str) -> tuple[str, bytes]:
        path = request.split(" ", 2)[1]
        span = re.search(r"\r\nrange: (bytes=(\d*)-(\d*))", request, re.IGNORECASE)
        if path == LOG:
            body = json.dumps(requests).encode()
            requests.clear()
            return "200 OK\r\nContent-Type: application/json", body
        requests.append((path, span[1] if span else ""))
        data = files[path]
        if span is None:
            return "200 OK\r\nContent-Type: application/vnd.pypi.simple.v1+json", data
        start = int(span[2]) if span[2] else max(0, len(data) - int(span[3]))
        part = data[start : int(span[3]) + 1 if span[2] else None]
        last = start + len(part) - 1
        return f"206 Part\r\nContent-Range: bytes {start}-{last}/{len(data)}", part

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                head, body = response_to(request.decode())
                await asyncio.sleep(DELAY)
                writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
                writer.write(body)
                await writer.drain()
        writer.close()

    serve_connections(pipe, answer)


def bare(port: int, requests: Requests) -> float:
    """Return the time of sixteen bare clients, in seconds."""
    started = time.perf_counter()
    pending: queue.SimpleQueue[tuple[str, dict[str, str]]] = queue.SimpleQueue()
    for item in requests:
        pending.put(item)

    def work() -> None:
        with httpx.Client() as client:
            while True:
                try:
                    path, headers = pending.get_nowait()
                except queue.Empty:
                    return
                client.get(f"http://127.0.0.1:{port}{path}", headers=headers)

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


def ours(store: Store) -> float:
    """Return the time of `check` without a cache, in seconds."""
    settings = Settings()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        sources = open_sources([WHEELS], settings)
        cache = Cache(Path(folder))
        redists = [REDISTS["cuda"]]
        workers, checked = Workers(CLIENTS, settings.stop), CheckedFiles(store, cache)
        report = check_data(store, redists, sources, cache, workers, checked=checked)
        sources.close()
        elapsed = time.perf_counter() - started
    kinds = {finding.kind for finding in report.findings}
    assert not kinds & {"unreachable", "changed-upstream", "invalid"}, kinds
    return elapsed


def download(store: Store, folder: Path) -> None:
    """Download the manifests of every release to a data folder."""
    settings = Settings()
    sources = open_sources([WHEELS], settings)
    report = ManifestDownload(
        sources,
        store_destination(store, [REDISTS["cuda"]], store.lock().redists, is_explicit=True),
        Selection(versions=("all",)),
        Cache(folder),
        Workers(CLIENTS, settings.stop),
    ).run()
    sources.close()
    assert [outcome.status for outcome in report.manifests] == ["written"] * len(LABELS)


def main() -> None:
    """Measure and print."""
    with serving(serve) as port:
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            del os.environ[name]
        os.environ |= {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple",
            "NO_PROXY": "127.0.0.1",
        }
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder, "data"), "wheels")
            download(store, Path(folder, "cache"))
            httpx.get(f"http://127.0.0.1:{port}{LOG}")
            ours(store)
            log = httpx.get(f"http://127.0.0.1:{port}{LOG}").json()
            requests: Requests = [(path, {"Range": span} if span else {}) for path, span in log]

            def measured() -> float:
                pairs = [(bare(port, requests), ours(store)) for _ in range(3)]
                ratio = median(own / limit for limit, own in pairs)
                print(
                    f"check of {len(LABELS)} releases of wheels: {ratio:.2f} x {CLIENTS} "
                    f"bare clients for {len(requests)} requests (<= {LIMIT:g}); medians "
                    f"{median(p[1] for p in pairs):.2f} s and {median(p[0] for p in pairs):.2f} s"
                )
                return ratio

            check_limit("check of wheels / bare clients", LIMIT, measured)


if __name__ == "__main__":
    main()
