"""Files of the web site: their links and the validity of their pages."""

import posixpath
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import html5lib

OLD_ELEMENTS = re.compile(r"<(center|font|marquee|big|tt)\b")


class _Links(HTMLParser):
    """Collects the addresses and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: list[str] = []

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src", "action"}:
                self.addresses.append(value or "")
            if name == "id":
                self.anchors.append(value or "")


def links_of(content: bytes) -> tuple[list[str], list[str]]:
    """Return the addresses in a page, and its anchors."""
    parser = _Links()
    parser.feed(content.decode())
    return parser.addresses, parser.anchors


def broken_site_links(files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """List the pages and addresses that lead out of the site, nowhere or to a missing anchor."""
    pages = {path: links_of(content) for path, content in files.items() if path.endswith(".html")}
    broken = []
    for path, (addresses, _) in pages.items():
        for address in addresses:
            parts = urlsplit(address)
            below = posixpath.join(posixpath.dirname(path), unquote(parts.path))
            target = posixpath.normpath(below) if parts.path else path
            is_elsewhere = parts.scheme or parts.netloc or address.startswith("/")
            has_anchor = not parts.fragment or parts.fragment in pages.get(target, ([], []))[1]
            if is_elsewhere or target not in files or not has_anchor:
                broken.append((path, address))
    return broken


def html_problems(content: bytes) -> list[str]:
    """List the problems of a page: parse errors, and identifiers that are not unique."""
    parser = html5lib.HTMLParser()
    parser.parse(content.decode())
    problems = [f"{place}: {code}" for place, code, _ in parser.errors]
    _, anchors = links_of(content)
    problems += [f"id {name}" for name in sorted(set(anchors)) if anchors.count(name) > 1]
    return problems + OLD_ELEMENTS.findall(content.decode())
