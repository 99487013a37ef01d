"""Tests of folders and servers as sources."""

import functools
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
import trustme
from support import network_faults as bad
from support import server as faults
from support.patching import Patch
from support.server import FaultServer

from cudaredist.errors import (
    CannotResumeError,
    EmptyIndexError,
    InsecureAddressError,
    NotAtSourceError,
    SourceError,
    StoppedError,
    TooLargeError,
    UsageError,
)
from cudaredist.hints import redacted
from cudaredist.sources.chain import SourceChain, open_sources
from cudaredist.sources.folder import FolderSource
from cudaredist.sources.http import HttpSource
from cudaredist.sources.http_response import _retry_after
from cudaredist.sources.protocol import Settings, without_credentials

Connect = Callable[..., HttpSource]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Open servers as sources and close them after the test."""
    opened: list[HttpSource] = []

    def source(url: str, **settings: Any) -> HttpSource:
        opened.append(HttpSource(url, Settings(**settings)))
        return opened[-1]

    yield source
    for one in opened:
        one.close()


# -- folders


def test_folder_lists_labels_in_version_order(tmp_path: Path) -> None:
    for name in ("redistrib_9.10.0.json", "redistrib_9.9.0.json", "redistrib_9.9.0.json.asc", "x"):
        (tmp_path / name).touch()
    assert [str(label) for label in FolderSource(tmp_path).labels("")] == ["9.9.0", "9.10.0"]


def test_folder_without_manifests_is_an_empty_index(tmp_path: Path) -> None:
    (tmp_path / "compute").mkdir()
    with pytest.raises(EmptyIndexError):
        FolderSource(tmp_path).labels("compute")


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotAtSourceError):
        FolderSource(tmp_path).labels("compute/cuda/redist")
    with pytest.raises(SourceError, match="no such folder") as raised:
        FolderSource(tmp_path / "nowhere").labels("compute")
    assert "--base-url" in (raised.value.hint or "")


def test_missing_or_oversized_or_special_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"12345")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    source = FolderSource(tmp_path)
    assert source.read("large", 5).data == b"12345"
    with pytest.raises(TooLargeError):
        source.read("large", 4)
    with pytest.raises(NotAtSourceError):
        source.read("missing", 4)
    with pytest.raises(SourceError, match=r"directory|regular"):
        source.read("folder", 4)
    with pytest.raises(SourceError, match="not a regular file"):
        source.read("pipe", 4)  # and does not wait for a writer


# -- addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
def test_plain_http_to_local_machine_is_allowed(host: str) -> None:
    open_sources([f"http://{host}:1/"], Settings()).close()


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "example.com", "localhost.example.com", "a.localhost", "[2001:db8::1]"]
)
def test_plain_http_to_other_machine_is_refused(host: str) -> None:
    with pytest.raises(InsecureAddressError):
        open_sources([f"http://{host}/"], Settings())
    open_sources([f"http://{host}/"], Settings(allow_http=True)).close()


def test_empty_source_chain_is_refused() -> None:
    with pytest.raises(UsageError, match="no source"):
        SourceChain([])


def test_path_in_address_is_quoted() -> None:
    source = HttpSource("https://host.example/a", Settings())
    assert source.place_of("x/y?z#%.json") == "https://host.example/a/x/y%3Fz%23%25.json"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("9" * 400, 999999999.0),
        ("-1", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_retry_after_is_parsed(value: str | None, seconds: float | None) -> None:
    assert _retry_after(value) == seconds


def test_retry_after_future_date_is_parsed() -> None:
    assert (_retry_after("Fri, 31 Dec 9999 23:59:59 GMT") or 0) > 1e9


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("https://u:p@host/x", "https://host/x"),
        ("https://u:p/q@host/x", "https://host/x"),
        ("https:u:p@host/x", "https:host/x"),
        ("file://u:p@host/", "file://host/"),
        ("https://host/x", "https://host/x"),
        ("//u:p@host/x", "//host/x"),
        (":p@host", "host"),
        ("<https://u:p@host/>", "host/>"),
        ("/srv/me@home", "/srv/me@home"),
    ],
)
def test_redacted_hides_credentials(location: str, expected: str) -> None:
    assert redacted(location) == expected


@pytest.mark.parametrize(
    ("location", "shared"),
    [
        ("https://u:p@host/x", "https://host/x"),
        (" HTTPS://u@host:8080/x/", "HTTPS://host:8080/x/"),
        ("https://u:p@q@host/me@home", "https://host/me@home"),
        ("https://host/me@home", "https://host/me@home"),
        ("file:///srv/me@home", "file:///srv/me@home"),
        ("/srv/me@home", "/srv/me@home"),
        ("wheels:", "wheels:"),
    ],
)
def test_without_credentials_keeps_rest_of_location(location: str, shared: str) -> None:
    assert without_credentials(location) == shared


# -- listings


@pytest.mark.parametrize("listing", [faults.status(404), faults.status(403), faults.body(b"")])
def test_index_html_is_read_if_folder_is_not_listed(
    server: FaultServer, connect: Connect, listing: faults.Behaviour
) -> None:
    server.misbehave("/x/", listing)
    server.files["/x/index.html"] = b"<pre><a href='redistrib_1.2.json'></pre>"
    source = connect(server.url, retries=0)
    assert [str(label) for label in source.labels("x")] == ["1.2"]


def test_listing_of_python_server_is_whole(tmp_path: Path, connect: Connect) -> None:
    (tmp_path / "redistrib_9.1.0.json").touch()
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as own:
        threading.Thread(target=own.serve_forever, args=(0.02,), daemon=True).start()
        labels = connect(f"http://127.0.0.1:{own.server_port}").labels("")
        own.shutdown()
    assert [str(label) for label in labels] == ["9.1.0"]


def test_long_retry_after_is_not_waited_for(server: FaultServer, connect: Connect) -> None:
    server.misbehave("/x", faults.status(503, Retry_After="100000"))
    with pytest.raises(SourceError, match="answered 503"):
        connect(server.url).read("x", 9)
    assert server.requests["/x"] == 1


def test_stopped_source_reads_no_more(server: FaultServer, connect: Connect) -> None:
    stop = threading.Event()
    source = connect(server.url, stop=stop)
    server.misbehave("/x", faults.never_ending)
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(StoppedError):
        source.read("x", 1 << 20)
    with pytest.raises(StoppedError):
        source.read("x", 1 << 20)


def test_oversized_etag_is_ignored(server: FaultServer, connect: Connect) -> None:
    server.misbehave("/x", faults.body(b"1", ETag='"' + "x" * 5000 + '"'))
    assert connect(server.url).read("x", 9).etag is None


# -- parts


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (bad.part("bytes {first}-{beyond}/{total}"), "without a valid Content-Range"),
        (bad.part("bytes {first}-{last}/1"), "without a valid Content-Range"),
        (bad.part("bytes {last}-{first}/{total}"), "without a valid Content-Range"),
        (bad.part("bytes {first}-{last}/*"), "without the size"),
        (bad.shifted(-2), "another part than requested"),
        (bad.shifted(2), "another part than requested"),
        (bad.half_a_part, "ended early"),
    ],
)
@pytest.mark.parametrize("start", [None, 40])
def test_part_with_wrong_range_is_refused(
    server: FaultServer,
    connect: Connect,
    behaviour: faults.Behaviour,
    message: str,
    start: int | None,
) -> None:
    server.files["/x"] = bytes(range(100))
    server.misbehave("/x", behaviour)
    with pytest.raises(SourceError, match=message):
        connect(server.url, retries=0)._client.part(f"{server.url}/x", start, 10)


def test_part_with_other_etag_is_refused(server: FaultServer, connect: Connect) -> None:
    server.files["/x"] = bytes(range(100))
    client, address = connect(server.url, retries=0)._client, f"{server.url}/x"
    first = client.part(address, None, 10)
    assert (first.data, first.start, first.total) == (bytes(range(90, 100)), 90, 100)
    server.misbehave("/x", bad.new_etag_of_part)
    with pytest.raises(SourceError, match="the file changed during the download"):
        client.part(address, 40, 10, first.etag)


def test_download_of_a_file_that_changed_is_not_resumed(
    server: FaultServer, connect: Connect
) -> None:
    """Otherwise, a file without a known hash would be a mixture of two files."""
    server.files["/x"] = bytes(range(1, 101))
    server.misbehave("/x", bad.breaking(40, bad.any_etag, is_altered=True))
    with pytest.raises(CannotResumeError, match="the file changed during the download"):
        list(connect(server.url, retries=3).stream("x"))
    assert server.requests["/x"] == 2


# -- TLS


def test_https_trusts_authority_of_environment(secure: FaultServer, connect: Connect) -> None:
    secure.files["/x"] = b"1"
    assert connect(secure.url).read("x", 9).data == b"1"


def test_https_with_unknown_authority_is_refused(
    secure: FaultServer, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    secure.files["/x"] = b"1"
    with pytest.raises(SourceError, match="certificate is not trusted") as raised:
        connect(secure.url, retries=3).read("x", 9)
    assert "SSL_CERT_FILE" in str(raised.value.hint)


DAY = timedelta(days=1)
NOW = datetime.now(UTC)
CERTIFICATES: dict[str, tuple[Callable[[trustme.CA], trustme.LeafCert], str, str]] = {
    "expired": (
        lambda ca: ca.issue_cert("127.0.0.1", not_before=NOW - 9 * DAY, not_after=NOW - DAY),
        "not valid on this date",
        "date",
    ),
    "of the future": (
        lambda ca: ca.issue_cert("127.0.0.1", not_before=NOW + DAY, not_after=NOW + 9 * DAY),
        "not valid on this date",
        "date",
    ),
    "of another address": (lambda ca: ca.issue_cert("127.0.0.2"), "for another host", "address"),
    "of another host": (lambda ca: ca.issue_cert("a.example"), "for another host", "address"),
    "of another authority": (
        lambda _: trustme.CA().issue_cert("127.0.0.1"),
        "not trusted",
        "SSL_CERT_FILE",
    ),
}


@pytest.mark.parametrize("kind", CERTIFICATES)
def test_wrong_certificate_is_refused_with_its_reason(
    authority: trustme.CA, connect: Connect, kind: str
) -> None:
    issue, reason, hint = CERTIFICATES[kind]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issue(authority).configure_cert(context)
    with FaultServer(context) as server:
        server.files["/x"] = b"1"
        with pytest.raises(SourceError, match=reason) as raised:
            connect(server.url, retries=3).read("x", 9)
        assert server.requests["/x"] == 0
    assert (raised.value.exit_code, hint in str(raised.value.hint)) == (3, True)


def test_server_without_tls_cannot_be_reached_over_https(
    server: FaultServer, connect: Connect
) -> None:
    server.files["/x"] = b"1"
    with pytest.raises(SourceError, match="cannot connect") as raised:
        connect(server.url.replace("http:", "https:")).read("x", 9)
    assert raised.value.exit_code == 3


@pytest.mark.parametrize("allow_http", [False, True])
def test_redirect_from_https_to_http_is_refused(
    connect: Connect,
    secure: FaultServer,
    server: FaultServer,
    allow_http: bool,  # noqa: FBT001 - a column of the table
) -> None:
    server.files["/x"] = b"1"
    secure.misbehave("/x", faults.redirect(f"{server.url}/x"))
    with pytest.raises(SourceError, match="not encrypted"):
        connect(secure.url, allow_http=allow_http).read("x", 9)
    assert server.requests["/x"] == 0


def test_redirect_from_http_to_https_is_verified(
    secure: FaultServer, server: FaultServer, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    secure.files["/x"] = b"1"
    server.misbehave("/x", faults.redirect(f"{secure.url}/x"))
    assert connect(server.url).read("x", 9).data == b"1"
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(SourceError, match="certificate is not trusted"):
        connect(server.url).read("x", 9)


# -- errors of the client library


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (httpx.ProxyError("407"), "the proxy failed"),
        (httpx.ReadError(""), "the connection broke \\(ReadError\\)"),
        (httpx.PoolTimeout(""), "not complete within"),
    ],
)
def test_client_errors_become_source_errors(
    patch: Patch, connect: Connect, error: Exception, message: str
) -> None:
    patch(httpx.Client, "send", Mock(side_effect=error))
    with pytest.raises(SourceError, match=message):
        connect("https://host.example", retries=0).read("x", 9)
