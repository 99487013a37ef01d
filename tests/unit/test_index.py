"""The parser of listing pages."""

import time

import pytest

from cudaredist.source.index import parse_index

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
def test_finds(page: str, labels: list[str]) -> None:
    assert [str(label) for label in parse_index(page.encode(), PAGE)] == labels


def test_a_mirror_below_a_prefix_may_serve_the_upstreams_page() -> None:
    page = b"<a href='/compute/cuda/redist/redistrib_12.9.1.json'>"
    address = "https://mirror.example/nvidia/compute/cuda/redist/index.html"
    assert [str(label) for label in parse_index(page, address)] == ["12.9.1"]


def test_not_utf8() -> None:
    assert len(parse_index(b"\xff<a href='redistrib_1.2.json'>\xfe", PAGE)) == 1


@pytest.mark.parametrize("piece", ["<!--", "href='", 'href="', "href=", "<a ", "'\"", "redistrib_"])
def test_takes_linear_time(piece: str) -> None:
    page = (piece * ((2 << 20) // len(piece))).encode()
    started = time.process_time()
    parse_index(page, PAGE)
    assert time.process_time() - started < 10
