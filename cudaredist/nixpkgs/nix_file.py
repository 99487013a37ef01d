"""Edit a file of Nix code. Everything that is not edited stays as it is."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from cudaredist.errors import ContentError
from cudaredist.exporters.nix_code import (
    NixExpression,
    NixValue,
    nix_binding,
    nix_indented,
    nix_string,
)
from cudaredist.primitives import natural_order

_tokens = re.compile(
    r"""\s+ | \#[^\n]* | /\*.*?(?:\*/|\Z)
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
    has_crlf: bool = False
    """Whether all lines end with CRLF in the file."""

    @classmethod
    def decode(cls, path: str, data: bytes) -> "NixFile":
        """Return the text of a file's bytes."""
        text = data.decode(errors="surrogateescape")
        has_crlf = "\n" in text and text.count("\n") == text.count("\r\n")
        return cls(path, text.replace("\r\n", "\n") if has_crlf else text, has_crlf)

    def encode(self) -> bytes:
        """Return the bytes for the file."""
        text = self.text.replace("\n", "\r\n") if self.has_crlf else self.text
        return text.encode(errors="surrogateescape")

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
        """Return the first attribute with a name in a part of the text, or None."""
        for word, sign in pairwise(self._words(start, end)):
            if sign["word"] == "=" and word["word"].strip('"') == name:
                for token in self._outer_words(sign.end(), end):
                    if token["word"] == ";":
                        return Binding(word.start(), sign.end(), token.end())
                return None
        return None

    def _words(self, start: int, end: int) -> Iterator[re.Match[str]]:
        return (token for token in _tokens(self.text, start, end) if token["word"])

    def words(self, start: int, end: int) -> list[str]:
        """Return the words in a part of the text, without comments."""
        return [token["word"] for token in self._words(start, end)]

    def _outer_words(self, start: int, end: int) -> Iterator[re.Match[str]]:
        """Yield the outermost brackets, and the words outside of them."""
        depth = 0
        for token in self._words(start, end):
            if token["word"] in _CLOSING:
                depth -= 1
            if depth == 0:
                yield token
            if token["word"] in _OPENING:
                depth += 1

    def body(self, *names: str) -> tuple[int, int]:
        """Return the offsets of the last braces in the value of an attribute."""
        binding = self.find(*names)
        braces = None if binding is None else self.braces(binding)
        if braces is None:
            raise ContentError(f"{self.path}: no attributes in {'.'.join(names)}")
        return braces

    def braces(self, binding: Binding) -> tuple[int, int] | None:
        """Return the offsets of the last outermost braces in a value, or None."""
        start, braces = 0, None
        for token in self._outer_words(binding.value, binding.end):
            if token["word"] == "{":
                start = token.start()
            elif token["word"] == "}":
                braces = start, token.end()
        return braces

    def put(self, names: tuple[str, ...], value: NixValue, order: Sequence[str] = ()) -> None:
        """Set an attribute. If it is missing, adds it after the last one before it in the order."""
        *parent, name = names
        binding = self.find(*names)
        if binding is None:
            start, end = self.body(*parent)
            earlier = [*order[: order.index(name)]] if name in order else []
            found = (self._find(other, start, end) for other in reversed(earlier))
            sibling = next(filter(None, found), None)
            if sibling is None:
                self.add(parent, name, nix_binding(name, value))
            else:
                self.add_after(sibling, nix_binding(name, value), gap="\n")
            return
        literals = list(self._words(binding.value, binding.end - 1))
        code = list(nix_binding(name, value))
        if len(literals) == len(code) == 1 and not isinstance(value, NixExpression):
            # A literal: everything around it stays, such as comments.
            (literal,), (line,) = literals, code
            self.replace(literal.start(), literal.end(), line.partition(" = ")[2][:-1])
            return
        comments = self.comments(binding.value, binding.end)
        lines = self.indented([*comments, *code], binding.start)
        self.replace(binding.start, binding.end, lines.lstrip())

    def rename_strings(self, binding: Binding, renamed: Mapping[str, str]) -> None:
        """Replace the strings in a value, but not those in its comments."""
        quoted = {nix_string(old): nix_string(new) for old, new in renamed.items()}
        words = self._words(binding.value, binding.end)
        for word in reversed([word for word in words if word["word"] in quoted]):
            self.replace(word.start(), word.end(), quoted[word["word"]])

    def without_comments(self, start: int, end: int) -> str:
        """Return a part of the text without comments and the lines that consist of them."""
        code = ""
        for token in _tokens(self.text, start, end):
            if token["word"] or token[0].isspace():
                code += token[0]
            elif code.rpartition("\n")[2].strip() == "":
                code = code.rstrip(" \t").removesuffix("\n")
            else:
                code = code.rstrip(" \t")
        return code

    def comments(self, start: int, end: int) -> list[str]:
        """Return the lines of the comments in a part of the text."""
        tokens = _tokens(self.text, start, end)
        comments = [token[0] for token in tokens if not token["word"] and token[0].strip()]
        return [line.strip() for comment in comments for line in comment.split("\n")]

    def add(
        self,
        parent: Iterable[str],
        name: str,
        lines: Iterable[str],
        *,
        siblings: Iterable[str] = (),
        gap: str = "\n",
    ) -> None:
        """Add lines below a parent, after the last sibling that is sorted before the name.

        Without one, they are the first ones in the braces of the other siblings.
        """
        start, end = self.body(*parent)
        earlier = {other for other in siblings if natural_order(other) < natural_order(name)}
        for other in sorted(earlier, key=natural_order, reverse=True):
            sibling = self._find(other, start, end)
            if sibling is not None:
                self.add_after(sibling, lines, gap=gap)
                return
        for other in sorted(set(siblings) - earlier, key=natural_order):
            sibling = self._find(other, start, end)
            if sibling is not None:
                start = self._innermost_brace(start, sibling.start)
                break
        self.replace(start + 1, start + 1, "\n" + self.indented(nix_indented(lines), start))

    def _innermost_brace(self, start: int, end: int) -> int:
        """Return the offset of the last brace in a part of the text that is not closed there."""
        opened = [start]
        for token in self._words(start + 1, end):
            if token["word"] == "{":
                opened.append(token.start())
            elif token["word"] == "}":
                opened.pop()
        return opened[-1]

    def add_after(self, sibling: Binding, lines: Iterable[str], *, gap: str) -> None:
        """Add lines after an attribute."""
        match = _end_of_line(self.text, sibling.end)
        end = match.end() if match else sibling.end
        self.replace(end, end, gap + self.indented(lines, sibling.start))

    def remove(self, *names: str) -> None:
        """Remove the lines of an attribute, if it exists."""
        binding = self.find(*names)
        if binding is not None:
            start = self.text.rfind("\n", 0, binding.start)
            self.replace(start, self.text.find("\n", binding.end), "")

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a part of the text."""
        self.text = self.text[:start] + text + self.text[end:]

    def indented(self, lines: Iterable[str], offset: int) -> str:
        """Return lines with the indentation of the line at an offset."""
        match = _indentation(self.text, self.text.rfind("\n", 0, offset) + 1)
        space = match.group() if match else ""
        return "\n".join(f"{space}{line}" if line else "" for line in lines)
