"""The search index: scripts that the search page loads.

Scripts also work from `file://`, where browsers refuse to fetch other files.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from string import digits
from typing import NamedTuple

from cudaredist.commands.site.addresses import page_link, release_address
from cudaredist.commands.site.page_models import (
    CompilersPage,
    FilesPage,
    GpuPage,
    OtherKindPage,
    PackagePage,
    ProductPage,
    ReleasePage,
    SitePage,
    Span,
)
from cudaredist.commands.site.release_pages import product_title
from cudaredist.commands.site.symbol_index import SymbolPiece
from cudaredist.redists import CUDA
from cudaredist.words import plural

KINDS = ("product", "package", "soname", "gpu", "release", "driver", "compiler", "symbol", "file")
"""The kinds of entries, in the order of results."""
INDEX_PATH = "assets/search-index.js"


class SearchEntry(NamedTuple):
    """A result of the search."""

    kind: str
    names: str
    """Separated by commas. Further names, which are found but not shown, follow tabs."""
    link: str
    detail: str


def search_entries(
    pages: Mapping[str, SitePage], programs: Mapping[str, str]
) -> Iterator[SearchEntry]:
    """Yield the entries of all pages, which are given by address.

    `programs` has the main program of packages.
    """
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
                yield from _package_entries(page, link, programs.get(page.summary.package))
            case GpuPage():
                yield SearchEntry("gpu", ", ".join(_gpu_names(page)), link, page.title)
            case CompilersPage():
                others = [x for x in page.releases or () if release_address(CUDA, x) not in pages]
                for label in others:
                    text = f"{product_title(CUDA)} {label}"
                    yield SearchEntry("release", text, f"{link}#{label}", "host compilers only")
            case OtherKindPage():
                yield from _other_entries(page, link, programs)
            case FilesPage():
                yield from _file_entries(page, link)
            case _:
                pass


def _package_entries(page: PackagePage, link: str, program: str | None) -> Iterator[SearchEntry]:
    summary = page.summary
    names = ", ".join(filter(None, (summary.package, summary.title, *summary.projects)))
    libraries = {_without_versions(soname.soname) for soname in page.sonames}
    short, (major, *_) = summary.package.removeprefix("cuda_"), summary.version.split(".")
    # Such as nvcc, cublas and cudnn9, the name of a package in distributions.
    hidden = {short.removeprefix("lib"), f"{short}{major}", *libraries}
    hidden.update([program] if program else [])
    detail = ", ".join(map(span_words, summary.spans))
    yield SearchEntry("package", "\t".join((names, *sorted(hidden))), link, detail)
    for soname in page.sonames:
        detail = f"{summary.package}, {span_words(soname)}"
        yield SearchEntry("soname", soname.soname, f"{link}#sonames", detail)


def _other_entries(
    page: OtherKindPage, link: str, programs: Mapping[str, str]
) -> Iterator[SearchEntry]:
    """Yield the packages of the other kind."""
    kind = "wheels" if page.of_channel == "wheels" else "archives"
    for one in page.packages:
        names = ", ".join(filter(None, (one.package, one.title)))
        program = programs.get(one.package)
        names += f"\t{program}" if program else ""
        address = f"{link}#{one.span.redist}-{one.package}"
        yield SearchEntry("package", names, address, f"{kind}, {span_words(one.span)}")


def _without_versions(soname: str) -> str:
    """Return a library's name as users type it.

    It is `libcublas` for `libcublas.so.12`, and `cudart32` for `cudart32_75.dll`. Only the number
    of the usual platform is removed too: `cublas` for `cublas64_12.dll`.
    """
    if not soname.endswith(".dll"):
        stem, _, version = soname.rpartition(".so")
        return soname if version.strip(f".{digits}") or not stem else stem
    stem = soname.removesuffix(".dll").removesuffix(".alt")
    start = stem.find("_", len(stem.rstrip(f"_{digits}")))
    return (stem if start < 0 else stem[:start]).removesuffix("64")


def _file_entries(page: FilesPage, link: str) -> Iterator[SearchEntry]:
    for number, (folder, files) in enumerate(page.folders.items()):
        for file in files:
            path = f"{folder}/{file.name}" if folder else file.name
            detail = f"{page.package}, {span_words(file)}"
            yield SearchEntry("file", path, f"{link}#folder-{number}", detail)


def _gpu_names(page: GpuPage) -> Iterator[str]:
    """Yield the names of a capability. A variant, such as 9.0a, has no GPUs of its own."""
    yield page.capability
    yield f"sm_{page.capability.replace('.', '')}"
    if page.entry.variant is None:
        yield from (page.entry.family, *page.entry.products)


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
