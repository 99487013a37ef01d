"""Parser of a folder's listing page, from bytes to labels.

No stored copy of NVIDIA's page is known, so the parser accepts every `href` with the name of a
manifest: both quote styles or none, upper-case tags, absolute and relative targets, duplicates,
query strings and broken HTML. Only the name is used. A file is always fetched from the source's own
base, so a page cannot redirect to another server.
"""

import html
import re
from contextlib import suppress
from urllib.parse import unquote, urljoin, urlsplit

from cudaredist.primitives import Version
from cudaredist.sources.protocol import listed_label

INDEX_LIMIT = 8 << 20
"""Maximum bytes of a listing."""

_HREF = re.compile(
    rb"""\bhref\s{0,8}=\s{0,8}(?:"([^"<>]{0,2048})"|'([^'<>]{0,2048})'|["']?([^\s"'<>]{1,2048}))""",
    re.IGNORECASE,
)


_COMMENT_END = re.compile(rb"--!?>")
_is_document = re.compile(rb"<(?:html|body)\b").search
_ends_document = re.compile(rb"</(?:html|body)\s{0,8}>").search
_ends_list = re.compile(rb"</(?:pre|ul|ol|table)\s{0,8}>").search


def parse_index(page: bytes, address: str = "") -> tuple[Version, ...]:
    """Return the labels of the manifests in a listing, ascending.

    `address` is the page's address. Relative targets are resolved against it, and targets in other
    folders are skipped. Never raises, even if the page is invalid.
    """
    folder, _ = _split(address)
    labels = set()
    for match in _HREF.finditer(without_comments(page)):
        target = unescaped(match[1] or match[2] or match[3] or b"")
        if "redistrib_" not in target:
            continue
        parts, name = _split(address, target)
        label = listed_label(name)
        # A mirror below a prefix may serve NVIDIA's page. Its absolute targets lack the prefix.
        is_here = parts == folder or (parts and folder[-len(parts) :] == parts)
        if label is not None and is_here:
            labels.add(label)
    return tuple(sorted(labels))


def is_whole(page: bytes) -> bool:
    """Return whether a listing ends after its last manifest.

    nginx, Apache, Caddy and Python end a listing with `</html>`. Go has no document tags and ends
    it with `</pre>`. A page that was truncated in transit has no end, even if its length matches.
    """
    text = without_comments(page).lower()
    ends = _ends_document if _is_document(text) else _ends_list
    return ends(text, text.rfind(b"redistrib_") + 1) is not None


def is_whole_document(visible: bytearray) -> bool:
    """Check if a page without comments has its end after the last link."""
    text = visible.lower()
    return not _is_document(text) or _ends_document(text, text.rfind(b"<a ") + 1) is not None


def _split(address: str, target: str = "") -> tuple[list[str], str]:
    """Return the folders and the name of a target on a page."""
    path = ""
    with suppress(ValueError):  # for example an unmatched bracket in the address
        path = urlsplit(urljoin(address, target)).path
    *folders, name = unquote(path).split("/")
    return [part for part in folders if part], name


def unescaped(value: bytes) -> str:
    """Return the text of an attribute's value."""
    return html.unescape(value.decode("utf-8", "replace")).strip()


def without_comments(page: bytes) -> bytearray:
    """Replace each comment of a page with a space."""
    # A regular expression would take quadratic time if a page has many unclosed comments.
    visible, start = bytearray(), 0
    while (opening := page.find(b"<!--", start)) >= 0:
        closing = _COMMENT_END.search(page, opening + 4)
        if closing is None:
            break
        visible += page[start:opening] + b" "
        start = closing.end()
    return visible + page[start:]
