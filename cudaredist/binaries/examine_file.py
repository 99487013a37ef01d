"""Examine one file: search its bytes once, then read its tables."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from cudaredist.binaries import ar, elf, pe, script
from cudaredist.binaries.fatbin import CONTAINER_MAGIC
from cudaredist.binaries.file_content import BUFFER, FileContent, InPlace, Scratch, Storage
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.reader import FatbinReader, Reader
from cudaredist.errors import ReadError

_SNIFF = 8
_OBJECT_SNIFF = 60
_COFF_STARTS = (b"\x64\x86", b"\x64\xaa", pe.ANONYMOUS)
BLOCK_LEAST = 64 << 10
BLOCK_MOST = 256 << 10


def examine_file(path: Path) -> Binary | None:
    """Return the facts of a file on the disk, None for an irrelevant one.

    Raises `ReadError`.
    """
    try:
        file = path.open("rb", BUFFER)
    except OSError as error:
        raise ReadError(path, error) from error
    with file:
        content = FileContent(file, os.fstat(file.fileno()).st_size, path)
        return examine(content.blocks(), InPlace(content))


def examine(chunks: Iterable[bytes], storage: Storage | None = None) -> Binary | None:
    """Return the facts of one file, None for an irrelevant one.

    An irrelevant file is not read to its end. The bytes of others are stored until the facts are
    read. Only errors of `chunks` and `storage` are raised.
    """
    if storage is None:
        with contextlib.closing(Scratch()) as scratch:
            return examine(chunks, scratch)
    file = _File(chunks)
    first = file.peek(_SNIFF)
    if script.may_be_script(first):
        text = file.peek(script.SCRIPT_LIMIT + 1)
        is_cut = len(text) > script.SCRIPT_LIMIT
        return script.read_script(text[: script.SCRIPT_LIMIT], is_cut=is_cut)
    reader = _reader_of(file, first)
    if reader is None:
        return None
    for block in storage.storing(blocks(file.all())):
        reader.feed(block)
    return reader.finish(storage.content())


def _reader_of(file: "_File", first: bytes) -> Reader | None:
    reader: Reader | None = None
    if first.startswith(elf.ELF_MAGIC):
        reader = elf.ElfReader()
    elif first.startswith((ar.AR_MAGIC, ar.THIN_MAGIC)):
        reader = ar.ArReader(is_thin=first.startswith(ar.THIN_MAGIC))
    elif first.startswith(CONTAINER_MAGIC):
        reader = FatbinReader()
    elif first.startswith(pe.DOS_MAGIC):
        # A DOS program has the same beginning, but no such header.
        place = pe.header_of_image(file.peek(pe.DOS_SIZE))
        if place is not None and file.peek(place + _SNIFF).startswith(pe.PE_MAGIC, place):
            reader = pe.PeReader(place)
    elif first.startswith(_COFF_STARTS) and pe.is_object(file.peek(_OBJECT_SNIFF)):
        reader = pe.CoffReader()
    return reader


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split or join chunks into blocks of 64 to 256 KiB.

    Searching is slow if chunks are tiny or huge. Chunks of a suitable size do not change. Only the
    last block may be smaller.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        if not parts and BLOCK_LEAST <= len(chunk) <= BLOCK_MOST:
            yield chunk
        elif chunk:
            parts.append(chunk)
            size += len(chunk)
            if size >= BLOCK_LEAST:
                yield from _cut(parts)
                size = 0
    yield from _cut(parts)


def _cut(parts: list[bytes]) -> Iterator[bytes]:
    joined = b"".join(parts)
    parts.clear()
    count = -(-len(joined) // BLOCK_MOST)
    size = -(-len(joined) // max(count, 1))
    for number in range(count):
        yield joined[number * size : (number + 1) * size]


class _File:
    """The chunks of one file, with lookahead."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._rest = iter(chunks)
        self._seen = b""

    def peek(self, size: int) -> bytes:
        """Return at least the first `size` bytes.

        If the file is shorter, return the whole file.
        """
        parts, length = [self._seen], len(self._seen)
        while length < size and (chunk := next(self._rest, None)) is not None:
            parts.append(chunk)
            length += len(chunk)
        self._seen = b"".join(parts) if len(parts) > 1 else self._seen
        return self._seen

    def all(self) -> Iterator[bytes]:
        """Yield all chunks from the beginning."""
        yield self._seen
        yield from self._rest
