"""Libraries that a binary may open at run time.

A name counts if it is a whole string between two NULs and has the form of a library's file name,
with or without a path: `libcudnn_ops.so.9`, `nvrtc64_120_0.dll`. The binary may never open that
library. The names are a guess, and reports mark them as one.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cudaredist.binaries.file_content import BLOCK, FileContent, UnreadableError, outside

_NAME_LIMIT = 200
"""Maximum bytes of a name with its path."""
_REACH = 256
"""Bytes before and after a suffix that are searched for the ends of its name."""
_NAMES_LIMIT = 256
"""Maximum names of one file. Real files have at most forty."""
_HITS_LIMIT = 1 << 20
"""Maximum occurrences of the suffix in one file. Real files have forty."""


class LibraryNames(NamedTuple):
    """The form of the names of libraries: their suffix, and the whole name."""

    suffix: re.Pattern[bytes]
    match: Callable[[bytes], re.Match[bytes] | None]
    """Matches a whole name."""


# Regular expressions that begin with a literal are twice as fast as `bytes.find`.
SHARED_OBJECTS = LibraryNames(
    re.compile(rb"\.so"),
    re.compile(rb"(?:[\w+./-]*/)?(lib[\w+.-]*\.so(?:\.[0-9]+)*)", re.ASCII).fullmatch,
)
DLLS = LibraryNames(
    re.compile(rb"\.(?:dll|\0d\0l\0l\0)"),
    re.compile(rb"(?:[\w+./:\\-]*[/\\])?([\w+.-]+\.dll)", re.ASCII | re.IGNORECASE).fullmatch,
)


def opened_names(
    content: FileContent, skipped: Iterable[tuple[int, int]], form: LibraryNames
) -> set[str]:
    """Return the library names in a file's bytes outside of ranges. Raises `UnreadableError`."""
    names: set[str] = set()
    hits = 0
    # Blocks overlap, so that no name is split.
    parts = outside(skipped, content.size)
    step = BLOCK - 2 * _REACH
    for start, end in ((at, last) for first, last in parts for at in range(first, last, step)):
        before = min(start, _REACH)
        data = content.read(start - before, BLOCK)
        for suffix in form.suffix.finditer(data, before, before + end - start):
            hits += 1
            text = _string_around(data, suffix.start(), is_wide=b"\0" in suffix[0])
            if match := form.match(text):
                names.add(match[1].decode())
            if hits > _HITS_LIMIT or len(names) > _NAMES_LIMIT:
                raise UnreadableError("opened libraries not read: too many names")
    return names


def _string_around(data: bytes, at: int, *, is_wide: bool) -> bytes:
    """Return the whole string that contains a suffix, nothing if it has no end or is too long."""
    nul = b"\0\0" if is_wide else b"\0"
    start = data.rfind(nul, max(0, at - _REACH), at)
    end = data.find(nul, at, at + _REACH)
    if start < 0 or end < 0 or end - start > _NAME_LIMIT:
        return b""
    # A UTF-16 name ends with three NULs: half of its last letter, and a two-byte NUL.
    return data[start + len(nul) : end].replace(b"\0", b"")
