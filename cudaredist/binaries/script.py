"""Linker scripts: small texts that stand in a library's place and name the real libraries.

A script is told from any other text by its form: outside comments it has nothing but the linker's
commands, among them INPUT or GROUP, or it says in its first line that it is one.
"""

import re
from itertools import pairwise

from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.range_buffer import NAME_LIMIT
from cudaredist.binaries.reader import NAMES_LIMIT

SCRIPT_LIMIT = 64 << 10
"""Bytes that are looked at; real scripts have a few hundred."""

_TITLE = "/* GNU ld script"
_begins_like_script = re.compile(rb"\s*(?:/\*|[A-Z][A-Z_]*\s*\(|[A-Z][A-Z_]*\s*\Z)").match
_drop_comments = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL).sub
_tokens = re.compile(r'"[^"]*"|[(){};,]|[^\s(){};,"]+|"').findall
_FILES = frozenset({"INPUT", "GROUP"})
_COMMANDS = _FILES | {
    *("AS_NEEDED", "ENTRY", "EXTERN", "OUTPUT", "OUTPUT_ARCH", "OUTPUT_FORMAT", "SEARCH_DIR"),
    *("STARTUP", "TARGET"),
}


def may_be_script(first: bytes) -> bool:
    """Tell from the first few bytes whether it is worth to look at more."""
    return _begins_like_script(first) is not None


def read_script(data: bytes, *, is_cut: bool) -> Binary | None:
    """Return the names in INPUT and GROUP, in order; None where the text is no linker script."""
    text = data.decode("utf-8", "replace")
    if "\0" in text:
        return None
    needed, is_plain = _files(_tokens(_drop_comments(" ", text)))
    if not text.startswith(_TITLE) and not (is_plain and needed):
        return None
    notes = []
    if is_cut:
        notes.append(f"needed libraries not read: more than {SCRIPT_LIMIT:,} bytes")
    if len(needed) > NAMES_LIMIT:
        notes.append(f"needed libraries not read: more than {NAMES_LIMIT:,}")
    if not all(name.isprintable() and len(name) <= NAME_LIMIT for name in needed):
        notes.append("needed libraries not read: a name is no text, or has no end")
    if notes:
        return Binary(kind="script", unread=("needed",), notes=tuple(notes))
    return Binary(kind="script", needed=tuple(needed))


def _files(words: list[str]) -> tuple[list[str], bool]:
    """Return the names of files, and whether there is nothing but commands."""
    names: list[str] = []
    is_plain = True
    depth, command = 0, ""
    for word, behind in pairwise([*words, ""]):
        if word == "(":
            depth += 1
        elif word == ")":
            depth -= 1
        elif behind == "(" and word in _COMMANDS:
            command = command if depth else word
        elif depth == 0:
            is_plain, command = is_plain and word == ";", ""
        elif command in _FILES and word != "," and word.strip('"'):
            names.append(word.strip('"'))
        if depth < 0:
            is_plain, depth = False, 0
    return names, is_plain and depth == 0
