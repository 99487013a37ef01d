"""Uses of an API in a file of another language, as plain text."""

import re
from bisect import bisect_left

from cudaredist.source_code.branches import Context
from cudaredist.source_code.read_code import CodeFile, Interest, Use, arguments_after
from cudaredist.source_code.tokens import decode
from cudaredist.source_code.work_limit import WorkLimit

_word = re.compile(
    r"(?P<comment>\#[^\n]*|//[^\n]*)|(?P<text>\"[^\"\n]*\"|'[^'\n]*')|(?P<name>[^\W\d]\w*)",
    re.ASCII,
).finditer
_CALL_LIMIT = 4_000
"""Characters of a call that are read."""
_NAMES_IN_TEXT = (".t", ".lua")
"""Languages in which a string names a function of a library."""


def read_plain(data: bytes, interest: Interest, releases: int, path: str) -> CodeFile:
    """Return the names of an API in a text, outside of comments and strings.

    Raises `TooMuchWorkError` for a hostile file.
    """
    file = CodeFile()
    work = WorkLimit(len(data))
    text = decode(data)
    lines: list[int] | None = None
    context = Context(releases)
    has_names_in_text = path.endswith(_NAMES_IN_TEXT)
    for match in _word(text):
        name = match["name"]
        if name is None and has_names_in_text and match["text"]:
            name = match["text"][1:-1]
        if name not in interest.names:
            continue
        if lines is None:
            lines = [each.start() for each in re.finditer("\n", text)]
        line = 1 + bisect_left(lines, match.start())
        arguments = arguments_after(text[match.end() : match.end() + _CALL_LIMIT], work)
        file.uses.append(Use("text", name, line, context, arguments))
    return file
