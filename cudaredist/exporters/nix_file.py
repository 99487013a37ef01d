"""Edit a file of Nix code. Everything that is not edited stays as it is."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from cudaredist.errors import ContentError
from cudaredist.exporters.nix_code import NixValue, nix_binding, nix_indented
from cudaredist.primitives import natural_order

_tokens = re.compile(
    r"""\s+ | \#[^\n]* | /\*.*?\*/
    | (?P<word> "(?:\\.|[^"\\])*" | ''(?:''['$\\]|[^']|'(?!'))*'' | [A-Za-z_][\w'-]* | [=!<>]= | . )
    """,
    re.VERBOSE | re.DOTALL,
).finditer
_OPENING, _CLOSING = frozenset({"{", "(", "[", "let"}), frozenset({"}", ")", "]", "in"})
_end_of_line = re.compile(r"[ \t]*#[^\n]*").match
_indentation = re.compile(r"[ \t]*").match


class Binding(NamedTuple):
    """The offsets of an attribute: its name, its value, and the end of its semicolon."""

    start: int
    value: int
    end: int


@dataclass(slots=True)
class NixFile:
    """The text of a file.

    Names are searched for at any depth below their parent. Raises `ContentError` if a parent is
    missing.
    """

    path: str
    text: str

    def find(self, *names: str) -> Binding | None:
        """Return the attribute at a path of names, or None if it is missing."""
        binding = Binding(0, 0, len(self.text))
        for name in names:
            found = self._find(name, binding.value, binding.end)
            if found is None:
                return None
            binding = found
        return binding

    def _find(self, name: str, start: int, end: int) -> Binding | None:
        for word, sign in pairwise(self._words(start, end)):
            if sign["word"] == "=" and word["word"].strip('"') == name:
                outer = self._outer_words(sign.end(), end)
                ends = (token.end() for token in outer if token["word"] == ";")
                return next((Binding(word.start(), sign.end(), last) for last in ends), None)
        return None

    def _words(self, start: int, end: int) -> Iterator[re.Match[str]]:
        return (token for token in _tokens(self.text, start, end) if token["word"])

    def _outer_words(self, start: int, end: int) -> Iterator[re.Match[str]]:
        """Yield the outermost brackets, and the words outside of them."""
        depth = 0
        for token in self._words(start, end):
            depth -= token["word"] in _CLOSING
            if depth == 0:
                yield token
            depth += token["word"] in _OPENING

    def body(self, *names: str) -> tuple[int, int]:
        """Return the offsets of the last braces in the value of an attribute."""
        binding = self.find(*names)
        start, braces = 0, None
        for token in self._outer_words(*(binding or (0, 0, 0))[1:]):
            if token["word"] == "{":
                start = token.start()
            elif token["word"] == "}":
                braces = start, token.end()
        if braces is None:
            raise ContentError(f"{self.path}: no attributes in {'.'.join(names)}")
        return braces

    def put(self, names: tuple[str, ...], value: NixValue) -> None:
        """Set an attribute. Adds it if it is missing."""
        *parent, name = names
        binding = self.find(*names)
        if binding is None:
            self.add(parent, name, nix_binding(name, value))
            return
        lines = self.indented(nix_binding(name, value), binding.start)
        self.replace(binding.start, binding.end, lines.lstrip())

    def add(
        self,
        parent: Iterable[str],
        name: str,
        lines: Iterable[str],
        *,
        siblings: Iterable[str] = (),
        gap: str = "\n",
    ) -> None:
        """Add lines below a parent, after the last sibling that is sorted before the name."""
        start, end = self.body(*parent)
        earlier = {other for other in siblings if natural_order(other) < natural_order(name)}
        for other in sorted(earlier, key=natural_order, reverse=True):
            sibling = self._find(other, start, end)
            if sibling is not None:
                self.add_after(sibling, lines, gap=gap)
                return
        self.replace(start + 1, start + 1, "\n" + self.indented(nix_indented(lines), start))

    def add_after(self, sibling: Binding, lines: Iterable[str], *, gap: str) -> None:
        """Add lines after an attribute."""
        match = _end_of_line(self.text, sibling.end)
        end = match.end() if match else sibling.end
        self.replace(end, end, gap + self.indented(lines, sibling.start))

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a part of the text."""
        self.text = self.text[:start] + text + self.text[end:]

    def indented(self, lines: Iterable[str], offset: int) -> str:
        """Return lines with the indentation of the line at an offset."""
        match = _indentation(self.text, self.text.rfind("\n", 0, offset) + 1)
        space = match.group() if match else ""
        return "\n".join(f"{space}{line}" if line else "" for line in lines)
