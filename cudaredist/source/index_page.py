"""Parser of a package index's page, from bytes to wheels.

Pages are JSON (PEP 691) or HTML (PEP 503). They contain the hash of a wheel's separate metadata
file if the index has one (PEP 658).
"""

import json
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from cudaredist.errors import SourceError, TransientError
from cudaredist.source.index import is_whole_document
from cudaredist.wheels import Wheel, parse_wheel

_JSON = "application/vnd.pypi.simple.v1+json"
_HTML = ("text/html", "application/vnd.pypi.simple.v1+html")
ACCEPT = f"{_JSON}, {_HTML[1]};q=0.2, {_HTML[0]};q=0.1"

_is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch


def read_page(data: bytes, content_type: str, address: str, shown: str) -> list[Wheel]:
    """Return the wheels on a page.

    Raises `SourceError` if the page is invalid, and `TransientError` if it was truncated in
    transit.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _JSON:
        return list(_in_json(data, address, shown))
    if kind in _HTML:
        return list(_in_html(data, address, shown))
    raise SourceError(shown, f"answered with {kind or 'an unknown type'} instead of a page")


def _in_json(data: bytes, address: str, shown: str) -> Iterator[Wheel]:
    try:
        page = json.loads(data)
    except ValueError as error:
        raise TransientError(shown, "the page is not complete JSON") from error
    try:
        if not str(page["meta"]["api-version"]).startswith("1."):
            raise SourceError(shown, "the page has an unknown format version")
        for item in page["files"]:
            wheel = parse_wheel(item["filename"], urljoin(address, item["url"]))
            if wheel is None:
                continue
            metadata = item.get("core-metadata", item.get("dist-info-metadata"))
            size = item.get("size")
            yield wheel._replace(
                sha256=_sha256(item["hashes"]),
                size=size if type(size) is int and size > 0 else None,
                is_yanked=item.get("yanked", False) is not False,
                metadata_sha256=_metadata_hash(metadata) if metadata else None,
            )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SourceError(shown, "the page does not list files as PEP 691 requires") from error


def _metadata_hash(hashes: object) -> str:
    return (_sha256(hashes) if isinstance(hashes, dict) else None) or ""


def _sha256(hashes: Mapping[str, object]) -> str | None:
    value = str(hashes.get("sha256")).lower()
    return value if _is_sha256(value) else None


class _Anchors(HTMLParser):
    """The base address and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.anchors: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "base":
            self.base = self.base or dict(attrs).get("href") or ""
        elif tag == "a":
            self.anchors.append(dict(attrs))


def _in_html(data: bytes, address: str, shown: str) -> Iterator[Wheel]:
    text = data.decode("utf-8", "replace")
    if not is_whole_document(text):
        raise TransientError(shown, "the page has no end (</html>), so files may be missing")
    parser = _Anchors()
    parser.feed(text)
    for anchor in parser.anchors:
        target = (anchor.get("href") or "").strip()
        try:
            url, _, fragment = urljoin(urljoin(address, parser.base), target).partition("#")
            name = unquote(urlsplit(url).path).rpartition("/")[2]
        except ValueError:  # for example an unmatched bracket in the address
            continue
        wheel = parse_wheel(name, url)
        if wheel is not None:
            metadata = anchor.get("data-core-metadata") or anchor.get("data-dist-info-metadata")
            yield wheel._replace(
                sha256=_sha256(_pairs(fragment)),
                is_yanked="data-yanked" in anchor,
                metadata_sha256=_metadata_hash(_pairs(metadata)) if metadata else None,
            )


def _pairs(text: str) -> dict[str, str]:
    """Parse a text such as `sha256=0123&other=1` into its pairs."""
    return dict(part.partition("=")[::2] for part in text.split("&"))
