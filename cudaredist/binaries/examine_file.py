"""Examine one file in one pass."""

from collections.abc import Iterable, Iterator

from cudaredist.binaries import ar, elf, pe, script
from cudaredist.binaries.fatbin import CONTAINER_MAGIC
from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.range_buffer import Range, Reread, blocks
from cudaredist.binaries.reader import FatbinReader, Reader

_SNIFF = 8
_OBJECT_SNIFF = 60
_COFF_STARTS = (b"\x64\x86", b"\x64\xaa", pe.ANONYMOUS)


def examine(
    chunks: Iterable[bytes],
    held: Iterable[Range] = (),
    missed: list[Range] | None = None,
    reread: Reread | None = None,
) -> Binary | None:
    """Return the facts of one file, None for an irrelevant one.

    An irrelevant file is not read to its end. If a range is needed after it has passed, `reread`
    reads it again. Without `reread`, it is added to `missed`. A second pass over the same bytes
    keeps the ranges in `held`. Only errors of `chunks` and `reread` are raised.
    """
    file = _File(chunks)
    first = file.peek(_SNIFF)
    if script.may_be_script(first):
        text = file.peek(script.SCRIPT_LIMIT + 1)
        is_cut = len(text) > script.SCRIPT_LIMIT
        return script.read_script(text[: script.SCRIPT_LIMIT], is_cut=is_cut)
    reader = _reader_of(file, first)
    if reader is None:
        return None
    reader.window.hold(held)
    reader.window.reread = reread
    for block in blocks(file.all()):
        reader.feed(block)
    binary = reader.finish()
    if missed is not None:
        missed += reader.window.missed
    return binary


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
