"""The symbols of the search: one script for each part of the sorted names.

The search page loads the scripts that may contain names with a prefix. Each name is stored without
the characters that it shares with the name before it.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from cudaredist.commands.site.addresses import package_address, page_link
from cudaredist.commands.site.site_symbols import ExportSpan, SymbolGroups
from cudaredist.grouping import grouped

PIECE_SIZE = 1 << 16
_Spans = tuple[ExportSpan, ...]


def piece_path(number: int) -> str:
    """Return the path of a script."""
    return f"assets/symbols/{number}.js"


@dataclass(slots=True)
class SymbolPiece:
    """A part of the sorted names."""

    first: str
    """A lower bound of its names in lower case. All names of earlier pieces are smaller."""
    rows: list[str] = field(default_factory=list)
    """Length of the prefix shared with the previous name, the rest, and an index of packages."""
    packages: dict[_Spans, int] = field(default_factory=dict)
    size: int = 0

    def add(self, name: str, previous: str, spans: _Spans) -> None:
        """Add the next name."""
        # JavaScript counts some non-ASCII characters twice.
        shared = _shared(previous, name) if self.rows and name.isascii() else 0
        number = self.packages.setdefault(spans, len(self.packages))
        self.rows.append(f"{shared} {name[shared:]} {number}")
        self.size += len(self.rows[-1]) + 1

    def script(self, number: int) -> bytes:
        """Return the script. It is ASCII, with one statement."""
        document = {
            "names": " ".join(self.rows),
            "packages": [list(_package_links(spans)) for spans in self.packages],
        }
        text = json.dumps(document, separators=(",", ":"))
        return f"window.cudaredistIndex.pieces[{number}]={text};\n".encode("ascii")


def symbol_pieces(
    libraries: Iterable[SymbolGroups], packages: Collection[str]
) -> list[SymbolPiece]:
    """Return the names that some packages export, in parts.

    `packages` has the packages with a page.
    """
    groups: dict[str, _Spans] = defaultdict(tuple)
    for every, names in chain.from_iterable(libraries):
        spans = tuple(span for span in every if span.package in packages)
        if spans:
            for name in names:
                groups[name] += spans
    pieces: list[SymbolPiece] = []
    previous = lower = ""
    for key, name in sorted((name.lower(), name) for name in groups):
        if not pieces or (pieces[-1].size >= PIECE_SIZE and key != lower):
            pieces.append(SymbolPiece(key[: _shared(lower, key) + 1] if pieces else ""))
        pieces[-1].add(name, previous, groups[name])
        previous, lower = name, key
    return pieces


def _package_links(spans: Iterable[ExportSpan]) -> Iterator[tuple[str, str]]:
    """Yield the link to each package, with its libraries and their releases in words."""
    details = grouped(((span.package, span.redist), _words(span)) for span in sorted(spans))
    for (package, redist), texts in details.items():
        link = f"{page_link(package_address(package), '')}#sonames"
        yield link, f"{package}, {redist}: {', '.join(texts)}"


def _words(span: ExportSpan) -> str:
    """Return a library and its releases in words: `libx.so.1 12.0.1 to 12.4.1 and 12.9.1`."""
    releases = " and ".join(run.replace("..", " to ") for run in span.releases.split(" "))
    removed = "" if span.is_newest else " (removed)"
    stub = " (for linking only)" if span.is_stub else ""
    return f"{span.library} {releases}{removed}{stub}"


def _shared(first: str, second: str) -> int:
    """Return the length of the common prefix of two names."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
