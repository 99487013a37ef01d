"""Libraries that a binary may open at run time.

A name counts if it is a whole string between two NULs and has the form of a library's file name,
with or without a path: `libcudnn_ops.so.9`, `nvrtc64_120_0.dll`. The binary may never open that
library. The names are a guess, and reports mark them as one.
"""

import re

_NAME_LIMIT = 200
"""Maximum bytes of a name with its path."""
_REACH = 256
"""Bytes before and after a block's end that are searched together, so that no name is split."""
_NAMES_LIMIT = 256
"""Maximum names of one file. Real files have at most forty."""
_HITS_LIMIT = 1 << 20
"""Maximum occurrences of the suffix in one file. Real files have forty."""

# Regular expressions that begin with a literal are twice as fast as `bytes.find`.
_SHARED_OBJECT_SUFFIXES = re.compile(rb"\.so").finditer
_DLL_SUFFIXES = re.compile(rb"\.(?:dll|\0d\0l\0l\0)").finditer
_SHARED_OBJECT = re.compile(rb"(?:[\w+./-]*/)?(lib[\w+.-]*\.so(?:\.[0-9]+)*)", re.ASCII)
_DLL = re.compile(rb"(?:[\w+./:\\-]*[/\\])?([\w+.-]+\.dll)", re.ASCII | re.IGNORECASE)


class OpenedNames:
    """Collector of the library names in a file's bytes."""

    def __init__(self, *, is_windows: bool) -> None:
        self._suffixes = _DLL_SUFFIXES if is_windows else _SHARED_OBJECT_SUFFIXES
        self._pattern = _DLL if is_windows else _SHARED_OBJECT
        self._end = b""
        """The last bytes of the previous block. A name may begin there."""
        self._hits = 0
        self._names: set[str] = set()
        self.is_cut = False
        """Whether the file has too many names."""

    def feed(self, block: bytes) -> None:
        """Search the next bytes of the file."""
        if self.is_cut:
            return
        self._search(self._end + block[:_REACH])
        self._search(block)
        self._end = (self._end + block)[-_REACH:] if len(block) < _REACH else block[-_REACH:]

    def names(self) -> tuple[str, ...]:
        """Return the sorted names, none if there are too many."""
        return () if self.is_cut else tuple(sorted(self._names))

    def _search(self, data: bytes) -> None:
        for suffix in self._suffixes(data):
            self._hits += 1
            if self._hits > _HITS_LIMIT:
                self.is_cut = True
                return
            self._take(data, suffix.start(), is_wide=b"\0" in suffix[0])

    def _take(self, data: bytes, at: int, *, is_wide: bool) -> None:
        """Add a library's name from around its suffix.

        The name must be a whole string.
        """
        nul = b"\0\0" if is_wide else b"\0"
        start = data.rfind(nul, max(0, at - _REACH), at)
        end = data.find(nul, at, at + _REACH)
        if start < 0 or end < 0 or end - start > _NAME_LIMIT:
            return
        text = data[start + len(nul) : end]
        if is_wide:
            # A UTF-16 name ends with three NULs: half of its last letter, and a two-byte NUL.
            text = text.replace(b"\0", b"")
        match = self._pattern.fullmatch(text)
        if match:
            self._names.add(match[1].decode())
            self.is_cut |= len(self._names) > _NAMES_LIMIT
