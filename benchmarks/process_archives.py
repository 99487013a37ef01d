"""Compare one pass over an archive with xz.

The peer is `xz -T1 -dc > /dev/null`. Usage: process_archives.py [ARCHIVE.tar.xz ...]. The default
is an archive of this interpreter's binaries (about 100 MB unpacked). The result is the median of
five pairs. The time of cudaredist is measured inside the process.

Also measures one pass over loopback HTTP, two archives in parallel and in sequence, tar and readelf
for every binary (and cuobjdump if it is on the PATH), and the peak memory of a separate process.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from serving import serving
from verdict import check_limit, measure_files

from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest

FILE_LIMIT, HTTP_LIMIT, PARALLEL_LIMIT, PEER_LIMIT = 1.20, 1.30, 1 / 1.6, 0.5
HALF_PEER_LIMIT = 1.0
MEMORY_LIMIT = 96
"""Largest memory for one worker, in MB."""
PAIRS = 5
SAMPLE_SIZE = 100 << 20


def sample(folder: Path) -> Path:
    """Create an archive of this machine's binaries.

    Compressed with `xz -6` in one block.
    """
    files = binaries_of_machine(SAMPLE_SIZE)
    tar = folder / "sample-linux-x86_64-1.0-archive.tar"
    with tarfile.open(tar, "w") as archive:
        for number, path in enumerate(files):
            archive.add(path, f"sample-linux-x86_64-1.0-archive/lib/{number}-{path.name}")
    subprocess.run(["xz", "-T1", "-6", tar], check=True)
    return tar.with_name(f"{tar.name}.xz")


def binaries_of_machine(most: int) -> list[Path]:
    """Return binaries of the interpreter and the system, up to a total size."""
    libraries = Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib")
    files, size = [], 0
    for root in (Path(sys.prefix), libraries, Path("/usr/lib"), Path("/usr/bin")):
        for path in sorted(root.rglob("*")):
            if size < most and path.is_file() and not path.is_symlink():
                is_binary = ".so" in path.name or os.access(path, os.X_OK)
                if is_binary and path.stat().st_size > 100_000:
                    files.append(path)
                    size += path.stat().st_size
    return files


def examine(base: str, archive: Path, sha256: str, threads: int = 1) -> None:
    """Inspect one archive, like a worker."""
    sources = open_sources([base], Settings())
    request = ArchiveRequest(archive.name, (archive.name,), sha256, archive.stat().st_size)
    facts = ArchiveService(chains={(): sources}, jobs=threads).examine(request).facts
    assert any(entry.binary is not None for entry in facts.members)
    sources.close()


def timed(work: Callable[[], object]) -> float:
    """Return the time of a call, in seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def unpack_only(archive: Path) -> None:
    """Decompress with xz, without output."""
    subprocess.run(["xz", "-T1", "-dc", archive], check=True, stdout=subprocess.DEVNULL)


def peer(archive: Path) -> None:
    """Unpack and hash, then run readelf and cuobjdump on every file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sha256sum", archive], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
        for path in Path(folder).rglob("*"):
            if path.is_file() and ".so" in path.name:
                run_quietly("readelf", "-dV", path)
                if shutil.which("cuobjdump"):
                    run_quietly("cuobjdump", path)


def run_quietly(*command: object) -> None:
    """Run a program and ignore its output."""
    subprocess.run([str(word) for word in command], check=False, capture_output=True)


def serve(pipe: Connection, folder: Path) -> None:
    """Serve the files of a folder on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = folder / self.path.lstrip("/")
            self.send_response(200)
            self.send_header("Content-Length", str(path.stat().st_size))
            self.end_headers()
            with path.open("rb") as file:
                self.connection.sendfile(file)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pipe.send(server.server_address[1])
    server.serve_forever()


def peak_memory(archive: Path, sha256: str) -> float:
    """Return the peak memory of a separate process, in MB.

    getrusage is not used, because its result includes the memory of this process at the fork.
    """
    code = (
        "import re, sys; from pathlib import Path;"
        "sys.path.insert(0, sys.argv[3]); from process_archives import examine;"
        "examine(str(Path(sys.argv[1]).parent), Path(sys.argv[1]), sys.argv[2]);"
        "text = Path('/proc/self/status').read_text();"
        "print(int(re.search(r'VmHWM:\\s*(\\d+)', text)[1]) / 1024)"
    )
    command = [sys.executable, "-c", code, str(archive), sha256, str(Path(__file__).parent)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(archive: Path) -> None:
    """Measure one archive."""
    sha256 = hashlib.file_digest(archive.open("rb"), "sha256").hexdigest()
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.0f} MB")

    def ratio(label: str, ours: Callable[[], object], theirs: Callable[[], object]) -> float:
        pairs = [(timed(theirs), timed(ours)) for _ in range(PAIRS)]
        result = median(own / other for other, own in pairs)
        seconds = (median(pair[1] for pair in pairs), median(pair[0] for pair in pairs))
        print(f"  {label}: {result:.2f} ({seconds[0]:.2f} s, {seconds[1]:.2f} s)")
        return result

    folder = str(archive.parent)

    def once() -> None:
        examine(folder, archive, sha256)

    def in_sequence() -> None:
        once()
        once()

    def in_parallel() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: once(), range(2)))

    def raw() -> None:
        unpack_only(archive)

    check_limit(
        "one pass / xz", FILE_LIMIT, lambda: ratio(f"one pass / xz (<= {FILE_LIMIT})", once, raw)
    )
    with serving(serve, archive.parent) as port:

        def over_http() -> None:
            examine(f"http://127.0.0.1:{port}", archive, sha256)

        check_limit(
            "one pass over HTTP / xz",
            HTTP_LIMIT,
            lambda: ratio(f"over HTTP / xz (<= {HTTP_LIMIT})", over_http, raw),
        )
    label = f"two in parallel / in sequence (<= {PARALLEL_LIMIT:.3f})"
    if (os.cpu_count() or 1) > 1:
        check_limit(
            "two in parallel / in sequence",
            PARALLEL_LIMIT,
            lambda: ratio(label, in_parallel, in_sequence),
        )
    # Without cuobjdump, the peer does only half of the work.
    whole = shutil.which("cuobjdump") is not None
    limit = PEER_LIMIT if whole else HALF_PEER_LIMIT
    label = f"one pass / unpack, readelf{', cuobjdump' if whole else ''} (<= {limit})"
    check_limit(
        "one pass / other programs", limit, lambda: ratio(label, once, lambda: peer(archive))
    )
    memory = peak_memory(archive, sha256)
    print(f"  peak memory: {memory:.0f} MB (<= {MEMORY_LIMIT})")
    check_limit("MB of one pass", MEMORY_LIMIT, lambda: memory)


if __name__ == "__main__":
    measure_files(measure, sample)
