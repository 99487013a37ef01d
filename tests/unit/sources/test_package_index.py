"""Tests of package indexes over real sockets: pages, sources, credentials and metadata."""

import base64
import contextlib
import json
import os
import ssl
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from support import server as faults
from support.cost import calls
from support.patching import Patch
from support.server import Behaviour, FaultServer, Handler
from support.wheels import metadata_of, put_wheel, wheel

from cudaredist.errors import (
    ArchiveMismatchError,
    InvalidArchiveError,
    NotAtSourceError,
    SourceError,
    TransientError,
    UsageError,
)
from cudaredist.primitives import sha256_of
from cudaredist.sources.index_page import LINKS_LIMIT, read_page
from cudaredist.sources.protocol import Settings
from cudaredist.sources.wheel_index import WheelIndex

JSON = "application/vnd.pypi.simple.v1+json"
NAME = "x-1.0-py3-none-win_amd64.whl"
FILE = "/files/x-1.0-py3-none-any.whl"
"""The wheel on the server."""
SHA256 = "a" * 64

Open = Callable[..., WheelIndex]


def page(files: list[dict[str, Any]], version: str = "1.1") -> bytes:
    return json.dumps({"meta": {"api-version": version}, "name": "x", "files": files}).encode()


# -- pages


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        ({}, "url", f"https://host/simple/x/{NAME}"),
        ({"url": f"/files/{NAME}"}, "url", f"https://host/files/{NAME}"),
        ({}, "sha256", None),
        ({"hashes": {"sha256": SHA256.upper(), "md5": "1"}}, "sha256", SHA256),
        ({"hashes": {"sha256": "short"}}, "sha256", None),
        ({"size": 12}, "size", 12),
        ({"size": "12"}, "size", None),
        ({"size": 0}, "size", None),
        ({"size": True}, "size", None),
        ({"yanked": False}, "is_yanked", False),
        ({"yanked": ""}, "is_yanked", True),
        ({"yanked": "why"}, "is_yanked", True),
        ({}, "metadata_sha256", None),
        ({"core-metadata": False}, "metadata_sha256", None),
        ({"core-metadata": True}, "metadata_sha256", ""),
        ({"dist-info-metadata": {"sha256": SHA256}}, "metadata_sha256", SHA256),
        ({}, "uploaded", None),
        ({"upload-time": "2026-11-04T16:18:53.069145Z"}, "uploaded", "2026-11-04"),
        ({"upload-time": "2026-11-04"}, "uploaded", "2026-11-04"),
        ({"upload-time": "yesterday"}, "uploaded", None),
        ({"upload-time": 1762273133}, "uploaded", None),
    ],
)
def test_json_page_contains_field(entry: dict[str, Any], field: str, value: object) -> None:
    item = {"filename": NAME, "url": NAME, "hashes": {}} | entry
    (wheel_file,) = read_page(page([item]), JSON, "https://host/simple/x/", "shown")
    assert getattr(wheel_file, field) == value


@pytest.mark.parametrize(
    ("link", "field", "value"),
    [
        (f"<a href='{NAME}'>", "url", f"https://host/simple/x/{NAME}"),
        (f"<base href='https://b/y/'><a href='{NAME}'>", "url", f"https://b/y/{NAME}"),
        (
            f"<base href=a/><base href=b/><a href='{NAME}'>",
            "url",
            f"https://host/simple/x/b/{NAME}",
        ),
        (f'<A HREF="../{NAME}?a=1&amp;b=2">', "url", f"https://host/simple/{NAME}?a=1&b=2"),
        (f"<a href='{NAME.replace('-', '%2D')}'>", "file_name", NAME),
        (f"<a href='{NAME}#sha256={SHA256}'>", "sha256", SHA256),
        (f"<a href='{NAME}#md5={SHA256}'>", "sha256", None),
        (f"<a href='{NAME}' data-yanked>", "is_yanked", True),
        (f"<a href='{NAME}'>", "is_yanked", False),
        (f"<a href='{NAME}' data-core-metadata='true'>", "metadata_sha256", ""),
        (f"<a href='{NAME}' data-dist-info-metadata='sha256={SHA256}'>", "metadata_sha256", SHA256),
        (f"<a name='top'><a href='http://[x'><a href='{NAME}'>", "size", None),
    ],
)
def test_html_page_contains_field(link: str, field: str, value: object) -> None:
    data = f"<html><body>{link}</a></body></html>".encode()
    (wheel_file,) = read_page(data, "text/html; charset=UTF-8", "https://host/simple/x/", "shown")
    assert getattr(wheel_file, field) == value


@pytest.mark.parametrize(
    ("data", "kind", "error"),
    [
        (page([])[:-5], JSON, TransientError),
        (b"<html><body><a href='x'>", "text/html", TransientError),
        (b"<html><body><a href='../'></body><!-- </html>", "text/html", None),
        (b"<html><body><a href='x-1.tar.gz'></body>", "text/html", None),
        (b"<html><meta content='1.9' name='pypi:repository-version'></html>", "text/html", None),
        (b"<html><meta name='api-version' value='2'></html>", "text/html", None),
        (f"<a href='{NAME}'>".encode(), "text/html", None),
        (f"<a href='{NAME}'>x</a><a href='{NAME}".encode(), "text/html", TransientError),
        (f"<a href='{NAME}'>x</a><a".encode(), "text/html", TransientError),
        (b"<a href='x-2-py3-none-any.whl' <a href='../'>", "text/html", TransientError),
        (b"<html>captive portal</html>", "text/html", SourceError),
        (b"<html><body><a href='/login'>log in</a></body></html>", "text/html", SourceError),
        (b"", "text/html", SourceError),
        (b"<![CDATA[ x", "text/html", SourceError),
        (b"<meta name='pypi:repository-version' content='2.0'>", "text/html", SourceError),
        (b"<a href='%b'>" % (b"x" * 200_000), "text/html", SourceError),
        (b"<a href='&#%b;'>" % (b"9" * 5000), "text/html", SourceError),
        (b"log in", "text/plain", SourceError),
        (b"", "", SourceError),
        (page([], version="2.0"), JSON, SourceError),
        (b"[]", JSON, SourceError),
        (b'{"meta": {"api-version": "1.0"}}', JSON, SourceError),
        (page([{"filename": NAME}]), JSON, SourceError),
        (page([{"filename": 5, "url": "x", "hashes": {}}]), JSON, SourceError),
        (page([{"filename": NAME, "url": "x" * 200_000, "hashes": {}}]), JSON, SourceError),
        (b'{"meta": {"api-version": "1.0"}, "files": {}}', JSON, SourceError),
        (b'{"meta": {"api-version": "1.0"}, "files": [], "files": []}', JSON, TransientError),
        (b"[" * 100_000, JSON, TransientError),
        (b"", JSON, TransientError),
    ],
)
def test_invalid_page_is_an_error(data: bytes, kind: str, error: type[SourceError] | None) -> None:
    if error is None:
        assert isinstance(read_page(data, kind, "https://host/", "shown"), list)
        return
    with pytest.raises(error) as error_info:
        read_page(data, kind, "https://host/", "shown")
    assert isinstance(error_info.value, TransientError) == (error is TransientError)


def test_page_with_more_links_than_the_limit_is_an_error(patch: Patch) -> None:
    assert LINKS_LIMIT <= 50_000
    patch("cudaredist.sources.index_page.LINKS_LIMIT", 50)
    assert read_page(b"<a href=x.zip>" * 50, "text/html", "https://host/", "shown") == []
    with pytest.raises(SourceError, match="more than 50 links"):
        read_page(b"<a href=x.zip>" * 51, "text/html", "https://host/", "shown")


IN_JSON = b'{"meta": {"api-version": "1.0"}, "files": [], "x": ['


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "piece", "end", "kind"),
    [
        (b"", b"<a ", b"", "text/html"),
        (b"<a ", b"a ", b">", "text/html"),
        (IN_JSON, b"[],", b"0]}", JSON),
        (IN_JSON, b'{"":1},' + b" " * 26, b"0]}", JSON),
    ],
)
def test_hostile_page_needs_bounded_memory(
    begin: bytes, piece: bytes, end: bytes, kind: str
) -> None:
    data = begin + piece * ((1 << 20) // len(piece)) + end
    tracemalloc.start()
    try:
        with contextlib.suppress(SourceError):
            read_page(data, kind, "https://host/simple/x/", "shown")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


# -- sources


@pytest.fixture
def open_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Return a function that opens an index with given pip options only."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HOME", str(tmp_path))
    only_wheel: list[WheelIndex] = []

    def index(
        server: FaultServer | None = None, *, offline: bool = False, **options: object
    ) -> WheelIndex:
        if server is not None:
            options = {"no_index": 0, "index_url": f"{server.url}/simple"} | options
        for name, value in ({"no_index": 1} | options).items():
            monkeypatch.setenv(f"PIP_{name.upper()}", str(value))
        only_wheel.append(WheelIndex(Settings(retries=0, timeout=5, offline=offline)))
        return only_wheel[-1]

    yield index
    for one in only_wheel:
        one.close()


def put_page(server: FaultServer, *versions: str, prefix: str = "/simple") -> None:
    """Serve wheels of x and a page that lists them."""
    files = []
    for version in versions:
        name = f"x-{version}-py3-none-any.whl"
        data = server.files[f"/files/{name}"] = wheel("x", version, {})
        files.append(
            {"filename": name, "url": f"../../files/{name}", "hashes": {"sha256": sha256_of(data)}}
        )
    server.files[f"{prefix}/x/"] = page(files)
    server.answers[f"{prefix}/x/"] = json_page


@pytest.fixture
def served(server: FaultServer) -> FaultServer:
    """Serve version 1.0 of x."""
    put_page(server, "1.0")
    return server


def json_page(handler: Handler, data: bytes) -> None:
    handler.answer(200, data, Content_Type=JSON)


def requiring(login: str, behaviour: Behaviour = json_page) -> Behaviour:
    """Return a behaviour that requires credentials."""
    expected = "Basic " + base64.b64encode(login.encode()).decode()

    def answer(handler: Handler, data: bytes) -> None:
        if handler.headers.get("Authorization") == expected:
            behaviour(handler, data)
        else:
            handler.answer(401, b"who?")

    return answer


def edit_page(server: FaultServer, **changes: Any) -> None:
    """Change the first file of the page."""
    document = json.loads(server.files["/simple/x/"])
    document["files"][0] |= changes
    server.files["/simple/x/"] = json.dumps(document).encode()


def versions(index: WheelIndex) -> list[str]:
    return sorted(str(wheel.version) for wheel in index.wheels(["x"])["x"])


def test_wheels_of_all_indexes_and_folders_are_found(
    open_index: Open, server: FaultServer, tmp_path: Path
) -> None:
    put_page(server, "1.0", "1.1")
    put_page(server, "1.1", "1.2", prefix="/other")
    folder = tmp_path / "links"
    path = put_wheel(folder, "x", "1.0", {"more": b"1"})
    put_wheel(folder, "x", "1.3")
    put_wheel(tmp_path / "local/x", "x", "1.4")
    (tmp_path / "local/x/index.html").write_text("<a href='x-1.4-py3-none-any.whl'>x</a>")
    (folder / "more.html").write_text("<a href='../local/x/x-1.4-py3-none-any.whl'></a>")
    index = open_index(
        no_index=0,
        index_url=f"{server.url}/simple/",
        extra_index_url=f"{server.url}/other {(tmp_path / 'local').as_uri()}",
        find_links=f"{folder} {tmp_path}/missing",
    )
    assert versions(index) == ["1.0", "1.1", "1.2", "1.3", "1.4"]
    first = next(wheel for wheel in index.wheels(["x"])["x"] if str(wheel.version) == "1.0")
    assert b"".join(index.stream(first)) == path.read_bytes()
    assert index.verified([first])[0].sha256 == sha256_of(path.read_bytes())
    assert server.requests["/simple/x/"] == server.requests["/other/x/"] == 1


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_project_denied_by_second_index_is_missing(
    open_index: Open, served: FaultServer, status: int
) -> None:
    served.misbehave("/other/x/", faults.status(status))
    urls = {"index_url": f"{served.url}/other", "extra_index_url": f"{served.url}/simple"}
    assert versions(open_index(no_index=0, **urls)) == ["1.0"]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (faults.status(401), "401"),
        (faults.status(403), "403"),
        (faults.status(500), "500"),
        (faults.body(page([])[:-3], Content_Type=JSON), "not JSON"),
        (faults.body(b"<html><a href='x'>", Content_Type="text/html"), "no end"),
        (faults.body(b"x", Content_Type="image/png"), "image/png"),
        (faults.truncated, "connection broke"),
        (faults.reset_in_the_middle, "connection broke"),
        (faults.redirect("http://192.0.2.1/simple/x/"), "not encrypted"),
    ],
)
def test_failure_of_only_index_is_an_error(
    open_index: Open, served: FaultServer, behaviour: Behaviour, words: str
) -> None:
    served.misbehave("/simple/x/", behaviour)
    url = served.url.replace("//", "//user:secret@")
    index = open_index(no_index=0, index_url=f"{url}/simple")
    with pytest.raises(TransientError, match="no answer for x") as raised:
        index.wheels(["x"])
    assert words in str(raised.value)
    assert "secret" not in str(raised.value)


def test_failing_index_is_an_error_despite_wheel_in_folder(
    open_index: Open, server: FaultServer, tmp_path: Path
) -> None:
    put_wheel(tmp_path / "links", "x", "1.0")
    server.misbehave("/simple/x/", faults.status(500))
    index = open_index(no_index=0, index_url=f"{server.url}/simple", find_links=tmp_path / "links")
    with pytest.raises(TransientError, match="500"):
        index.wheels(["x"])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://192.0.2.1/simple", "without encryption"),
        ("file:///unmounted", "no such folder"),
        (f"file:///{'n' * 300}", "no such folder"),
    ],
)
def test_unusable_index_is_an_error(open_index: Open, url: str, message: str) -> None:
    with pytest.raises(TransientError, match=message):
        open_index(no_index=0, index_url=url).wheels(["x"])


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@host:port/simple",
        "https://user:secret@[x/",
        "https:/user:secret@host/",
        "ftp://user:secret@host/",
        "https://",
    ],
)
def test_invalid_index_url_is_an_error_without_credentials(open_index: Open, url: str) -> None:
    with pytest.raises((UsageError, TransientError)) as raised:
        open_index(no_index=0, index_url=url).wheels(["x"])
    assert "secret" not in str(raised.value)


def test_page_of_server_cannot_link_to_local_files(
    open_index: Open, served: FaultServer, tmp_path: Path
) -> None:
    path = put_wheel(tmp_path, "x", "1.1")
    page_data = json.loads(served.files["/simple/x/"])
    page_data["files"].append({"filename": path.name, "url": path.as_uri(), "hashes": {}})
    served.files["/simple/x/"] = json.dumps(page_data).encode()
    assert versions(open_index(served)) == ["1.0"]


def test_offline_index_reads_folders_only(
    open_index: Open, served: FaultServer, tmp_path: Path
) -> None:
    put_wheel(tmp_path / "links", "x", "1.1")
    index = open_index(
        offline=True, no_index=0, index_url=f"{served.url}/simple", find_links=tmp_path / "links"
    )
    assert versions(index) == ["1.1"]
    assert not served.headers


@pytest.mark.parametrize(("configured", "used"), [(30.0, 0.5), (20.0, 20.0)])
def test_timeout_of_pip_replaces_default(
    open_index: Open, monkeypatch: pytest.MonkeyPatch, configured: float, used: float
) -> None:
    open_index()
    monkeypatch.setenv("PIP_TIMEOUT", "0.5")
    index = WheelIndex(Settings(timeout=configured))
    assert index._client._settings.timeout == used
    index.close()


# -- credentials and certificates


@pytest.mark.parametrize("way", ["address", "netrc", "keyring"])
def test_credentials_are_sent_for_pages_and_files_of_index(
    open_index: Open,
    served: FaultServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    patch: Patch,
    way: str,
) -> None:
    for path in list(served.files):
        is_page = path.endswith("/")
        behaviour = json_page if is_page else lambda handler, data: handler.serve(data)
        served.misbehave(path, requiring("me:it's", behaviour))
    url = served.url
    if way == "address":
        url = url.replace("//", "//me:it%27s@")
    elif way == "netrc":
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password it's\n")
        (tmp_path / ".netrc").chmod(0o600)
    else:
        program = tmp_path / "bin/keyring"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\necho \'{"username": "me", "password": "it\'"\'"\'s"}\'\n')
        program.chmod(0o700)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        # The package keyring may be installed, because twine requires it.
        patch("importlib.util.find_spec", lambda _: None)
    index = open_index(no_index=0, index_url=f"{url}/simple")
    (wheel_file,) = index.wheels(["x"])["x"]
    assert index.metadata([wheel_file])[0].summary == "x"
    assert sha256_of(b"".join(index.stream(wheel_file))) == wheel_file.sha256


def test_credentials_do_not_leave_their_server(open_index: Open, server: FaultServer) -> None:
    with FaultServer() as other:
        put_page(other, "1.0")
        server.misbehave("/simple/x/", faults.redirect(f"{other.url}/simple/x/"))
        url = server.url.replace("//", "//me:secret@")
        index = open_index(no_index=0, index_url=f"{url}/simple")
        assert versions(index) == ["1.0"]
        assert "Authorization" in server.headers[0][1]
        assert all("Authorization" not in headers for _, headers in other.headers)


@pytest.mark.parametrize("option", ["cert", "trusted_host", None])
def test_certificate_of_index_is_verified(
    open_index: Open,
    secure: FaultServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    put_page(secure, "1.0")
    options = {"cert": tmp_path / "ca.pem", "trusted_host": "127.0.0.1"}
    more = {} if option is None else {option: options[option]}
    index = open_index(no_index=0, index_url=f"{secure.url}/simple", **more)
    if option is None:
        with pytest.raises(TransientError, match="certificate is not trusted"):
            index.wheels(["x"])
    else:
        assert versions(index) == ["1.0"]


def test_client_certificate_is_sent(
    open_index: Open, authority: trustme.CA, tmp_path: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("me").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "me"))
    with FaultServer(context) as server:
        put_page(server, "1.0")
        url = f"{server.url}/simple"
        index = open_index(no_index=0, index_url=url, client_cert=tmp_path / "me")
        assert versions(index) == ["1.0"]


def test_missing_certificate_file_is_an_error(open_index: Open, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot prepare a connection"):
        open_index(no_index=0, index_url="https://127.0.0.1/simple", cert=tmp_path / "missing")


def test_proxy_of_pip_is_used(open_index: Open, served: FaultServer) -> None:
    target = "http://127.0.0.1:9/simple"
    served.files[f"{target}/x/"] = served.files["/simple/x/"]
    served.answers[f"{target}/x/"] = json_page
    index = open_index(no_index=0, index_url=target, proxy=served.url)
    assert versions(index) == ["1.0"]


# -- wheels


def only_wheel(index: WheelIndex) -> Any:
    (wheel_file,) = index.wheels(["x"])["x"]
    return wheel_file


def test_metadata_is_read_with_range_requests(open_index: Open, served: FaultServer) -> None:
    index = open_index(served)
    (metadata,) = index.metadata([only_wheel(index)])
    assert metadata == ("x", "NVIDIA Proprietary Software", ())
    assert all("Range" in headers for path, headers in served.headers if "files" in path)


def test_metadata_of_large_wheel_is_read_with_few_requests(
    open_index: Open, served: FaultServer
) -> None:
    files = {f"x/{number:05}{'y' * 90}": os.urandom(100) for number in range(3000)}
    served.files[FILE] = wheel("x", "1.0", files)
    index = open_index(served)
    assert index.metadata([only_wheel(index)])[0].summary == "x"
    assert served.requests[FILE] <= 4


@pytest.mark.parametrize(
    ("behaviour", "error"), [(faults.status(404), None), (faults.body(b"other"), "hash")]
)
def test_metadata_file_is_verified_and_optional(
    open_index: Open, served: FaultServer, tmp_path: Path, behaviour: Behaviour, error: str | None
) -> None:
    path = put_wheel(tmp_path, "x", "1.0")
    edit_page(served, **{"core-metadata": {"sha256": sha256_of(metadata_of(path))}})
    served.misbehave(f"/files/{path.name}.metadata", behaviour)
    index = open_index(served)
    wheel_file = only_wheel(index)
    if error is None:
        assert index.metadata([wheel_file])[0].summary == "x"
    else:
        with pytest.raises(TransientError, match=error):
            index.metadata([wheel_file])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zip",
        wheel("y", "1", {})[:-30],
        # Its metadata is larger than 4 MiB.
        wheel("y", "1", {}, requires=["z" * 9000] * 500),
    ],
    ids=["empty", "text", "cut", "large"],
)
def test_file_that_is_not_a_wheel_is_an_error(
    open_index: Open, tmp_path: Path, data: bytes
) -> None:
    put_wheel(tmp_path, "x", "1.0").write_bytes(data)
    index = open_index(find_links=tmp_path)
    with pytest.raises(InvalidArchiveError, match="not a valid wheel"):
        index.metadata([only_wheel(index)])


def test_metadata_with_many_headers_is_read_in_linear_time(
    open_index: Open, tmp_path: Path
) -> None:
    headers = "\n".join(f"X{number}: 1" for number in range(3000))
    put_wheel(tmp_path, "x", "1.0", requires=[f"y\n{headers}"])
    index = open_index(find_links=tmp_path)
    (wheel_file,) = index.wheels(["x"])["x"]
    assert calls(lambda: index._metadata(wheel_file)) < 300_000


@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize(
    ("requires", "message"),
    [(["y"] * 1001, "more than 1,000 requirements"), (["z" * 9000] * 500, "METADATA exceeds")],
)
def test_hostile_metadata_of_server_is_an_error(
    open_index: Open, served: FaultServer, requires: list[str], message: str, *, has_ranges: bool
) -> None:
    data = served.files[FILE] = wheel("x", "1.0", {}, requires=requires)
    if not has_ranges:
        served.misbehave(FILE, faults.body(data))
    index = open_index(served)
    with pytest.raises(InvalidArchiveError, match=message):
        index.metadata([only_wheel(index)])


@pytest.mark.parametrize(
    ("expression", "license_"),
    [("\n  \n ", "NVIDIA Proprietary Software"), (" ****\n  Terms of X\n ****", "Terms of X")],
)
def test_lines_without_text_in_license_are_ignored(
    open_index: Open, tmp_path: Path, expression: str, license_: str
) -> None:
    put_wheel(tmp_path, "x", "1.0", requires=[f"y\nLicense-Expression:{expression}"])
    index = open_index(find_links=tmp_path)
    assert index.metadata([only_wheel(index)])[0].license == license_


def test_wheels_of_all_pages_have_a_limit(
    open_index: Open, server: FaultServer, patch: Patch
) -> None:
    put_page(server, "1.0", "1.1")
    put_page(server, "1.2", prefix="/other")
    patch("cudaredist.sources.wheel_index.LINKS_LIMIT", 2)
    index = open_index(
        no_index=0, index_url=f"{server.url}/simple", extra_index_url=f"{server.url}/other"
    )
    with pytest.raises(TransientError, match="list more than 2 wheels"):
        index.wheels(["x"])


def test_unrelated_page_in_folder_is_ignored(open_index: Open, tmp_path: Path) -> None:
    put_wheel(tmp_path, "x", "1.0")
    (tmp_path / "readme.html").write_text("<html>How to use this folder</html>")
    assert versions(open_index(find_links=tmp_path)) == ["1.0"]


def test_missing_hash_is_computed(open_index: Open, served: FaultServer) -> None:
    edit_page(served, hashes={"md5": "1"})
    index = open_index(served)
    wheel_file = only_wheel(index)
    assert wheel_file.sha256 is None
    (verified,) = index.verified([wheel_file])
    assert verified.sha256 == sha256_of(b"".join(index.stream(wheel_file)))


def test_wheel_download_resumes_after_break(open_index: Open, served: FaultServer) -> None:
    served.misbehave(FILE, faults.breaking_after(100))
    index = open_index(served)
    index._client._settings = Settings(retries=50)
    assert b"".join(index.stream(only_wheel(index))) == served.files[FILE]


def test_wheel_of_other_size_is_refused(open_index: Open, served: FaultServer) -> None:
    index = open_index(served)
    with pytest.raises(ArchiveMismatchError, match="the manifest or the package index states 5"):
        next(index.stream(only_wheel(index), size=5))


def test_deleted_wheel_is_not_at_source(open_index: Open, served: FaultServer) -> None:
    index = open_index(served)
    wheel_file = only_wheel(index)
    served.files.clear()
    with pytest.raises(NotAtSourceError):
        next(index.stream(wheel_file))


def test_query_of_address_is_sent_and_not_shown(open_index: Open, served: FaultServer) -> None:
    edit_page(served, **{"url": f"{FILE}?token=SECRET", "core-metadata": {"sha256": SHA256}})
    served.misbehave(f"{FILE}.metadata", faults.body(b"Name: other"))
    index = open_index(served)
    with pytest.raises(TransientError, match="hash differs from") as raised:
        index.metadata([only_wheel(index)])
    assert "SECRET" not in str(raised.value)
