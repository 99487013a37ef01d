"""Parser of a package index's page, from bytes to wheels.

Pages are JSON (PEP 691) or HTML (PEP 503). If the index has separate metadata files, pages contain
their hashes (PEP 658). HTML is read tag by tag, so that only its text and wheels take memory.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, AnyStr, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from cudaredist.errors import InvalidFileError, SourceError, TransientError
from cudaredist.jsontext import parse_json
from cudaredist.sources.index import INDEX_LIMIT, is_whole_document, unescaped, without_comments
from cudaredist.wheels import Wheel, parse_wheel

_JSON = "application/vnd.pypi.simple.v1+json"
_HTML = ("text/html", "application/vnd.pypi.simple.v1+html")
ACCEPT = f"{_JSON}, {_HTML[1]};q=0.2, {_HTML[0]};q=0.1"

LINKS_LIMIT = 50_000
"""Maximum links on a page, and wheels on all pages of a run."""
_VALUE_LIMIT = 4096
"""Maximum characters of an address or another attribute."""

_is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch
_is_file = re.compile(r"\.(?:whl|zip|tar\.[a-z0-9]+|tgz|egg|exe|msi|rpm)", re.IGNORECASE).search

# Without possessive quantifiers, tags without an end would take quadratic time.
_TAG = re.compile(
    rb"""<(a|base|meta)(?=[\s/>]|\Z)((?:[^<>"']++|"[^"]*+"|'[^']*+')*+)(>?)""", re.IGNORECASE
)
_ATTRIBUTE = re.compile(
    rb"""([^\s"'<>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++)))?"""
)
_OLD_METADATA = "data-dist-info-metadata"
_READ = {"href", "name", "content", "data-yanked", "data-core-metadata", _OLD_METADATA}
_VERSIONS = {"pypi:repository-version", "api-version"}


class _Link(NamedTuple):
    """A link or another element of a page."""

    wheel: Wheel | None
    is_sign: bool
    """Whether only the page of a package index has it."""


def read_page(data: bytes, content_type: str, address: str, shown: str) -> list[Wheel]:
    """Return the wheels on a page.

    Raises `SourceError` if the page is invalid or not from a package index, and `TransientError` if
    it was truncated in transit.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _JSON:
        links = _in_json(data, address, shown)
    elif kind in _HTML:
        links = _in_html(data, address, shown)
    else:
        raise SourceError(shown, f"answered with {kind or 'an unknown type'} instead of a page")
    wheels, is_index = [], False
    for number, link in enumerate(links):
        if number >= LINKS_LIMIT:
            raise SourceError(shown, f"the page has more than {LINKS_LIMIT:,} links")
        if link.is_sign:
            is_index = True
        if link.wheel is not None:
            wheels.append(link.wheel)
    if not is_index:
        raise SourceError(shown, "the response is not a page of a package index")
    return wheels


def _in_json(data: bytes, address: str, shown: str) -> Iterator[_Link]:
    """Yield the files of a page.

    Its list of files is a sign of an index, even if it is empty.
    """
    try:
        page: Any = parse_json(data, what="page of a package index", limit=INDEX_LIMIT)
    except InvalidFileError as error:
        raise TransientError(shown, error.message) from error
    try:
        _check_version(str(page["meta"]["api-version"]), shown)
        if not isinstance(page["files"], list):
            raise TypeError  # noqa: TRY301 - as for other values of the wrong type
        yield _Link(None, is_sign=True)
        for item in page["files"]:
            wheel = parse_wheel(item["filename"], urljoin(address, _bounded(item["url"], shown)))
            metadata = item.get("core-metadata", item.get("dist-info-metadata"))
            size = item.get("size")
            if wheel is not None:
                wheel = wheel._replace(
                    sha256=_sha256(item["hashes"]),
                    size=size if type(size) is int and size > 0 else None,
                    is_yanked=item.get("yanked", False) is not False,
                    metadata_sha256=_metadata_hash(metadata) if metadata else None,
                    uploaded=_day(item.get("upload-time")),
                )
            yield _Link(wheel, is_sign=True)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SourceError(shown, "the page does not list files as PEP 691 requires") from error


def _check_version(version: str, shown: str) -> None:
    if not version.startswith("1."):
        raise SourceError(shown, "the page has an unknown format version")


def _bounded(value: AnyStr, shown: str) -> AnyStr:
    if len(value) > _VALUE_LIMIT:
        reason = f"a link has {len(value):,} characters, more than {_VALUE_LIMIT:,}"
        raise SourceError(shown, reason)
    return value


def _metadata_hash(hashes: object) -> str:
    return (_sha256(hashes) if isinstance(hashes, dict) else None) or ""


def _sha256(hashes: Mapping[str, object]) -> str | None:
    value = str(hashes.get("sha256")).lower()
    return value if _is_sha256(value) else None


def _day(time: object) -> str | None:
    """Return the day of a time such as 2026-11-04T16:18:53.069145Z, None if it is invalid."""
    with suppress(ValueError):
        return str(datetime.fromisoformat(time).date()) if isinstance(time, str) else None
    return None


def _in_html(data: bytes, address: str, shown: str) -> Iterator[_Link]:
    """Yield the links of a page and its format version.

    Signs of an index are the format version, and links to wheels, to other kinds of files or to the
    parent folder.
    """
    visible = without_comments(data)
    if not is_whole_document(visible):
        raise TransientError(shown, "the page has no end (</html>), so files may be missing")
    base, parent = address, urljoin(address, "..")
    for tag in _TAG.finditer(visible):
        if not tag[3]:
            raise TransientError(shown, "the page has an incomplete link, so files may be missing")
        attributes = dict(_attributes(tag[2], shown))
        name = attributes.get("name")
        if name == "pypi:repository-version":
            _check_version(attributes.get("content", ""), shown)
        if name in _VERSIONS:
            yield _Link(None, is_sign=True)
        is_base = tag[1].lower() == b"base"
        try:
            # If each one extended the one before, many would take quadratic time.
            begin = address if is_base else base
            url, _, fragment = urljoin(begin, attributes["href"]).partition("#")
            file_name = unquote(urlsplit(url).path).rpartition("/")[2]
        except (KeyError, ValueError):  # for example an unmatched bracket in the address
            yield _Link(None, is_sign=False)
            continue
        if is_base:
            base = url
        wheel = parse_wheel(file_name, url)
        if wheel is None:
            is_sign = url == parent or _is_file(file_name) is not None
            yield _Link(None, is_sign=is_sign)
        else:
            metadata = attributes.get("data-core-metadata") or attributes.get(_OLD_METADATA)
            wheel = wheel._replace(
                sha256=_sha256(_pairs(fragment)),
                is_yanked="data-yanked" in attributes,
                metadata_sha256=_metadata_hash(_pairs(metadata)) if metadata else None,
            )
            yield _Link(wheel, is_sign=True)


def _attributes(tag: bytes, shown: str) -> Iterator[tuple[str, str]]:
    for match in _ATTRIBUTE.finditer(tag):
        name = match[1].lower().decode("ascii", "replace")
        if name in _READ:
            yield name, unescaped(_bounded(match[2] or match[3] or match[4] or b"", shown))


def _pairs(text: str) -> dict[str, str]:
    """Parse a text such as `sha256=0123&other=1` into its pairs."""
    return dict(part.partition("=")[::2] for part in text.split("&"))
