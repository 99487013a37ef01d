"""Decompression of one xz stream by blocks, on threads.

Every block becomes a small xz stream with its own index and footer, so that liblzma verifies its
sizes and its check as for a whole file. The index of the original stream must match the sizes of
all blocks. The stream is split in the same way for any number of threads, so the result does not
depend on that number.

If a block's header states its sizes, the block can be unpacked ahead on a thread. All others are
unpacked piece by piece: the chunks of LZMA2 state their lengths, so the end of a block can be found
without unpacking it.
"""

import lzma
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from cudaredist.archives.decompress import check_dictionary, decoded
from cudaredist.archives.members import Limits
from cudaredist.archives.memory import SHARED
from cudaredist.archives.stream import Stream

_MAGIC, _FOOTER_MAGIC = b"\xfd7zXZ\0", b"YZ"
_STREAM_HEADER = struct.Struct("<6s2sI")
_NUMBER = struct.Struct("<I")
_MORE_FILTERS, _HAS_PACKED, _HAS_SIZE = 0x03, 0x40, 0x80
_TRUNCATED = "is truncated in its xz stream"
_LZMA2 = 0x21
_LARGEST_DICTIONARY = 40
_CHECK = 0x0F
_CHECK_SIZES = (0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64)
_ALIGNED = 4
_VARINT_LIMIT = 9
_CONTINUED = 0x80

# The header of an LZMA2 chunk: a control byte, and the low bits of its unpacked and packed sizes,
# each minus one. Stored chunks have only one size.
_CHUNK = struct.Struct(">BHH")
_STORED_HEADER = 3
_END = b"\0"
_STORED = frozenset({1, 2})
_PACKED, _NEW_PROPERTIES, _HIGH_BITS = 0x80, 0xC0, 0x1F

_SHARE = 4
"""A block is unpacked on a thread only if this many blocks of its size fit into shared memory."""


class _Block(NamedTuple):
    header: bytes
    dictionary: int
    packed: int
    """The packed size, 0 if the header does not state it."""
    size: int
    """The unpacked size, 0 if the header does not state it."""

    @property
    def memory(self) -> int:
        """Bytes in use while a thread unpacks the block."""
        return self.packed + self.size + min(self.size, self.dictionary)


class _Index:
    """The expected index of a stream: the sizes of its blocks."""

    def __init__(self, flags: bytes) -> None:
        self._flags = flags
        self.check = _CHECK_SIZES[flags[1]]
        """Bytes of each block's check."""
        self._records: list[bytes] = []

    def add(self, header: bytes, packed: int, size: int) -> bytes:
        """Add a block and return its own stream's ending."""
        self._records.append(_varint(len(header) + packed + self.check) + _varint(size))
        return self._ending(self._records[-1:])

    def ending(self) -> bytes:
        """Return the expected index and footer of the stream."""
        return self._ending(self._records)

    def _ending(self, records: list[bytes]) -> bytes:
        index = b"".join([b"\0", _varint(len(records)), *records])
        index += bytes(-len(index) % _ALIGNED)
        index += _NUMBER.pack(zlib.crc32(index))
        footer = _NUMBER.pack(len(index) // _ALIGNED - 1) + self._flags
        return index + _NUMBER.pack(zlib.crc32(footer)) + footer + _FOOTER_MAGIC


class _Ahead:
    """Blocks that threads unpack ahead of the reader."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._threads = ThreadPoolExecutor(jobs, "xz")
        self._waiting: deque[tuple[int, Future[list[bytes]]]] = deque()
        self._reserved = 0

    def __len__(self) -> int:
        """Return the number of pending blocks."""
        return len(self._waiting)

    def reserve(self, block: _Block) -> bool:
        """Reserve memory to unpack a block on a thread.

        Returns whether that is possible now.
        """
        can_be_ahead = (
            len(self._waiting) <= self._jobs > 1
            and block.packed > 0 < block.size
            and block.memory * _SHARE <= SHARED.size
            and SHARED.reserve(block.memory)
        )
        self._reserved += block.memory if can_be_ahead else 0
        return can_be_ahead

    def start(self, block: _Block, stream: Stream) -> None:
        """Unpack the block in `stream` on a thread, after `reserve`."""
        self._waiting.append((block.memory, self._threads.submit(list, _decoded(stream))))

    def oldest(self) -> Iterator[bytes]:
        """Yield the oldest block's content and release its memory."""
        memory, future = self._waiting.popleft()
        outputs = future.result()
        # Reversed, so that each output can be freed after its use.
        outputs.reverse()
        while outputs:
            yield outputs.pop()
        self._reserved -= memory
        SHARED.release(memory)

    def close(self) -> None:
        """Stop all threads and release all memory."""
        self._threads.shutdown(cancel_futures=True)
        self._waiting.clear()
        SHARED.release(self._reserved)


def decoded_blocks(
    packed: Stream, limits: Limits, jobs: int, begin_part: Callable[[], None]
) -> Iterator[bytes]:
    """Decompress one xz stream, on threads if possible.

    The free shared memory limits the number of threads. `begin_part` is called for each block, and
    limits their number.
    """
    head = packed.read(_STREAM_HEADER.size, _TRUNCATED)
    index = _Index(_checked_flags(packed, head))
    ahead = _Ahead(jobs)
    try:
        while packed.ahead(1) != b"\0":
            block = _next_block(packed)
            check_dictionary(packed, block.dictionary, limits)
            begin_part()
            while not (is_ahead := ahead.reserve(block)) and ahead:
                yield from ahead.oldest()
            if is_ahead:
                ahead.start(block, _alone(packed, head, block, index))
            else:
                pieces = _pieces_of(packed, head, block, index)
                with SHARED.dictionary(block.dictionary):
                    yield from _decoded(Stream(packed.where, pieces))
        while ahead:
            yield from ahead.oldest()
    finally:
        ahead.close()
    ending = index.ending()
    if packed.read(len(ending), _TRUNCATED) != ending:
        packed.refuse("is not valid xz: its index does not match its blocks")


def _decoded(stream: Stream) -> Iterator[bytes]:
    return decoded("xz", stream, lzma.LZMADecompressor(lzma.FORMAT_XZ))


def _alone(packed: Stream, head: bytes, block: _Block, index: _Index) -> Stream:
    """Read a block of known sizes as its own stream."""
    body = packed.read(block.packed + -block.packed % _ALIGNED + index.check, _TRUNCATED)
    ending = index.add(block.header, block.packed, block.size)
    return Stream(packed.where, [head, block.header, body, ending])


def _pieces_of(packed: Stream, head: bytes, block: _Block, index: _Index) -> Iterator[bytes]:
    """Yield a stream of one block of unknown sizes."""
    yield head
    yield block.header
    length = size = 0
    is_end = False
    while not is_end:
        is_end = packed.ahead(1) == _END
        chunk, unpacked = _next_chunk(packed)
        yield from packed.pieces(chunk, _TRUNCATED)
        length += chunk
        size += unpacked
    yield from packed.pieces(-length % _ALIGNED + index.check, _TRUNCATED)
    yield index.add(block.header, length, size)


def _next_chunk(packed: Stream) -> tuple[int, int]:
    """Return the next LZMA2 chunk's packed and unpacked size.

    The chunk is not read.
    """
    # If the archive is truncated here, the chunk is longer than the rest of it.
    header = packed.ahead(_CHUNK.size).ljust(_CHUNK.size, b"\0")
    control, low, length = _CHUNK.unpack(header)
    if header[:1] == _END:
        return 1, 0
    if control in _STORED:
        return _STORED_HEADER + low + 1, low + 1
    if control < _PACKED:
        packed.refuse("is not valid xz: Corrupt input data")
    properties = 1 if control >= _NEW_PROPERTIES else 0
    return _CHUNK.size + properties + length + 1, ((control & _HIGH_BITS) << 16 | low) + 1


def _checked_flags(packed: Stream, head: bytes) -> bytes:
    """Verify the header of a stream and return its flags."""
    magic, _, crc = _STREAM_HEADER.unpack(head)
    flags = head[len(_MAGIC) : -_NUMBER.size]
    if magic != _MAGIC or zlib.crc32(flags) != crc or flags[0] or flags[1] > _CHECK:
        packed.refuse("is not valid xz: its header is damaged or of another format")
    if not lzma.is_check_supported(flags[1]):
        packed.refuse(f"is not valid xz: its check has the unknown type {flags[1]}")
    return flags


def _next_block(packed: Stream) -> _Block:
    """Read the header of a block.

    liblzma verifies the other fields.
    """
    first = packed.ahead(1)
    if not first:
        packed.refuse(_TRUNCATED)
    header = packed.read((first[0] + 1) * _ALIGNED, _TRUNCATED)
    body, crc = header[: -_NUMBER.size], header[-_NUMBER.size :]
    if zlib.crc32(body) != _NUMBER.unpack(crc)[0]:
        packed.refuse("is not valid xz: the header of a block is damaged")
    flags, at = body[1], 2
    packed_size = size = dictionary = 0
    if flags & _HAS_PACKED:
        packed_size, at = _parsed_varint(body, at)
    if flags & _HAS_SIZE:
        size, at = _parsed_varint(body, at)
    for _ in range((flags & _MORE_FILTERS) + 1):
        number, at = _parsed_varint(body, at)
        length, at = _parsed_varint(body, at)
        if number == _LZMA2:
            dictionary = _dictionary(body[at : at + 1])
        at += length
    return _Block(header, dictionary, packed_size, size)


def _dictionary(properties: bytes) -> int:
    """Return the dictionary size for LZMA2's properties.

    liblzma refuses invalid properties.
    """
    bits = min(properties[0], _LARGEST_DICTIONARY) if properties else 0
    return (2 | bits & 1) << bits // 2 + 11


def _varint(number: int) -> bytes:
    encoding = bytearray()
    while number >= _CONTINUED:
        encoding.append(number & (_CONTINUED - 1) | _CONTINUED)
        number >>= 7
    return bytes([*encoding, number])


def _parsed_varint(data: bytes, start: int) -> tuple[int, int]:
    """Return a number and the position after it.

    liblzma verifies its form later.
    """
    number = 0
    for index, byte in enumerate(data[start : start + _VARINT_LIMIT]):
        number |= (byte & (_CONTINUED - 1)) << 7 * index
        if byte < _CONTINUED:
            return number, start + index + 1
    return number, start + _VARINT_LIMIT
