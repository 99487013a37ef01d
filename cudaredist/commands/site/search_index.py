"""The search index: scripts that the search page loads.

Scripts also work from `file://`, where browsers refuse to fetch other files.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

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
from cudaredist.commands.site.site_symbols import SymbolGroups
from cudaredist.commands.site.symbol_index import SymbolPiece, piece_path, symbol_pieces

KINDS = ("product", "package", "soname", "gpu", "release", "symbol", "file")
"""The kinds of entries, in the order of results."""
INDEX_PATH = "assets/search-index.js"


@dataclass(slots=True)
class SearchIndex:
    """The entries of the index, with repeated texts stored once."""

    texts: dict[str, int] = field(default_factory=dict)
    entries: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Kind, names separated by commas, and the numbers of the link and the detail."""
    pieces: Sequence[SymbolPiece] = ()
    """The symbols. They have scripts of their own."""

    def add(self, kind: str, text: str, address: str, detail: str, anchor: str = "") -> None:
        """Add an entry."""
        link = f"{page_link(address, '')}{anchor}"
        numbers = [self.texts.setdefault(one, len(self.texts)) for one in (link, detail)]
        self.entries.append((KINDS.index(kind), text, numbers[0], numbers[1]))

    def counts(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        kinds = [entry[0] for entry in self.entries]
        counts = {name: kinds.count(number) for number, name in enumerate(KINDS)}
        return counts | {"symbol": sum(len(piece.rows) for piece in self.pieces)}

    def files(self) -> dict[str, Callable[[], bytes]]:
        """Map the paths of the scripts to functions that return the contents."""
        pieces = enumerate(self.pieces)
        return {INDEX_PATH: self._script} | {
            piece_path(number): partial(piece.script, number) for number, piece in pieces
        }

    def _script(self) -> bytes:
        """Return the index as one statement of JavaScript, in ASCII."""
        document = {
            "kinds": KINDS,
            "texts": list(self.texts),
            "entries": self.entries,
            "symbols": [(piece.first, len(piece.rows)) for piece in self.pieces],
            "pieces": {},
        }
        text = json.dumps(document, separators=(",", ":"))
        return f"window.cudaredistIndex={text};\n".encode("ascii")


def make_index(pages: Mapping[str, SitePage], symbols: Mapping[str, SymbolGroups]) -> SearchIndex:
    """Return the index of all pages, by address, and of the symbols of libraries."""
    packages = {page.title for page in pages.values() if isinstance(page, PackagePage)}
    index = SearchIndex(pieces=symbol_pieces(symbols.values(), packages))
    for address, page in pages.items():
        match page:
            case ProductPage():
                names = ", ".join(dict.fromkeys((page.product, page.redist)))
                index.add("product", names, address, f"{len(page.releases)} releases")
            case ReleasePage():
                text = f"{page.product} {page.summary.release}"
                index.add("release", text, address, page.summary.date or "")
            case PackagePage():
                summary = page.summary
                names = ", ".join(filter(None, (summary.package, summary.title)))
                index.add("package", names, address, _spans(summary.spans))
                for soname in page.sonames:
                    detail = f"{summary.package}, {_spans([soname])}"
                    index.add("soname", soname.soname, address, detail, "#sonames")
            case GpuPage():
                names = ", ".join((page.capability, page.entry.family, *page.entry.products))
                index.add("gpu", names, address, page.title)
            case FilesPage():
                _add_files(index, address, page)
            case _:
                pass
    return index


def _add_files(index: SearchIndex, address: str, page: FilesPage) -> None:
    for number, (folder, files) in enumerate(page.folders.items()):
        for file in files:
            path = f"{folder}/{file.name}" if folder else file.name
            detail = f"{page.package}, {_spans([file])}"
            index.add("file", path, address, detail, f"#folder-{number}")


def _spans(spans: Iterable[Span]) -> str:
    """Return products and releases in words: `cuda 11.8.0 to 13.5.0`."""
    return ", ".join(span_words(span) for span in spans)


def span_words(span: Span) -> str:
    """Return a product and its releases in words."""
    if span.first == span.newest:
        return f"{span.redist} {span.first}"
    return f"{span.redist} {span.first} to {span.newest}"
