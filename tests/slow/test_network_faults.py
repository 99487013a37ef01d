"""Tests of network commands against server faults: every fault, and the typical ones everywhere.

A fault changes all responses of one kind: listings, manifests, archives, runfiles, or the page
with their MD5 sums. A run against it ends with the documented exit code and leaves no half-written
file. If only the first responses are bad, the run recovers if a retry can help. In the end, a run
against a good server gives the same bytes as without any fault.
"""

import contextlib
import functools
import gc
import hashlib
import json
import random
import shutil
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pytest
import trustme
from support import binaries, runfiles
from support import network_faults as bad
from support import server as faults
from support.headers import host_config
from support.mirrors import without_times
from support.network_faults import any_etag, headers, part, raw
from support.ptxas import PROFILES_12_9, ptxas
from support.releases import Packages, put, release
from support.running import invoke
from support.server import Behaviour, FaultServer, Handler
from support.toolkits import MadeSet, listing
from typer.testing import Result

from cudaredist.commands.mirror.mirror_pages import generated_files
from cudaredist.formats.mirror_lock import MirrorLock
from cudaredist.formats.registry import kind_of_document, read_own_file


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


def then(count: int, behaviour: Behaviour) -> Behaviour:
    """Send `count` bytes of the file, then close. Use `behaviour` for the resumed request."""
    start = bad.breaking(count, faults.etag_of)

    def send(handler: Handler, data: bytes) -> None:
        (behaviour if handler.asked_part(data).start else start)(handler, data)

    return send


def to_same_port_over_tls(handler: Handler, _: bytes) -> None:
    """Redirect to https on this port, which does not support TLS."""
    handler.answer(302, b"", Location=f"https://127.0.0.1:{handler.server.owner.port}/")


def whole(handler: Handler, data: bytes) -> None:
    """Send the whole file, with the same ETag."""
    handler.answer(200, data, ETag=faults.etag_of(data))


def redirect_in_a_circle(handler: Handler, _: bytes) -> None:
    handler.answer(302, b"", Location=handler.path)


# All sockets must be closed after each fault.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("error:unclosed <socket:ResourceWarning"),
]

Kind = Literal["listing", "manifest", "archive", "runfile", "sums"]

PATHS: dict[Kind, str | tuple[str, ...]] = {
    "listing": "/redist/",
    "manifest": ".json",
    "archive": ("-archive.tar.xz", "-archive.zip"),
    "runfile": ".run",
    "sums": "md5sum.txt",
}
"""Path suffixes of the files for each kind of fault."""
OLD, NEW = "12.9.0", "12.9.1"
PATIENT, IMPATIENT = ("--timeout", "60"), ("--timeout", "0.3")
LARGE = random.Random(20261123).randbytes(3_500_000)
"""Bytes that cannot be compressed, so that an archive with them is sent in many pieces."""
MIDDLE = 3 << 20
FOLDER = "compute/cuda/12.9.1"
RUNFILE = f"{FOLDER}/local_installers/{runfiles.NAME}"
RECORDS = "data/runfiles.json"
LOCK = "mirrored/mirror.json"
SUMS = f"{FOLDER}/docs/sidebar/md5sum.txt"


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
SET = ("materialize", "set.json", "--output", "root")
COMMANDS = {
    "download-manifests": Command(
        ("download-manifests", "--redist", "cuda", "--json"), ("listing", "manifest"), has_new=False
    ),
    "check": Command(
        ("check", "--redist", "cuda", "--json"), ("listing", "manifest", "sums"), code=1
    ),
    "versions": Command(
        ("versions", "--redist", "cuda", "--json"),
        ("listing",),
        more=("--data-dir", "data", "-j", "2"),
    ),
    "process-manifests": Command((*PROCESS, "--json"), ("archive",)),
    "process-manifests-keep": Command((*PROCESS, "--keep-archives"), ("archive",)),
    "update-nvcc-compat": Command(("update-nvcc-compat",), ("archive",)),
    "update-gpus": Command(("update-gpus",), ("archive",)),
    "update-symbols": Command(
        ("update-symbols", "--redist", "cuda", "--version", NEW), ("archive",)
    ),
    "bump": Command(
        ("bump", "--redist", "cuda"), ("listing", "manifest", "archive"), has_new=False
    ),
    "mirror": Command(
        ("mirror", "sync", "mirrored", "--redist", "cuda", "--json"),
        ("listing", "manifest", "archive"),
        more=("--cache-dir", "cache", "-j", "2"),
    ),
    "materialize": Command(SET, ("archive",), more=("-j", "2")),
    "runfile": Command(("runfile", "add", RUNFILE), ("runfile",), more=("--data-dir", "data")),
}


@dataclass(frozen=True)
class Fault:
    """A bad response and the exit codes for each kind of response, in the order of `PATHS`.

    The last digit applies to all remaining kinds. 0 means the command's usual code: the response is
    good enough, or a retry helps.
    """

    behaviour: Behaviour
    always: str = "3"
    once: str = "0"
    is_endless: bool = False
    """Whether only the time limit ends the response."""
    times: int = 1
    """The number of bad responses from which a run recovers."""


# A part instead of the whole response, or instead of another part, is not requested again.
WRONG_PART = "33003"

FAULTS = {
    # -- parts
    "part that begins elsewhere": Fault(part("bytes 7-{last}/{total}"), once=WRONG_PART),
    "part that ends elsewhere": Fault(part("bytes {first}-{beyond}/{total}"), once="33003"),
    "part of a larger file": Fault(part("bytes {first}-{last}/{beyond}"), "3343", "33403"),
    "part of a smaller file": Fault(part("bytes {first}-{last}/1"), once="33003"),
    "part of a file of unknown size": Fault(part("bytes {first}-{last}/*"), WRONG_PART, WRONG_PART),
    "part without a range": Fault(part(None), once="33003"),
    "part in another unit": Fault(part("lines {first}-{last}/{total}"), once="33003"),
    "part backwards": Fault(part("bytes {last}-{first}/{total}"), once="33003"),
    "part of negative size": Fault(part("bytes -5--1/{total}"), once="33003"),
    "part of astronomic size": Fault(part("bytes {first}-{last}/9" + "9" * 40), once="33003"),
    "another part": Fault(bad.shifted(-7), WRONG_PART, WRONG_PART),
    "part without a request": Fault(faults.another_part, once=WRONG_PART),
    "several parts": Fault(bad.several_parts, once="33003"),
    "half a part": Fault(bad.half_a_part, "35453", "05453"),
    "no such part": Fault(faults.status(416), once="3"),
    # -- validators
    "new ETag each time": Fault(bad.new_etag, "0"),
    "breaks, then is whole": Fault(then(MIDDLE, whole), "00330", times=2),
    "breaks, then has another part": Fault(then(MIDDLE, bad.shifted(-7)), "00330", times=2),
    "breaks, then has no such part": Fault(then(MIDDLE, faults.status(416)), "00330", times=2),
    "breaks, then is overloaded": Fault(then(MIDDLE, faults.status(503)), "00330", times=2),
    "breaks, then is missing": Fault(then(MIDDLE, faults.status(404)), "00330", "00330", times=2),
    "breaks, then is reset": Fault(then(MIDDLE, faults.reset_in_the_middle), "00330", times=2),
    "breaks, then has a new ETag": Fault(bad.breaking(100, any_etag), "33330"),
    "breaks, then has other bytes": Fault(
        bad.breaking(MIDDLE, faults.etag_of, is_altered=True), "00330", "00040", times=2
    ),
    "breaks, then is another file": Fault(
        bad.breaking(MIDDLE, any_etag, is_altered=True), "00330", times=2
    ),
    # -- headers
    "header of megabytes": Fault(with_header(b"X-Long: " + b"x" * (4 << 20))),
    "a hundred thousand headers": Fault(with_header(b"\r\n".join([b"X: y"] * 100_000))),
    "NUL in a header": Fault(with_header(b'ETag: "a\0b"')),
    "NUL in a header's name": Fault(with_header(b"E\0Tag: x")),
    "header without a colon": Fault(with_header(b"nonsense")),
    "header that is not ASCII": Fault(with_header('ETag: "\u00e4\u2028"'.encode()), "0"),
    "two lengths": Fault(with_header(b"Content-Length: 7")),
    "negative length": Fault(headers(b"Content-Length: -1")),
    "length of words": Fault(headers(b"Content-Length: many")),
    "huge length": Fault(headers(b"Content-Length: 9999999999999999"), "5543", "55403"),
    "length of thirty digits": Fault(headers(b"Content-Length: " + b"9" * 30)),
    "unknown transfer encoding": Fault(headers(b"Transfer-Encoding: gzip, chunked")),
    # -- chunks
    "chunk larger than it states": Fault(chunked(lambda data: chunk(b"5", data))),
    "chunk smaller than it states": Fault(
        chunked(lambda data: chunk(b"fffffff", data)), "33433", "00400"
    ),
    "chunk of no number": Fault(chunked(lambda data: chunk(b"lots", data))),
    "chunk of negative size": Fault(chunked(lambda data: chunk(b"-5", data))),
    "chunk of astronomic size": Fault(chunked(lambda data: chunk(b"f" * 40, data))),
    "no last chunk": Fault(chunked(lambda data: chunk(b"%x" % len(data), data))),
    # -- bodies
    "other byte": Fault(headers(b"Content-Length: %d", encode=bad.damaged), "05440", "05440"),
    "cut before the last byte": Fault(headers(b"Content-Length: %d", encode=bad.all_but_one)),
    "last byte missing, and the length agrees": Fault(
        headers(encode=bad.all_but_one), "35350", "05050"
    ),
    "byte too many": Fault(headers(encode=lambda data: data + b"x"), "05450", "05450"),
    "cut": Fault(headers(b"Content-Length: %d", encode=bad.half)),
    "cut, and the length agrees": Fault(faults.truncated_with_matching_length, "35453", "05453"),
    "cut, and there is no length": Fault(headers(encode=bad.half), "35353", "05053"),
    "longer than its length": Fault(headers(b"Content-Length: 40"), "35450", "05450"),
    "reset": Fault(faults.reset_in_the_middle),
    "reset before the first byte": Fault(faults.reset),
    "byte by byte": Fault(faults.never_ending_of_right_length, is_endless=True),
    "header byte by byte": Fault(faults.header_byte_by_byte, is_endless=True),
    "chunk's size byte by byte": Fault(faults.chunk_extension_for_ever, is_endless=True),
    "stalled": Fault(faults.stalling_after(40), is_endless=True),
    "silent": Fault(faults.silent, is_endless=True),
    "flood of early hints": Fault(flood_of_hints, is_endless=True),
    "early hints, then the answer": Fault(hints_before, "0"),
    # -- statuses
    **{f"status {code}": Fault(faults.status(code), once="3") for code in (304, 401, 403, 404)},
    **{f"status {code}": Fault(faults.status(code)) for code in (408, 429, 500, 502, 503)},
    **{
        f"503, retry after {value!r}": Fault(faults.status(503, Retry_After=value))
        for value in ("0", "-1", "soon", "Thu, 01 Jan 1970 00:00:00 GMT")
    },
    **{
        f"503, retry after {days}": Fault(faults.status(503, Retry_After=value), once="3")
        for days, value in {"a day": "86400", "all days": "9" * 400}.items()
    },
    # -- redirects
    "redirect in a circle": Fault(redirect_in_a_circle),
    "redirect to a file": Fault(faults.redirect("file:///etc/passwd"), once="3"),
    "redirect to another scheme": Fault(faults.redirect("gopher://x/"), once="3"),
    "redirect without encryption": Fault(faults.redirect("http://192.0.2.1/x"), once="3"),
    "redirect to what is not TLS": Fault(to_same_port_over_tls),
    # -- encodings
    "gzip bomb": Fault(faults.gzip_bomb(256 << 20), "553", "553"),
    "half of gzip": Fault(bad.half_of_gzip, once="00330"),
    "twice encoded": Fault(faults.body(b"x", Content_Encoding="gzip, gzip"), once="3"),
    # -- no HTTP
    "HTTP/0.9": Fault(raw(bytes)),
    "another protocol": Fault(raw(lambda _: b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n")),
    "status of five digits": Fault(raw(lambda _: b"HTTP/1.1 20000 OK\r\n\r\n")),
    "no answer": Fault(raw(lambda _: b"")),
    "no content": Fault(faults.status(204), once="3"),
}


# -- a server, a data folder, and results


def packages(label: str) -> Packages:
    header = host_config(gcc=14, clang=19)
    return {
        "cuda_nvcc": {
            "linux-x86_64": {
                "include/crt/host_config.h": header,
                "bin/ptxas": ptxas(PROFILES_12_9),
                "nvvm/libdevice/large.bc": LARGE,
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
        content = {"LICENSE": b"x", f"include/{name}.h": b"//\n" * 99, "share/large": LARGE}
        made_set.add(name, content)
    return made_set


@functools.cache
def runfile_and_sums() -> dict[str, bytes]:
    data = runfiles.runfile(LARGE)
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return {f"/{RUNFILE}": data, f"/{SUMS}": f"{digest}  {runfiles.NAME}\n".encode()}


def serve(server: FaultServer, *labels: str) -> None:
    server.add_releases("cuda", *map(published, labels), toolkit().archives)
    server.files |= runfile_and_sums()


@dataclass(frozen=True)
class Place:
    """Working folder of a command and its server."""

    root: Path
    server: FaultServer

    def call(self, command: Command, *more: str, url: str = "") -> tuple[Result, str]:
        """Return the result of a command and its output without values that differ by run."""
        url = url or self.server.url
        places = {name: str(self.root / name) for name in NAMES} | {RUNFILE: f"{url}/{RUNFILE}"}
        words = [places.get(word, word) for word in (*command.words, *command.more)]
        base = () if RUNFILE in command.words else ("--base-url", url)
        result = invoke(*words, *base, *more)
        return result, result.stdout.replace(self.server.url, "URL").replace(str(self.root), "")

    def files(self) -> dict[str, str | bytes]:
        """Return all permanent files: data, archives and a toolkit root."""
        files = listing(self.root)
        if RECORDS in files:
            record = cast("bytes", files[RECORDS])
            files[RECORDS] = record.replace(self.server.url.encode(), b"http://127.0.0.1")
        if LOCK in files:
            files[LOCK] = without_times(cast("bytes", files[LOCK]))
        return {
            path: content
            for path, content in files.items()
            if not path.startswith("cache/") or path.startswith("cache/archives/")
        }


NAMES = {"data", "cache", "root", "set.json", "mirrored"}


@pytest.fixture(scope="module", autouse=True)
def _fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Retry without pauses, and leave the checkout's folder."""
    # Close sockets of other tests first. Their errors may still refer to them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise, each call parses the checkout's pyproject.toml.
        patch.chdir(tmp_path_factory.mktemp("work"))
        patch.setattr("cudaredist.sources.http_retry.backoff", lambda _: 0.01)
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
    place = Place(root, server)
    if "sums" in command.kinds:
        result, _ = place.call(COMMANDS["runfile"])
        assert result.exit_code == 0, result.output
    return place


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
            lock = read_own_file(cast("bytes", files[LOCK]), MirrorLock)
            assert content == generated_files(lock.mirrored)[path.removeprefix("mirrored/")]
        elif not path.startswith((".root.cudaredist/", "mirrored/.mirror/partial/")):
            assert isinstance(content, bytes)
            assert path.startswith(("data/", "mirrored/")), path
            assert not path.endswith(".tmp"), path
            document = json.loads(content)
            kind = kind_of_document(document)
            assert kind is not None, path
            read_own_file(content, kind.model)


CHEAPEST: dict[Kind, str] = {
    "listing": "versions",
    "manifest": "download-manifests",
    "archive": "process-manifests",
    "runfile": "runfile",
    "sums": "check",
}
"""The command that tests each fault of a kind of response."""
FOR_ALL_COMMANDS = (
    "status 404",
    "status 503",
    "other byte",
    "cut, and the length agrees",
    "breaks, then is overloaded",
    "silent",
)
"""Faults that every command tests: missing, overloaded, damaged, incomplete, resumed and hanging.

The client treats all other faults in the same way for each command.
"""
CASES = [
    pytest.param(name, kind, about, id=f"{name}-{kind}-{about}")
    for name, command in COMMANDS.items()
    for kind in command.kinds
    for about in (FAULTS if CHEAPEST[kind] == name else FOR_ALL_COMMANDS)
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

    def code(codes: str) -> int:
        return int(codes[: list(PATHS).index(kind) + 1][-1]) or command.code

    server.misbehave(paths, fault.behaviour)
    limit = IMPATIENT if fault.is_endless else PATIENT
    result, _ = place.call(command, *limit, "--retries", "0")
    assert_documented(result, code(fault.always))
    assert_unharmed(place.files(), before, expected)

    # With a short limit, good responses might come too late. After a success, nothing is missing.
    if not fault.is_endless and code(fault.always) != command.code:
        # If the first run stored all bytes, this one sends no request.
        server.misbehave(paths, fault.behaviour, fault.times, is_optional=True)
        result, _ = place.call(command, *PATIENT, "--retries", "2")
        assert_documented(result, code(fault.once))
        assert_unharmed(place.files(), before, expected)

    server.behave()
    result, again = place.call(command)
    assert result.exit_code == command.code, result.output
    assert place.files() == expected
    if command.words[0] in {"check", "versions"}:
        assert again == printed


# -- no connection


@contextlib.contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the address of a server that answers each connection without HTTP."""

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def close_at_once(_: socket.socket) -> None:
    """Close the connection without reading."""


def cut_handshake(connection: socket.socket) -> None:
    """Send the start of a TLS record, then close."""
    connection.recv(1)
    connection.sendall(b"\x16\x03\x03\x40\x00")


@contextlib.contextmanager
def untrusted() -> Iterator[str]:
    """Yield the address of a server whose certificate nobody trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with FaultServer(context) as server:
        yield f"127.0.0.1:{server.port}"


def answer_in_clear(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")


CONNECTIONS: dict[str, tuple[str, Callable[[], contextlib.AbstractContextManager[str]]]] = {
    "closed port": ("http", lambda: contextlib.nullcontext("127.0.0.1:9")),
    "closed at once": ("http", lambda: listening(close_at_once)),
    "not TLS": ("https", lambda: listening(answer_in_clear)),
    "cut handshake": ("https", lambda: listening(cut_handshake)),
    "untrusted certificate": ("https", untrusted),
}


@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("name", COMMANDS)
def test_command_without_connection_changes_nothing(
    name: str,
    connection: str,
    seed: Path,
    server: FaultServer,
    tmp_path: Path,
    undisturbed: Callable[[str], tuple[dict[str, str | bytes], str]],
) -> None:
    command, (scheme, serving) = COMMANDS[name], CONNECTIONS[connection]
    expected, _ = undisturbed(name)
    place = place_for(command, seed, tmp_path / "place", server)
    before = place.files()
    with serving() as address:
        result, _ = place.call(command, "--retries", "1", url=f"{scheme}://{address}")
    assert_documented(result, 3)
    assert_unharmed(place.files(), before, expected)
    result, _ = place.call(command)
    assert result.exit_code == command.code, result.output
    assert place.files() == expected
