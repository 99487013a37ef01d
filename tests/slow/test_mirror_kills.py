"""mirror sync killed at random steps, from a server with faults, while a reader polls."""

import contextlib
import json
import os
import random
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from support import network_faults as bad
from support import server as faults
from support.killing import Killer
from support.mirrors import mirrored, serve_releases, without_times
from support.server import Behaviour, FaultServer, Handler

pytestmark = pytest.mark.slow

KILLS = 50
STEPS_OF_RUN = 60
"""Rounded number of steps without faults."""
SEED = 20261122
SIZE = 400_000

FAULTS: tuple[Behaviour, ...] = (
    faults.reset_in_the_middle,
    faults.truncated,
    faults.truncated_with_matching_length,
    faults.without_length,
    faults.another_part,
    faults.status(503),
    faults.status(404),
    faults.body(b"something else"),
    faults.breaking_after(SIZE // 3),
    bad.half_a_part,
    bad.several_parts,
    bad.new_etag,
    bad.shifted(-7),
    bad.breaking(SIZE // 3, faults.etag_of, is_altered=True),
    bad.headers(encode=bad.half),
    bad.headers(b"Content-Length: 40"),
    bad.raw(lambda _: b""),
    bad.half_of_gzip,
)


def sometimes_faulty(moments: random.Random) -> Behaviour:
    """Answer some requests with one of the faults."""
    mutex = threading.Lock()

    def send(handler: Handler, data: bytes) -> None:
        with mutex:
            fault = moments.choice(FAULTS) if moments.random() < 0.3 else None
        if fault is None:
            handler.serve(data)
        else:
            fault(handler, data)

    return send


class Reader:
    """Reads all files of a mirror again and again, and notes wrong ones."""

    def __init__(self, mirror: Path, files: Mapping[str, bytes]) -> None:
        self.wrong: set[str] = set()
        self.reads = 0
        self._mirror = mirror
        self._files = files

    def poll(self, stop: threading.Event) -> None:
        # Without a pause, the server in this process would be slow.
        while not stop.wait(0.002):
            # Unlike rglob, walk passes over folders that the test removes.
            for folder, _, names in os.walk(self._mirror):
                for path in (Path(folder, name) for name in names):
                    name = path.relative_to(self._mirror).as_posix()
                    if not name.startswith(".mirror/partial"):
                        with contextlib.suppress(FileNotFoundError):
                            self._read(name, path.read_bytes())

    def _read(self, name: str, data: bytes) -> None:
        self.reads += 1
        if not self._is_right(name, data):
            self.wrong.add(name)

    def _is_right(self, name: str, data: bytes) -> bool:
        name = name.replace(".mirror/manifests/cuda/", "compute/cuda/redist/")
        if name in self._files:
            return data == self._files[name]
        if name.endswith(".tmp"):
            return True
        if name.endswith("index.html"):
            return data.endswith(b"</html>\n")
        if name == "SHA256SUMS":
            return re.fullmatch(rb"([0-9a-f]{64}  \S+\n)*", data) is not None
        return isinstance(json.loads(data), dict)


@contextlib.contextmanager
def polling(mirror: Path, files: Mapping[str, bytes]) -> Iterator[Reader]:
    reader, stop = Reader(mirror, files), threading.Event()
    thread = threading.Thread(target=reader.poll, args=(stop,))
    thread.start()
    try:
        yield reader
    finally:
        stop.set()
        thread.join()


def inner(mirror: Path) -> dict[str, bytes]:
    """Return the files of a mirror and its manifests as fetched."""
    manifests = mirror / ".mirror/manifests"
    files = mirrored(mirror)
    files["mirror.json"] = without_times(files["mirror.json"])
    return files | {f".mirror/{path.name}": path.read_bytes() for path in manifests.rglob("*.json")}


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "mirror-killed"


@pytest.fixture
def call(server: FaultServer, mirror: Path) -> Callable[[Path], tuple[object, ...]]:
    selection = ("--redist", "cuda", "--version", "all", "-j", 2)
    source = ("--base-url", server.url, "--retries", 0, *selection)
    return lambda folder: ("mirror", "sync", folder, *source)


def test_mirror_after_kills_and_faults_equals_one_made_in_peace(
    server: FaultServer, mirror: Path, tmp_path: Path, call: Callable[[Path], tuple[object, ...]]
) -> None:
    files = serve_releases(server, size=SIZE)
    peaceful = tmp_path / "peaceful"
    moments = random.Random(SEED)
    reached = set()
    codes = []
    with contextlib.closing(Killer(mirror.name)) as killer:
        assert killer.run(*call(peaceful)) == 0
        server.misbehave(server.files, sometimes_faulty(moments))
        with polling(mirror, files) as reader:
            for number in range(KILLS):
                codes.append(killer.run(*call(mirror), step=moments.randrange(STEPS_OF_RUN)))
                reached.add(sum(path in files for path in mirrored(mirror)))
                # The last ones stay, so that a killed mirror is resumed.
                if number % 3 == 2 and number < KILLS - 1:
                    shutil.rmtree(mirror, ignore_errors=True)
            server.behave()
            assert killer.run(*call(mirror)) == 0
    assert reader.wrong == set()
    assert reader.reads > KILLS
    assert codes.count(-9) > KILLS / 2
    assert len(reached) > 3, "the kills hit only the beginning or the end"
    assert inner(mirror) == inner(peaceful)
    assert not [path for path in mirror.rglob("*") if path.suffix in {".tmp", ".part"}]


def test_mirror_killed_at_each_step_resumes(
    server: FaultServer, mirror: Path, tmp_path: Path, call: Callable[[Path], tuple[object, ...]]
) -> None:
    files = serve_releases(server)
    peaceful = tmp_path / "peaceful"
    with contextlib.closing(Killer(mirror.name)) as killer:
        assert killer.run(*call(peaceful)) == 0
        steps = iter(range(0, 10_000, 5))
        code = -9
        with polling(mirror, files) as reader:
            while code == -9:
                shutil.rmtree(mirror, ignore_errors=True)
                code = killer.run(*call(mirror), step=next(steps))
                assert killer.run(*call(mirror)) == 0
                assert inner(mirror) == inner(peaceful)
    assert next(steps) > 60
    assert reader.wrong == set()
