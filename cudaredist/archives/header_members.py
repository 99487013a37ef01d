"""The headers in an archive: its files below a folder `include`, with limits."""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from io import RawIOBase
from pathlib import PurePosixPath
from typing import IO, NoReturn

from cudaredist.archives.members import Members
from cudaredist.archives.zip import ZIP_ERRORS
from cudaredist.errors import InvalidArchiveError
from cudaredist.words import shown

_FILE_LIMIT = 16 << 20
_TOTAL_LIMIT = 128 << 20
_COUNT_LIMIT = 20_000
_CHUNK = 256 << 10
_PATH_LIMIT = 200
"""Characters of a path, which systems accept as the name of a file."""
_SUFFIXES = frozenset({"", ".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc"})


def header_path(name: str) -> str | None:
    """Return the path of a member as in `#include`, None if it is not a header."""
    folders, include, path = f"/{name}".partition("/include/")
    parts = PurePosixPath(path).parts
    is_safe = ".." not in parts and all(one.isprintable() for one in path)
    is_short = len(path) < _PATH_LIMIT
    if not include or not is_short or not parts or not is_safe or "/include/" in f"/{folders}/":
        return None
    return str(PurePosixPath(path)) if PurePosixPath(path).suffix in _SUFFIXES else None


def headers_of_wheel(file: IO[bytes] | RawIOBase, name: str) -> dict[str, bytes]:
    """Return the headers of a wheel by path. Other members are not read.

    The checksum of each header is verified. Raises `InvalidArchiveError`.
    """
    headers = _Headers(name)
    try:
        with zipfile.ZipFile(file) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
                path = header_path(info.filename)
                if path is None or info.is_dir():
                    continue
                with archive.open(info) as content:
                    headers.add(path, iter(lambda: content.read(_CHUNK), b""))
    except (*ZIP_ERRORS, OSError) as error:
        raise InvalidArchiveError(name, f"not a valid wheel: {error}") from error
    return headers.files


def headers_in(members: Members, name: str) -> dict[str, bytes]:
    """Return the headers among all members of an archive, by path.

    Links count as the header that they lead to. Raises `InvalidArchiveError`.
    """
    headers, links = _Headers(name), dict[str, str]()
    for member, chunks in members:
        path = header_path(member.name)
        if path is None:
            continue
        if member.kind == "file":
            headers.add(path, chunks)
        elif member.target is not None:
            links[path] = member.target
    for path, target in links.items():
        linked = header_path(target) or _beside(path, target)
        if linked in headers.files:
            headers.files[path] = headers.files[linked]
    return headers.files


def _beside(path: str, target: str) -> str:
    """Return the path of a relative link's target."""
    parts = list(PurePosixPath(path).parent.parts)
    for part in PurePosixPath(target).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
    return "/".join(parts)


class _Headers:
    """Headers that are read, with limits."""

    def __init__(self, archive: str) -> None:
        self._archive = archive
        self._total = 0
        self.files: dict[str, bytes] = {}

    def add(self, path: str, chunks: Iterable[bytes]) -> None:
        """Read a header."""
        self.files[path] = b"".join(self._counted(path, chunks))
        if len(self.files) > _COUNT_LIMIT:
            self._refuse(f"has more than {_COUNT_LIMIT:,} headers")

    def _counted(self, path: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self._total += len(chunk)
            if size > _FILE_LIMIT:
                self._refuse(f"header {shown(path)} has more than {_FILE_LIMIT:,} bytes")
            if self._total > _TOTAL_LIMIT:
                self._refuse(f"its headers have more than {_TOTAL_LIMIT:,} bytes")
            yield chunk

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidArchiveError(self._archive, reason)


def headers_to_bytes(headers: Mapping[str, bytes]) -> bytes:
    """Return headers as the bytes of a file, for a cache."""
    ordered = sorted(headers.items())
    lines = [f"{len(data)} {path}" for path, data in ordered]
    listing = "\n".join(lines).encode("utf-8", "surrogateescape")
    return b"%d\n%b%b" % (len(listing), listing, b"".join(data for _, data in ordered))


def headers_from_bytes(data: bytes) -> dict[str, bytes]:
    """Return the headers of a cached file."""
    size, _, rest = data.partition(b"\n")
    listing, rest = rest[: int(size)], rest[int(size) :]
    headers: dict[str, bytes] = {}
    start = 0
    for line in listing.decode("utf-8", "surrogateescape").splitlines():
        length, _, path = line.partition(" ")
        headers[path] = rest[start : start + int(length)]
        start += int(length)
    return headers
