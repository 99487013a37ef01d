"""Tests of every network command against every server fault.

A fault changes all responses of one kind: listings, manifests, archives, or parts of archives. A
run against it ends with the documented exit code and leaves no half-written file. If only the
first responses are bad, the run recovers if a retry can help. In the end, a run against a good
server gives the same bytes as without any fault.
"""

import contextlib
import functools
import gc
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pytest
from support import binaries
from support import network_faults as bad
from support import server as faults
from support.headers import host_config
from support.network_faults import any_etag, headers, part, raw
from support.ptxas import PROFILES_12_9, ptxas
from support.releases import Packages, put, release
from support.running import invoke
from support.server import Behaviour, FaultServer, Handler
from support.toolkits import MadeSet, listing
from typer.testing import Result

from cudaredist.pipeline.mirror.mirror_pages import generated_files
from cudaredist.pipeline.tables import update
from cudaredist.schema.mirror_lock import MirrorLock
from cudaredist.schema.registry import kind_of_document, read_own_document, read_own_file
from cudaredist.tables.nvcc_compat.compilers import read_header


def with_header(line: bytes) -> Behaviour:
    """Send a good response with an additional header line."""
    return headers(b"Content-Length: %d", line)


def chunked(encode: Callable[[bytes], bytes]) -> Behaviour:
    """Send a chunked body in a given encoding."""
    return headers(b"Transfer-Encoding: chunked", encode=encode)


def chunk(size: bytes, data: bytes) -> bytes:
    return b"%b\r\n%b\r\n" % (size, data)


def flood_of_hints(handler: Handler, _: bytes) -> None:
    """Send early hints as fast as the client reads, until it disconnects."""
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)
    handler.close_connection = True


def hints_before(handler: Handler, data: bytes) -> None:
    """Send a few early hints, then the response."""
    handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" * 5)
    handler.serve(data)


def to_same_port_over_tls(handler: Handler, _: bytes) -> None:
    """Redirect to https on this port, which does not support TLS."""
    handler.answer(302, b"", Location=f"https://127.0.0.1:{handler.server.owner.port}/")


def redirect_in_a_circle(handler: Handler, _: bytes) -> None:
    handler.answer(302, b"", Location=handler.path)


# All sockets must be closed after each fault.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("error:unclosed <socket:ResourceWarning"),
]

Kind = Literal["listing", "manifest", "archive", "part"]

PATHS: dict[Kind, str | tuple[str, ...]] = {
    "listing": "/redist/",
    "manifest": ".json",
    "archive": ("-archive.tar.xz", "-archive.zip"),
    "part": "-archive.zip",
}
"""Path suffixes of the files for each kind of fault."""
OLD, NEW = "12.9.0", "12.9.1"
PATIENT, IMPATIENT = ("--timeout", "60"), ("--timeout", "1")


@dataclass(frozen=True)
class Command:
    """A command with its options and the kinds of responses that it requires."""

    words: tuple[str, ...]
    kinds: tuple[Kind, ...]
    code: int = 0
    """Exit code without a fault."""
    has_new: bool = True
    """Whether the data folder already has the new release's manifest."""
    more: tuple[str, ...] = ("--data-dir", "data", "--cache-dir", "cache", "-j", "2")


PROCESS = ("process-manifests", "--redist", "cuda", "--version", NEW, "--platform", "linux-x86_64")
SET = ("materialize", "set.json", "--root", "root")
COMMANDS = {
    "download-manifests": Command(
        ("download-manifests", "--redist", "cuda", "--json"), ("listing", "manifest"), has_new=False
    ),
    "check": Command(("check", "--redist", "cuda", "--json"), ("listing", "manifest"), code=1),
    "versions": Command(
        ("versions", "--redist", "cuda", "--json"),
        ("listing",),
        more=("--data-dir", "data", "-j", "2"),
    ),
    "process-manifests": Command((*PROCESS, "--json"), ("archive",)),
    "process-manifests-keep": Command((*PROCESS, "--keep-archives"), ("archive",)),
    "process-manifests-peek": Command(
        ("process-manifests", "--redist", "cuda", "--version", NEW, "--peek", "--json"), ("part",)
    ),
    "update-nvcc-compat": Command(("update-nvcc-compat",), ("archive",)),
    "update-gpus": Command(("update-gpus",), ("archive",)),
    "bump": Command(
        ("bump", "--redist", "cuda"), ("listing", "manifest", "archive"), has_new=False
    ),
    "mirror": Command(
        ("mirror", "sync", "mirrored", "--redist", "cuda", "--json"),
        ("listing", "manifest", "archive"),
        more=("--cache-dir", "cache", "-j", "2"),
    ),
    "materialize": Command(SET, ("archive",), more=("-j", "2")),
}


@dataclass(frozen=True)
class Fault:
    """A bad response and the exit codes for each kind of response, in the order of `PATHS`.

    0 means the command's own code: the response is good enough, or a retry helps.
    """

    behaviour: Behaviour
    always: str = "3333"
    once: str = "0000"
    is_endless: bool = False
    """Whether only the time limit ends the response."""


# A part instead of the whole response, or instead of another part, is not requested again.
WRONG_PART = "3303"

FAULTS = {
    # -- parts
    "part that begins elsewhere": Fault(part("bytes 7-{last}/{total}"), once=WRONG_PART),
    "part that ends elsewhere": Fault(part("bytes {first}-{beyond}/{total}"), once="3300"),
    "part of a larger file": Fault(part("bytes {first}-{last}/{beyond}"), "3343", "3343"),
    "part of a smaller file": Fault(part("bytes {first}-{last}/1"), once="3300"),
    "part of a file of unknown size": Fault(part("bytes {first}-{last}/*"), "3303", WRONG_PART),
    "part without a range": Fault(part(None), once="3300"),
    "part in another unit": Fault(part("lines {first}-{last}/{total}"), once="3300"),
    "part backwards": Fault(part("bytes {last}-{first}/{total}"), once="3300"),
    "part of negative size": Fault(part("bytes -5--1/{total}"), once="3300"),
    "part of astronomic size": Fault(part("bytes {first}-{last}/9" + "9" * 40), once="3300"),
    "another part": Fault(bad.shifted(-7), "3303", WRONG_PART),
    "part without a request": Fault(faults.another_part, once=WRONG_PART),
    "several parts": Fault(bad.several_parts, once="3300"),
    "half a part": Fault(bad.half_a_part, "3543", "0540"),
    "no such part": Fault(faults.status(416), once="3333"),
    # -- validators
    "new ETag each time": Fault(bad.new_etag, "0003", "0003"),
    "breaks, then has a new ETag": Fault(bad.breaking(100, any_etag), once="0003"),
    "breaks, then has other bytes": Fault(bad.breaking(100, faults.etag_of, is_altered=True)),
    # -- headers
    "header of megabytes": Fault(with_header(b"X-Long: " + b"x" * (4 << 20))),
    "a hundred thousand headers": Fault(with_header(b"\r\n".join([b"X: y"] * 100_000))),
    "NUL in a header": Fault(with_header(b'ETag: "a\0b"')),
    "NUL in a header's name": Fault(with_header(b"E\0Tag: x")),
    "header without a colon": Fault(with_header(b"nonsense")),
    "header that is not ASCII": Fault(with_header('ETag: "\u00e4\u2028"'.encode()), "0000"),
    "two lengths": Fault(with_header(b"Content-Length: 7")),
    "negative length": Fault(headers(b"Content-Length: -1")),
    "length of words": Fault(headers(b"Content-Length: many")),
    "huge length": Fault(headers(b"Content-Length: 9999999999999999"), "5545", "5545"),
    "length of thirty digits": Fault(headers(b"Content-Length: " + b"9" * 30)),
    "unknown transfer encoding": Fault(headers(b"Transfer-Encoding: gzip, chunked")),
    # -- chunks
    "chunk larger than it states": Fault(chunked(lambda data: chunk(b"5", data))),
    "chunk smaller than it states": Fault(
        chunked(lambda data: chunk(b"fffff", data)), "3345", "0045"
    ),
    "chunk of no number": Fault(chunked(lambda data: chunk(b"lots", data))),
    "chunk of negative size": Fault(chunked(lambda data: chunk(b"-5", data))),
    "chunk of astronomic size": Fault(chunked(lambda data: chunk(b"f" * 40, data))),
    "no last chunk": Fault(chunked(lambda data: chunk(b"%x" % len(data), data))),
    # -- bodies
    "cut": Fault(headers(b"Content-Length: %d", encode=bad.half)),
    "cut, and the length agrees": Fault(faults.truncated_with_matching_length, "3543", "0543"),
    "cut, and there is no length": Fault(headers(encode=bad.half), "3533", "0500"),
    "longer than its length": Fault(headers(b"Content-Length: 40"), "3543", "0540"),
    "reset": Fault(faults.reset_in_the_middle, once="0003"),
    "stalled": Fault(faults.stalling_after(40), is_endless=True),
    "silent": Fault(faults.silent, is_endless=True),
    "flood of early hints": Fault(flood_of_hints, is_endless=True),
    "early hints, then the answer": Fault(hints_before, "0000"),
    # -- redirects
    "redirect in a circle": Fault(redirect_in_a_circle),
    "redirect to a file": Fault(faults.redirect("file:///etc/passwd"), once="3333"),
    "redirect to another scheme": Fault(faults.redirect("gopher://x/"), once="3333"),
    "redirect without encryption": Fault(faults.redirect("http://192.0.2.1/x"), once="3333"),
    "redirect to what is not TLS": Fault(to_same_port_over_tls),
    # -- encodings
    "gzip bomb": Fault(faults.gzip_bomb(256 << 20), "5533", "5533"),
    "half of gzip": Fault(bad.half_of_gzip, once="0033"),
    "twice encoded": Fault(faults.body(b"x", Content_Encoding="gzip, gzip"), once="3333"),
    # -- no HTTP
    "HTTP/0.9": Fault(raw(bytes)),
    "another protocol": Fault(raw(lambda _: b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n")),
    "status of five digits": Fault(raw(lambda _: b"HTTP/1.1 20000 OK\r\n\r\n")),
    "no answer": Fault(raw(lambda _: b"")),
    "no content": Fault(faults.status(204), once="3333"),
}


# -- a server, a data folder, and results


def packages(label: str) -> Packages:
    header = host_config(gcc=14, clang=19)
    return {
        "cuda_nvcc": {
            "linux-x86_64": {
                "include/crt/host_config.h": header,
                "bin/ptxas": ptxas(PROFILES_12_9),
            },
            "windows-x86_64": {"bin/nvcc.exe": b"MZ"},
        },
        "cuda_cudart": {
            "linux-x86_64": {
                "include/cuda_runtime.h": f"// {label}\n".encode(),
                "lib/libcudart.so.12": binaries.elf(soname="libcudart.so.12"),
            },
            # Its directory is larger than the first request.
            "windows-x86_64": {f"include/{n:0100}.h": b"//\n" for n in range(500)},
        },
    }


@functools.cache
def published(label: str) -> dict[str, bytes]:
    return release(label, packages(label))


@functools.cache
def toolkit() -> MadeSet:
    made_set = MadeSet()
    for name in ("cuda_cudart", "libx"):
        content = {"LICENSE": b"x", f"include/{name}.h": b"//\n" * 99}
        made_set.add(name, content)
    return made_set


def serve(server: FaultServer, *labels: str) -> None:
    server.add_releases("cuda", *map(published, labels), toolkit().archives)


@dataclass(frozen=True)
class Place:
    """Working folder of a command and its server."""

    root: Path
    server: FaultServer

    def call(self, command: Command, *more: str) -> tuple[Result, str]:
        """Return the result of a command and its output without values that differ by run."""
        places = [str(self.root / word) if word in NAMES else word for word in command.words]
        options = [str(self.root / word) if word in NAMES else word for word in command.more]
        base = ("--base-url", self.server.url)
        result = invoke(*places, *base, *options, *more)
        return result, result.stdout.replace(self.server.url, "URL").replace(str(self.root), "")

    def files(self) -> dict[str, str | bytes]:
        """Return all permanent files: data, archives and a toolkit root."""
        return {
            path: content
            for path, content in listing(self.root).items()
            if not path.startswith("cache/") or path.startswith("cache/archives/")
        }


NAMES = {"data", "cache", "root", "set.json", "mirrored"}


@pytest.fixture(scope="module", autouse=True)
def _fast() -> Iterator[None]:
    """Read each header once and do not pause between retries."""
    # Close sockets of other tests first.
    gc.collect()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update, "read_header", functools.cache(read_header))
        patch.setattr("cudaredist.source.http_retry.backoff", lambda _: 0.01)
        yield


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with a bump to the old release."""
    root = tmp_path_factory.mktemp("seed")
    with FaultServer() as server:
        serve(server, OLD)
        result, _ = Place(root, server).call(COMMANDS["bump"])
    assert result.exit_code == 0, result.output
    toolkit().write(root / "set.json")
    return root


def place_for(command: Command, seed: Path, root: Path, server: FaultServer) -> Place:
    serve(server, OLD, NEW)
    shutil.copytree(seed, root)
    if command.has_new:
        name = f"redistrib_{NEW}.json"
        put(root / "data/manifests/cuda", {name: published(NEW)[name]})
    return Place(root, server)


@pytest.fixture(scope="module")
def undisturbed(
    seed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[dict[str, str | bytes], str]]:
    """Return a function that gives a command's files and output without a fault."""

    @functools.cache
    def result_of(name: str) -> tuple[dict[str, str | bytes], str]:
        with FaultServer() as server:
            root = tmp_path_factory.mktemp(name) / "place"
            place = place_for(COMMANDS[name], seed, root, server)
            result, printed = place.call(COMMANDS[name])
        assert result.exit_code == COMMANDS[name].code, result.output
        return place.files(), printed

    return result_of


def assert_documented(result: Result, code: int) -> None:
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit | None), result.output
    assert "Traceback" not in result.output


def assert_unharmed(
    files: dict[str, str | bytes], before: dict[str, str | bytes], after: dict[str, str | bytes]
) -> None:
    """Assert that no file is lost and that every file is old, final or valid."""
    assert before.keys() <= files.keys()
    for path, content in files.items():
        if content in (before.get(path), after.get(path)):
            continue
        if path.startswith("cache/archives/"):
            assert path.endswith(".part"), path
        elif path.endswith(("index.html", "SHA256SUMS")):
            lock = read_own_file(cast("bytes", files["mirrored/mirror.json"]), MirrorLock)
            assert content == generated_files(lock.mirrored)[path.removeprefix("mirrored/")]
        elif not path.startswith((".root.cudaredist/", "mirrored/.mirror/partial/")):
            assert isinstance(content, bytes)
            assert path.startswith(("data/", "mirrored/")), path
            assert not path.endswith(".tmp"), path
            document = json.loads(content)
            kind = kind_of_document(document)
            assert kind is not None, path
            read_own_document(document, content, kind.model)


CASES = [
    pytest.param(name, kind, about, id=f"{name}-{kind}-{about}")
    for name, command in COMMANDS.items()
    for kind in command.kinds
    for about in FAULTS
]


@pytest.mark.parametrize(("name", "kind", "fault_name"), CASES)
def test_command_recovers_from_network_fault(
    name: str,
    kind: Kind,
    fault_name: str,
    seed: Path,
    server: FaultServer,
    tmp_path: Path,
    undisturbed: Callable[[str], tuple[dict[str, str | bytes], str]],
) -> None:
    command, fault = COMMANDS[name], FAULTS[fault_name]
    expected, printed = undisturbed(name)
    place = place_for(command, seed, tmp_path / "place", server)
    before = place.files()
    paths = [path for path in server.files if path.endswith(PATHS[kind])]

    def misbehave(times: int | None) -> None:
        for path in paths:
            server.misbehave(path, fault.behaviour, times)

    def code(codes: str) -> int:
        return int(codes[list(PATHS).index(kind)]) or command.code

    misbehave(None)
    limit = IMPATIENT if fault.is_endless else PATIENT
    result, _ = place.call(command, *limit, "--retries", "0")
    assert_documented(result, code(fault.always))
    assert_unharmed(place.files(), before, expected)

    # With a short limit, good responses might come too late.
    if not fault.is_endless:
        misbehave(1)
        result, _ = place.call(command, *PATIENT, "--retries", "2")
        assert_documented(result, code(fault.once))
        assert_unharmed(place.files(), before, expected)

    server.behaviours.clear()
    result, again = place.call(command)
    assert result.exit_code == command.code, result.output
    assert place.files() == expected
    if command.words[0] in {"check", "versions"} or "--peek" in command.words:
        assert again == printed
