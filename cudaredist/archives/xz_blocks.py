"""The blocks of an xz stream, unpacked on several threads.

A file that was packed on several threads is many blocks, each with its sizes in its header, so that
it can be cut without unpacking it. Every block becomes a small xz of its own, with an index and a
footer that fit it: liblzma then confirms its sizes and its sum as it does for a whole file. The
stream's own index can be nothing but what the blocks add up to, and is compared with that.
"""

import lzma
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple

from cudaredist.archives.decompress import DECODING_ERRORS, INPUT, OUTPUT, Budget, decoded
from cudaredist.archives.members import Limits
from cudaredist.archives.stream import Stream

_MAGIC, _FOOTER_MAGIC = b"\xfd7zXZ\0", b"YZ"
_STREAM_HEADER = struct.Struct("<6s2sI")
_NUMBER = struct.Struct("<I")
_HAS_SIZES = 0xC0
_CHECK = 0x0F
_CHECK_SIZES = (0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64)
_ALIGNED = 4
_VARINT_LIMIT = 9
_CONTINUED = 0x80

_LARGEST = 64 << 20
"""Unpacked bytes of a block beyond which it is unpacked piece by piece, and not on a thread."""


class _Block(NamedTuple):
    header: bytes
    packed: int
    size: int
    check: int
    """Bytes of its sum."""

    @property
    def record(self) -> bytes:
        """What an index says of this block."""
        return _varint(len(self.header) + self.packed + self.check) + _varint(self.size)

    @property
    def rest(self) -> int:
        """Bytes behind the header: packed content, padding, sum."""
        return self.packed + -self.packed % _ALIGNED + self.check


def has_sized_blocks(packed: Stream) -> bool:
    """Whether an xz stream begins here whose first block states its sizes; takes nothing.

    All else, damaged or not, is left to liblzma.
    """
    head = packed.ahead(_STREAM_HEADER.size)
    if len(head) < _STREAM_HEADER.size:
        return False
    magic, flags, crc = _STREAM_HEADER.unpack(head)
    if magic != _MAGIC or zlib.crc32(flags) != crc or flags[0] or flags[1] > _CHECK:
        return False
    size = packed.ahead(len(head) + 1)[len(head) :]
    if size in {b"", b"\0"}:
        return False
    header = packed.ahead(len(head) + _header_size(size))[len(head) :]
    return _parsed(header, flags[1]) is not None


def decoded_blocks(packed: Stream, budget: Budget, limits: Limits, jobs: int) -> Iterator[bytes]:
    """Yield what one xz stream unpacks to; at most one block more than `jobs` is in memory."""
    head = packed.read(_STREAM_HEADER.size)
    flags = head[6:8]
    records: list[bytes] = []
    waiting: deque[Future[list[bytes]]] = deque()
    threads = ThreadPoolExecutor(jobs, "xz")

    def finished(left: int) -> Iterator[bytes]:
        while len(waiting) > left:
            try:
                outputs = waiting.popleft().result()
            except DECODING_ERRORS as error:
                packed.refuse(f"is no valid xz: {error}")
            # The last first, so that each can go once it is used.
            outputs.reverse()
            while outputs:
                budget.spend(len(outputs[-1]))
                yield outputs.pop()

    try:
        while packed.ahead(1) != b"\0":
            block = _next_block(packed, flags[1])
            records.append(block.record)
            if len(records) > limits.members:
                packed.refuse(f"has more than {limits.members:,} blocks")
            ending = _ending(flags, [block.record])
            if max(block.size, block.packed) > _LARGEST:
                yield from finished(0)
                pieces = chain([head, block.header], _pieces(packed, block.rest), [ending])
                decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.dictionary)
                yield from decoded("xz", Stream(packed.where, pieces), decoder, budget)
                continue
            alone = b"".join([head, block.header, packed.read(block.rest), ending])
            waiting.append(threads.submit(_decode, alone, limits.dictionary))
            del alone
            yield from finished(jobs)
        yield from finished(0)
    finally:
        threads.shutdown(cancel_futures=True)
    ending = _ending(flags, records)
    if packed.read(len(ending)) != ending:
        packed.refuse("is no valid xz: its index is not what came before")


def _decode(alone: bytes, dictionary: int) -> list[bytes]:
    """Unpack one block that was made a file of its own; its header bounds what comes out."""
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=dictionary)
    outputs = [decoder.decompress(alone, OUTPUT)]
    while not decoder.eof:
        if decoder.needs_input:
            raise lzma.LZMAError("Corrupt input data")
        outputs.append(decoder.decompress(b"", OUTPUT))
    return outputs


def _pieces(packed: Stream, count: int) -> Iterator[bytes]:
    while count:
        piece = packed.piece(min(count, INPUT))
        if not piece:
            packed.refuse("ends in the middle of its xz stream")
        count -= len(piece)
        yield piece


def _next_block(packed: Stream, check: int) -> _Block:
    size = packed.ahead(1)
    if not size:
        packed.refuse("ends in the middle of its xz stream")
    block = _parsed(packed.read(_header_size(size)), check)
    if block is None:
        packed.refuse("is no valid xz: a block is damaged, or lacks sizes that others have")
    return block


def _header_size(size: bytes) -> int:
    return (size[0] + 1) * _ALIGNED


def _parsed(header: bytes, check: int) -> _Block | None:
    """Read the sizes in a block's header; None where it has none, or is damaged."""
    end = len(header) - _NUMBER.size
    if end < _ALIGNED or zlib.crc32(header[:end]) != _NUMBER.unpack(header[end:])[0]:
        return None
    if header[1] & _HAS_SIZES != _HAS_SIZES:
        return None
    packed, at = _parsed_varint(header, 2)
    size, _ = _parsed_varint(header, at)
    return _Block(header, packed, size, _CHECK_SIZES[check]) if packed else None


def _ending(flags: bytes, records: list[bytes]) -> bytes:
    """Make the index and the footer of a stream of these blocks."""
    index = b"".join([b"\0", _varint(len(records)), *records])
    index += bytes(-len(index) % _ALIGNED)
    index += _NUMBER.pack(zlib.crc32(index))
    footer = _NUMBER.pack(len(index) // _ALIGNED - 1) + flags
    return index + _NUMBER.pack(zlib.crc32(footer)) + footer + _FOOTER_MAGIC


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= _CONTINUED:
        made.append(number & (_CONTINUED - 1) | _CONTINUED)
        number >>= 7
    return bytes([*made, number])


def _parsed_varint(data: bytes, start: int) -> tuple[int, int]:
    """Read a number, and where the next begins; liblzma judges its form later."""
    number = 0
    for index, byte in enumerate(data[start : start + _VARINT_LIMIT]):
        number |= (byte & (_CONTINUED - 1)) << 7 * index
        if byte < _CONTINUED:
            return number, start + index + 1
    return number, start + _VARINT_LIMIT
