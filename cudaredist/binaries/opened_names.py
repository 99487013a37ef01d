"""Names of libraries in a binary's data, which it may open at run time.

A name counts if it is a whole string, between two NULs, and has the form of a library's file name,
with or without a path before it: `libcudnn_ops.so.9`, `nvrtc64_120_0.dll`. Nothing says that such a
library is ever opened: it is a guess, and is marked as one wherever it is shown.
"""

import re

_NAME_LIMIT = 200
"""The most bytes of a name with its path."""
_REACH = 256
"""Bytes around a block's end that are searched together, so that no name is cut there."""
_NAMES_LIMIT = 256
"""The most names of one file; real ones have forty at most."""
_HITS_LIMIT = 1 << 20
"""How often the suffix may occur in one file; real ones have it forty times."""

_SHARED_OBJECT = re.compile(rb"(?:[\w+./-]*/)?(lib[\w+.-]*\.so(?:\.[0-9]+)*)", re.ASCII)
_DLL = re.compile(rb"(?:[\w+./:\\-]*[/\\])?([\w+.-]+\.dll)", re.ASCII | re.IGNORECASE)


class OpenedNames:
    """Collects the names of libraries in a file's bytes as they pass."""

    def __init__(self, *, is_windows: bool) -> None:
        self._needles = (b".dll", b".\0d\0l\0l\0") if is_windows else (b".so",)
        self._pattern = _DLL if is_windows else _SHARED_OBJECT
        self._end = b""
        """The last bytes of the block before, in which a name may begin."""
        self._hits = 0
        self._names: set[str] = set()
        self.is_cut = False
        """Whether there were too many to read them all."""

    def feed(self, block: bytes) -> None:
        """Look at the next bytes of the file."""
        if self.is_cut:
            return
        self._search(self._end + block[:_REACH])
        self._search(block)
        self._end = (self._end + block)[-_REACH:] if len(block) < _REACH else block[-_REACH:]

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted; none where there were too many."""
        return () if self.is_cut else tuple(sorted(self._names))

    def _search(self, data: bytes) -> None:
        for needle in self._needles:
            at = data.find(needle)
            while at >= 0:
                self._hits += 1
                if self._hits > _HITS_LIMIT:
                    self.is_cut = True
                    return
                self._take(data, at, is_wide="\0" in needle.decode())
                at = data.find(needle, at + len(needle))

    def _take(self, data: bytes, at: int, *, is_wide: bool) -> None:
        """Add the string around a suffix if it is whole and is a library's name."""
        nul = b"\0\0" if is_wide else b"\0"
        start = data.rfind(nul, max(0, at - _REACH), at)
        end = data.find(nul, at, at + _REACH)
        if start < 0 or end < 0 or end - start > _NAME_LIMIT:
            return
        text = data[start + len(nul) : end]
        if is_wide:
            # The last letter's upper half is the first of the three NULs at the end.
            text = text.replace(b"\0", b"")
        match = self._pattern.fullmatch(text)
        if match:
            self._names.add(match[1].decode())
            self.is_cut |= len(self._names) > _NAMES_LIMIT
