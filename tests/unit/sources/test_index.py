"""Tests of the parser of listing pages."""

import pytest
from support.cost import bounded_cost

from cudaredist.sources.index import is_whole, parse_index

PAGE = "https://host.example/compute/cuda/redist/"


@pytest.mark.parametrize(
    ("page", "labels"),
    [
        pytest.param("<a href='redistrib_12.9.1.json'>x</a>", ["12.9.1"], id="single quotes"),
        pytest.param('<a href="redistrib_12.9.1.json">x</a>', ["12.9.1"], id="double quotes"),
        pytest.param("<a href=redistrib_12.9.1.json>x</a>", ["12.9.1"], id="no quotes"),
        pytest.param("<A HREF='redistrib_12.9.1.json'>", ["12.9.1"], id="upper case"),
        pytest.param("<a class=x href = 'redistrib_12.9.1.json'>", ["12.9.1"], id="blanks"),
        pytest.param("<a href='./redistrib_12.9.1.json'>", ["12.9.1"], id="dot"),
        pytest.param(f"<a href='{PAGE}redistrib_12.9.1.json'>", ["12.9.1"], id="absolute"),
        pytest.param(
            "<a href='/compute/cuda/redist/redistrib_12.9.1.json'>", ["12.9.1"], id="absolute path"
        ),
        pytest.param("<a href='redistrib_12.9.1.json?x=1#y'>", ["12.9.1"], id="query"),
        pytest.param("<a href='redistrib%5F12.9.1.json?redistrib_'>", ["12.9.1"], id="percent"),
        pytest.param("<a href='redistrib_12&#46;9.1.json'>", ["12.9.1"], id="entity"),
        pytest.param("<a href='redistrib_1.2.json'>" * 3, ["1.2"], id="duplicates"),
        pytest.param(
            "<a href='redistrib_9.9.0.json'><a href='redistrib_9.10.0.json'>"
            "<a href='redistrib_9.2.0.json'>",
            ["9.2.0", "9.9.0", "9.10.0"],
            id="order of versions",
        ),
        pytest.param("<a href='redistrib_25.5.json'>", ["25.5"], id="two numbers"),
        pytest.param("<a href='redistrib_4.1.0.6.json'>", ["4.1.0.6"], id="four numbers"),
        pytest.param(
            "<a href='redistrib_2.29.2-cuda12.9.json'>", ["2.29.2-cuda12.9"], id="NCCL's suffix"
        ),
        pytest.param(
            "<a href='..'>..</a><a href='cuda_nvcc/'>x</a><a href='index.html'>"
            "<a href='redistrib_13.5.0.json.asc'><a href='redistrib-v2.schema.json'>",
            [],
            id="neighbours",
        ),
        pytest.param(
            "<a href='/compute/cudnn/redist/redistrib_9.1.0.json'>", [], id="other redist"
        ),
        pytest.param("<a href='cuda_nvcc/redistrib_9.1.0.json'>", [], id="folder below"),
        pytest.param("<a href='../redistrib_9.1.0.json'>", [], id="folder above"),
        pytest.param("<!-- <a href='redistrib_9.1.0.json'> -->", [], id="comment"),
        pytest.param("<!-- <a href='redistrib_9.1.0.json'>", ["9.1.0"], id="unclosed comment"),
        pytest.param("<a href='redistrib_9.1.0.json", ["9.1.0"], id="unclosed quote at the end"),
        pytest.param(
            '<a href="redistrib_1.2.3.json>x</a>\n<a href="redistrib_1.2.4.json">y</a>\n'
            "<a href='redistrib_1.2.5.json>z</a>\n<a href='redistrib_1.2.6.json'>",
            ["1.2.3", "1.2.4", "1.2.5", "1.2.6"],
            id="unclosed quotes in between",
        ),
        pytest.param(
            "<!-- a --!><a href='redistrib_9.1.0.json'><!-- b -->", ["9.1.0"], id="odd comment end"
        ),
        pytest.param(
            "<a <a href=<a href='redistrib_9.1.0.json'</a></p><td", ["9.1.0"], id="broken HTML"
        ),
        pytest.param("<a href='http://[::1/redistrib_9.1.0.json'>", [], id="half an address"),
        pytest.param("<![foo <a href='redistrib_9.1.0.json'>", ["9.1.0"], id="declaration"),
        pytest.param("", [], id="empty"),
    ],
)
def test_parse_index_finds_labels(page: str, labels: list[str]) -> None:
    assert [str(label) for label in parse_index(page.encode(), PAGE)] == labels


def test_parse_index_accepts_upstream_page_of_mirror() -> None:
    page = b"<a href='/compute/cuda/redist/redistrib_12.9.1.json'>"
    address = "https://mirror.example/nvidia/compute/cuda/redist/index.html"
    assert [str(label) for label in parse_index(page, address)] == ["12.9.1"]


def test_parse_index_ignores_invalid_utf8() -> None:
    assert len(parse_index(b"\xff<a href='redistrib_1.2.json'>\xfe", PAGE)) == 1


PIECES = ["<!--", "href='", 'href="', "href=", "<a ", "'\"", "redistrib_", "<html", "</html", "<ul"]


@pytest.mark.parametrize("piece", [*PIECES, "</"])
def test_listing_takes_linear_time(piece: str) -> None:
    page = (piece * ((2 << 20) // len(piece))).encode()
    for parse in (is_whole, lambda page: parse_index(page, PAGE)):
        with bounded_cost():
            parse(page)


NGINX = """<html>\r
<head><title>Index of /redist/</title></head>\r
<body>\r
<h1>Index of /redist/</h1><hr><pre><a href="../">../</a>\r
<a href="redistrib_9.1.0.json">redistrib_9.1.0.json</a>     01-Jan-2025 00:00     100\r
<a href="redistrib_9.2.0.json">redistrib_9.2.0.json</a>     01-Jan-2025 00:00     100\r
</pre><hr></body>\r
</html>\r
"""
APACHE = """<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<html>
 <head><title>Index of /redist</title></head>
 <body>
<h1>Index of /redist</h1>
  <table>
   <tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=S;O=A">Size</a></th></tr>
<tr><td><a href="redistrib_9.1.0.json">redistrib_9.1.0.json</a></td><td>100</td></tr>
<tr><td><a href="redistrib_9.2.0.json">redistrib_9.2.0.json</a></td><td>100</td></tr>
</table>
<address>Apache Server</address>
</body></html>
"""
PYTHON = """<!DOCTYPE HTML>
<html lang="en">
<body>
<h1>Directory listing for /redist/</h1>
<hr>
<ul>
<li><a href="redistrib_9.1.0.json">redistrib_9.1.0.json</a></li>
<li><a href="redistrib_9.2.0.json">redistrib_9.2.0.json</a></li>
</ul>
<hr>
</body>
</html>
"""
GO = """<!doctype html>
<meta name="viewport" content="width=device-width">
<pre>
<a href="redistrib_9.1.0.json">redistrib_9.1.0.json</a>
<a href="redistrib_9.2.0.json">redistrib_9.2.0.json</a>
</pre>
"""
PAGES = {"nginx": NGINX, "Apache": APACHE, "Python": PYTHON, "Go": GO}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_truncated_listing_is_not_whole(page: str) -> None:
    whole = parse_index(page.encode(), PAGE)
    assert is_whole(page.encode())
    for size in range(len(page)):
        part = page[:size].encode()
        assert not is_whole(part) or parse_index(part, PAGE) == whole


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param("<HTML><A HREF='redistrib_1.2.json'></HTML>", True, id="upper case"),
        pytest.param("<html><a href='redistrib_1.2.json'></html>\n\n \n", True, id="blanks"),
        pytest.param("<html></html><!-- served by x -->", True, id="comment at the end"),
        pytest.param("<html><body><a href='redistrib_1.2.json'></body>", True, id="no html end"),
        pytest.param("<html><pre><a href='redistrib_1.2.json'></pre>", False, id="list end only"),
        pytest.param("<html><!-- </html> --><a href='x'>", False, id="end in a comment"),
        pytest.param("<ul><li><a href='redistrib_1.2.json'></ul>", True, id="list alone"),
        pytest.param("<ul></ul><ul><a href='redistrib_1.2.json'>", False, id="second list"),
        pytest.param("<a href='redistrib_1.2.json'>x</a>", False, id="links alone"),
        pytest.param("go away", False, id="text"),
        pytest.param("", False, id="empty"),
    ],
)
def test_end_of_listing_is_recognized(page: str, *, expected: bool) -> None:
    assert is_whole(page.encode()) is expected
