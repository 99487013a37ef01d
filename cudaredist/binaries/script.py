"""Reader of linker scripts.

Linker scripts are small texts that replace a library and refer to others. A text is a linker script
if it contains, outside comments, only commands of the linker and among them INPUT or GROUP, or if
its first line is the title of a linker script.
"""

import re
from itertools import pairwise

from cudaredist.binaries.file_content import NAME_LIMIT
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.reader import NAMES_LIMIT

SCRIPT_LIMIT = 64 << 10
"""Bytes that are read. Real scripts have a few hundred."""

_TITLE = "/* GNU ld script"
_begins_like_script = re.compile(rb"\s*(?:/\*|[A-Z][A-Z_]*\s*\(|[A-Z][A-Z_]*\s*\Z)").match
# C headers also begin with a comment. The first word after it excludes most of them.
_BLANKS = r"(?>(?:[\s;]|/\*.*?(?:\*/|\Z))*)"
_begins_with_command = re.compile(rf"{_BLANKS}(?:[A-Z][A-Z_]*{_BLANKS})?\(", re.DOTALL).match
_drop_comments = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL).sub
_tokens = re.compile(r'"[^"]*"|[(){};,]|[^\s(){};,"]+|"').findall
_FILES = frozenset({"INPUT", "GROUP"})
_COMMANDS = _FILES | {
    *("AS_NEEDED", "ENTRY", "EXTERN", "OUTPUT", "OUTPUT_ARCH", "OUTPUT_FORMAT", "SEARCH_DIR"),
    *("STARTUP", "TARGET"),
}


def may_be_script(first: bytes) -> bool:
    """Return whether a file may be a linker script.

    `first` is its first bytes.
    """
    return _begins_like_script(first) is not None


def read_script(first: bytes) -> Binary | None:
    """Return a script's names in INPUT and GROUP.

    `first` is more than its first `SCRIPT_LIMIT` bytes, if it has so many. The names are in the
    script's order. Returns None if the text is not a linker script.
    """
    text = first[:SCRIPT_LIMIT].decode("utf-8", "replace")
    has_title = text.startswith(_TITLE)
    if "\0" in text or not (has_title or _begins_with_command(text)):
        return None
    needed, is_plain = _files(_tokens(_drop_comments(" ", text)))
    if not has_title and not (is_plain and needed):
        return None
    notes = []
    if len(first) > SCRIPT_LIMIT:
        notes.append(f"needed libraries not read: more than {SCRIPT_LIMIT:,} bytes")
    if len(needed) > NAMES_LIMIT:
        notes.append(f"needed libraries not read: more than {NAMES_LIMIT:,}")
    if not all(name.isprintable() and len(name) <= NAME_LIMIT for name in needed):
        notes.append("needed libraries not read: a name is not text or too long")
    if notes:
        return Binary(kind="script", unread=("needed",), notes=tuple(notes))
    return Binary(kind="script", needed=tuple(needed))


def _files(words: list[str]) -> tuple[list[str], bool]:
    """Return file names, and whether all words are commands."""
    names: list[str] = []
    is_plain = True
    depth, command = 0, ""
    for word, following in pairwise([*words, ""]):
        if word == "(":
            depth += 1
        elif word == ")":
            depth -= 1
        elif following == "(" and word in _COMMANDS:
            command = command if depth else word
        elif depth == 0:
            is_plain, command = is_plain and word == ";", ""
        elif command in _FILES and word != "," and word.strip('"'):
            names.append(word.strip('"'))
        if depth < 0:
            is_plain, depth = False, 0
    return names, is_plain and depth == 0
