"""One pass over an archive against `xz -T1 -dc > /dev/null` on the same archive, in one run.

Usage: process_archives.py [ARCHIVE.tar.xz ...]; without one, an archive of this interpreter's own
binaries is made (about 100 MB unpacked). Five pairs each, medians count; our side is measured
inside the process. Beside one pass from a file: over loopback HTTP, two archives at once against
one after the other, unpacking with tar plus readelf (plus cuobjdump where it is on the PATH) on
every binary, and the peak memory of a process that does nothing else.
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
from verdict import hold

from cudaredist.pipeline.archives import ArchiveRequest, ArchiveService
from cudaredist.source.chain import open_sources
from cudaredist.source.protocol import Settings

FILE_LIMIT, HTTP_LIMIT, PARALLEL_LIMIT, PEER_LIMIT = 1.20, 1.30, 1 / 1.6, 0.5
HALF_PEER_LIMIT = 1.0
MEMORY_LIMIT = 96
"""MB that one worker may take."""
PAIRS = 5
SAMPLE_SIZE = 100 << 20


def sample(folder: Path) -> Path:
    """Make an archive of shared libraries and programs of this machine, by `xz -6` in one block."""
    libraries = Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib")
    files, size = [], 0
    for root in (Path(sys.prefix), libraries, Path("/usr/lib"), Path("/usr/bin")):
        for path in sorted(root.rglob("*")):
            if size < SAMPLE_SIZE and path.is_file() and not path.is_symlink():
                is_binary = ".so" in path.name or os.access(path, os.X_OK)
                if is_binary and path.stat().st_size > 100_000:
                    files.append(path)
                    size += path.stat().st_size
    tar = folder / "sample-linux-x86_64-1.0-archive.tar"
    with tarfile.open(tar, "w") as archive:
        for number, path in enumerate(files):
            archive.add(path, f"sample-linux-x86_64-1.0-archive/lib/{number}-{path.name}")
    subprocess.run(["xz", "-T1", "-6", tar], check=True)
    return tar.with_name(f"{tar.name}.xz")


def examine(base: str, archive: Path, sha256: str, threads: int = 1) -> None:
    """Look into one archive as a worker does."""
    sources = open_sources([base], Settings())
    request = ArchiveRequest(archive.name, (archive.name,), sha256, archive.stat().st_size)
    facts = ArchiveService(chains={(): sources}, jobs=threads).examine(request).facts
    assert any(entry.binary is not None for entry in facts.members)
    sources.close()


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def unpack_only(archive: Path) -> None:
    """Decompress with xz and throw everything away: the limit."""
    subprocess.run(["xz", "-T1", "-dc", archive], check=True, stdout=subprocess.DEVNULL)


def peer(archive: Path) -> None:
    """Unpack, hash, and ask readelf and cuobjdump about every file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sha256sum", archive], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
        for path in Path(folder).rglob("*"):
            if path.is_file() and ".so" in path.name:
                ask("readelf", "-dV", path)
                if shutil.which("cuobjdump"):
                    ask("cuobjdump", path)


def ask(*command: object) -> None:
    """Run a program for its cost."""
    subprocess.run([str(word) for word in command], check=False, capture_output=True)


def serve(pipe: Connection, folder: Path) -> None:
    """Serve the files of a folder on loopback until told to end."""

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
    """Return the MB that a process of its own takes to look into an archive.

    What getrusage says would include the memory of this process when it was forked.
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
    """Measure everything about one archive; exits 1 beyond a limit."""
    sha256 = hashlib.file_digest(archive.open("rb"), "sha256").hexdigest()
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.0f} MB")

    def ratio(what: str, ours: Callable[[], object], theirs: Callable[[], object]) -> float:
        pairs = [(timed(theirs), timed(ours)) for _ in range(PAIRS)]
        found = median(own / other for other, own in pairs)
        seconds = (median(pair[1] for pair in pairs), median(pair[0] for pair in pairs))
        print(f"  {what}: {found:.2f} ({seconds[0]:.2f} s, {seconds[1]:.2f} s)")
        return found

    folder = str(archive.parent)

    def once() -> None:
        examine(folder, archive, sha256)

    def in_turn() -> None:
        once()
        once()

    def twice() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: once(), range(2)))

    def raw() -> None:
        unpack_only(archive)

    hold(FILE_LIMIT, lambda: ratio(f"one pass / xz (<= {FILE_LIMIT})", once, raw))
    with serving(serve, archive.parent) as port:

        def over_http() -> None:
            examine(f"http://127.0.0.1:{port}", archive, sha256)

        hold(HTTP_LIMIT, lambda: ratio(f"over HTTP / xz (<= {HTTP_LIMIT})", over_http, raw))
    what = f"two at once / in turn (<= {PARALLEL_LIMIT:.3f})"
    if (os.cpu_count() or 1) > 1:
        hold(PARALLEL_LIMIT, lambda: ratio(what, twice, in_turn))
    # Without cuobjdump the peer does only half of the work.
    whole = shutil.which("cuobjdump") is not None
    limit = PEER_LIMIT if whole else HALF_PEER_LIMIT
    what = f"one pass / unpack, readelf{', cuobjdump' if whole else ''} (<= {limit})"
    hold(limit, lambda: ratio(what, once, lambda: peer(archive)))
    memory = peak_memory(archive, sha256)
    print(f"  peak memory: {memory:.0f} MB (<= {MEMORY_LIMIT})")
    hold(MEMORY_LIMIT, lambda: memory)


def main() -> None:
    """Measure the archives named, or one made here."""
    if len(sys.argv) > 1:
        for path in sys.argv[1:]:
            measure(Path(path).resolve())
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(sample(Path(folder)))


if __name__ == "__main__":
    main()
