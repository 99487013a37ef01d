"""The listing page of a folder: bytes in, labels out.

No stored copy of NVIDIA's page is known, so anything that names files in `href` is taken: both
quote styles or none, upper-case tags, absolute and relative targets, duplicates, query strings,
broken HTML. A file is always fetched from our own base with the name found, never from the target
as written, so a page cannot lead elsewhere.
"""

import html
import re
from urllib.parse import unquote, urljoin, urlsplit

from cudaredist.primitives import Version, label_of_manifest_name

INDEX_LIMIT = 8 << 20
"""The most bytes a listing may have."""

_HREF = re.compile(
    r"""\bhref\s{0,8}=\s{0,8}(?:"([^"<>]{0,2048})"|'([^'<>]{0,2048})'|["']?([^\s"'<>]{1,2048}))""",
    re.IGNORECASE,
)


_COMMENT_END = re.compile("--!?>")
_is_document = re.compile(r"<(?:html|body)\b").search
_ends_document = re.compile(r"</(?:html|body)\s{0,8}>").search
_ends_list = re.compile(r"</(?:pre|ul|ol|table)\s{0,8}>").search


def parse_index(page: bytes, address: str = "") -> tuple[Version, ...]:
    """Return the labels of the manifests that a listing names, in ascending order, each once.

    `address` is the page's own, with which relative targets are resolved; a target in another
    folder is a neighbour and not taken. Never raises, whatever the bytes.
    """
    folder = _folder_parts(address if address.endswith("/") else address.rpartition("/")[0] + "/")
    labels = set()
    for match in _HREF.finditer(_without_comments(page.decode("utf-8", "replace"))):
        target = html.unescape(match[1] or match[2] or match[3] or "").strip()
        if "redistrib_" not in target:
            continue
        label = _label_in_folder(target, address, folder)
        if label is not None:
            labels.add(label)
    return tuple(sorted(labels))


def is_whole(page: bytes) -> bool:
    """Return whether a listing shows its end after the last manifest.

    nginx, Apache, Caddy and Python end a listing with `</html>`, and Go, which opens no document,
    with `</pre>`. A page that was cut in transit lacks the end, even if its length matches.
    """
    text = _without_comments(page.decode("utf-8", "replace")).lower()
    ends = _ends_document if _is_document(text) else _ends_list
    return ends(text, text.rfind("redistrib_") + 1) is not None


def is_whole_document(page: str) -> bool:
    """Return whether a page that opens a document also ends it, after its last link."""
    text = _without_comments(page).lower()
    return not _is_document(text) or _ends_document(text, text.rfind("<a ") + 1) is not None


def _label_in_folder(target: str, address: str, folder: list[str]) -> Version | None:
    try:
        path = urlsplit(urljoin(address, target)).path
    except ValueError:  # such as an address with half a pair of brackets
        return None
    *parents, name = unquote(path).split("/")
    label = label_of_manifest_name(name)
    if label is None:
        return None
    # A mirror below a prefix may serve the upstream's page, whose absolute targets lack the prefix.
    found = [part for part in parents if part]
    is_here = found == folder or (found and folder[-len(found) :] == found)
    return label if is_here else None


def _folder_parts(address: str) -> list[str]:
    try:
        path = urlsplit(address).path
    except ValueError:
        return []
    return [part for part in unquote(path).split("/") if part]


def _without_comments(text: str) -> str:
    # A pattern for this would take quadratic time on a page of unclosed comments.
    kept, start = [], 0
    while (opening := text.find("<!--", start)) >= 0:
        closing = _COMMENT_END.search(text, opening + 4)
        if closing is None:
            break
        kept.append(text[start:opening])
        start = closing.end()
    kept.append(text[start:])
    return " ".join(kept)
