"""Tokens of C, C++ and CUDA source code, without comments."""

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

_continuation = re.compile(r"\\[ \t]*\n")
_token = re.compile(
    r"""
    [ \t\f\v]+
    | //[^\n]*
    | /\*.*?(?:\*/|\Z)
    | (?P<newline>\n)
    | (?P<text>
        (?:u8|[uUL])?R"(?P<end>[^()\\\s"]{0,16})\(.*?(?:\)(?P=end)"|\Z)
        | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*+"?
        | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)*+'?
    )
    | (?P<name>[^\W\d]\w*)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'\w|[\w.])*)
    | (?P<mark>->\*?|::|&&|\|\||[=!<>]=|<<|>>|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
).finditer

END_OF_LINE = "\n"
"""The text of the mark after the last token of a directive."""
_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Token(NamedTuple):
    """One token."""

    kind: str
    """`name`, `number`, `text` (a string or character), `mark`, or `directive`: its `#`."""
    text: str
    start: int
    """Its position in the text."""


class SourceText:
    """The text of a file, with continued lines joined."""

    def __init__(self, text: str) -> None:
        parts = _continuation.split(text)
        self.text = "".join(parts)
        self._newlines = [match.start() for match in re.finditer("\n", self.text)]
        self._joined: list[int] = []
        """The positions at which lines were joined."""
        end = 0
        for part in parts[:-1]:
            end += len(part)
            self._joined.append(end)

    def line(self, position: int) -> int:
        """Return the number of the line of a position, from 1."""
        before = bisect_left(self._newlines, position)
        return 1 + before + bisect_left(self._joined, position + 1)

    def rest_of_line(self, position: int) -> str:
        """Return the text from a position to the end of its line."""
        end = self.text.find("\n", position)
        return self.text[position:] if end < 0 else self.text[position:end]

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens of the code and of directives."""
        is_line_start, in_directive = True, False
        for match in _token(self.text):
            kind = match.lastgroup
            if kind is None:
                continue
            if kind == "newline":
                if in_directive:
                    yield Token("mark", END_OF_LINE, match.start())
                is_line_start, in_directive = True, False
                continue
            if is_line_start and match.group() == "#":
                in_directive, kind = True, "directive"
            yield Token(kind, match.group(), match.start())
            is_line_start = False
        if in_directive:
            yield Token("mark", END_OF_LINE, len(self.text))


def decode(data: bytes) -> str:
    """Return the text of a file in any encoding, with line feeds as ends of lines."""
    encoding = next((name for mark, name in _ENCODINGS.items() if data.startswith(mark)), None)
    # The names of an API are ASCII. Latin-1 accepts all other bytes.
    text = data.decode(encoding or "latin-1", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
