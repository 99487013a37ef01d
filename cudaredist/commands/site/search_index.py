"""The search index: scripts that the search page loads.

Scripts also work from `file://`, where browsers refuse to fetch other files.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cudaredist.commands.site.addresses import page_link
from cudaredist.commands.site.page_models import (
    FilesPage,
    GpuPage,
    PackagePage,
    ProductPage,
    ReleasePage,
    SitePage,
    Span,
)
from cudaredist.commands.site.symbol_index import SymbolPiece
from cudaredist.errors import plural

KINDS = ("product", "package", "soname", "gpu", "release", "symbol", "file")
"""The kinds of entries, in the order of results."""
INDEX_PATH = "assets/search-index.js"


class SearchEntry(NamedTuple):
    """A result of the search."""

    kind: str
    names: str
    """Separated by commas."""
    link: str
    detail: str


def search_entries(pages: Mapping[str, SitePage]) -> Iterator[SearchEntry]:
    """Yield the entries of all pages, which are given by address."""
    for address, page in pages.items():
        link = page_link(address, "")
        match page:
            case ProductPage():
                names = ", ".join(dict.fromkeys((page.product, page.redist)))
                yield SearchEntry("product", names, link, plural(len(page.releases), "release"))
            case ReleasePage():
                text = f"{page.product} {page.summary.release}"
                yield SearchEntry("release", text, link, page.summary.date or "")
            case PackagePage():
                summary = page.summary
                names = ", ".join(filter(None, (summary.package, summary.title)))
                spans = ", ".join(map(span_words, summary.spans))
                yield SearchEntry("package", names, link, spans)
                for soname in page.sonames:
                    detail = f"{summary.package}, {span_words(soname)}"
                    yield SearchEntry("soname", soname.soname, f"{link}#sonames", detail)
            case GpuPage():
                names = ", ".join((page.capability, page.entry.family, *page.entry.products))
                yield SearchEntry("gpu", names, link, page.title)
            case FilesPage():
                for number, (folder, files) in enumerate(page.folders.items()):
                    for file in files:
                        path = f"{folder}/{file.name}" if folder else file.name
                        detail = f"{page.package}, {span_words(file)}"
                        yield SearchEntry("file", path, f"{link}#folder-{number}", detail)
            case _:
                pass


def count_entries(entries: Iterable[SearchEntry], pieces: Iterable[SymbolPiece]) -> dict[str, int]:
    """Return the number of entries of each kind."""
    counts = Counter(entry.kind for entry in entries)
    symbols = sum(len(piece.rows) for piece in pieces)
    return {kind: counts[kind] for kind in KINDS} | {"symbol": symbols}


def index_script(entries: Iterable[SearchEntry], pieces: Iterable[SymbolPiece]) -> bytes:
    """Return the index as one statement of JavaScript, in ASCII. Repeated texts are stored once."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    rows = [
        (KINDS.index(kind), names, number(link), number(detail))
        for kind, names, link, detail in entries
    ]
    document = {
        "kinds": KINDS,
        "texts": list(texts),
        "entries": rows,
        "symbols": [(piece.first, len(piece.rows)) for piece in pieces],
        "pieces": {},
    }
    text = json.dumps(document, separators=(",", ":"))
    return f"window.cudaredistIndex={text};\n".encode("ascii")


def span_words(span: Span) -> str:
    """Return a product and its releases in words."""
    if span.first == span.newest:
        return f"{span.redist} {span.first}"
    return f"{span.redist} {span.first} to {span.newest}"
