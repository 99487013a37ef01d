"""One xz stream, block by block, on one thread or on several.

Every block becomes a small xz stream of its own, with an index and a footer that match it: liblzma
then verifies its sizes and its check as it does for a whole file. The index of the original stream
must be exactly the sum of the blocks, and is compared with that. A stream is cut in the same way
for any number of threads, so that the result does not depend on that number.

Blocks whose headers state their sizes can be unpacked ahead on threads. All others are unpacked
piece by piece: the chunks of LZMA2 state their lengths, so that the end of a block is found without
unpacking it.
"""

import lzma
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from cudaredist.archives.decompress import INPUT, check_dictionary, decoded
from cudaredist.archives.members import Limits
from cudaredist.archives.memory import SHARED
from cudaredist.archives.stream import Stream

_MAGIC, _FOOTER_MAGIC = b"\xfd7zXZ\0", b"YZ"
_STREAM_HEADER = struct.Struct("<6s2sI")
_NUMBER = struct.Struct("<I")
_MORE_FILTERS, _HAS_PACKED, _HAS_SIZE = 0x03, 0x40, 0x80
_LZMA2 = 0x21
_LARGEST_DICTIONARY = 40
_CHECK = 0x0F
_CHECK_SIZES = (0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64)
_ALIGNED = 4
_VARINT_LIMIT = 9
_CONTINUED = 0x80

# A chunk of LZMA2: its control byte, and the low bits of its unpacked and its packed size, each
# less one. Chunks that are stored have one size.
_CHUNK = struct.Struct(">BHH")
_STORED_HEADER = 3
_END = b"\0"
_STORED = frozenset({1, 2})
_PACKED, _NEW_PROPERTIES, _HIGH_BITS = 0x80, 0xC0, 0x1F

_SHARE = 4
"""How many blocks must fit into the shared memory for one of them to be unpacked on a thread."""


class _Block(NamedTuple):
    header: bytes
    dictionary: int
    packed: int
    """Packed and unpacked size; 0 if the header does not state them."""
    size: int

    @property
    def memory(self) -> int:
        """Bytes that are in use while this block is unpacked on a thread."""
        return self.packed + self.size + min(self.size, self.dictionary)


class _Index:
    """What the index of a stream must contain: the sizes of its blocks."""

    def __init__(self, flags: bytes) -> None:
        self._flags = flags
        self.check = _CHECK_SIZES[flags[1]]
        """Bytes of each block's check."""
        self._records = bytearray()
        self.count = 0

    def add(self, header: bytes, packed: int, size: int) -> bytes:
        """Add a block, and return the end of a stream that consists of this block."""
        record = _varint(len(header) + packed + self.check) + _varint(size)
        self._records += record
        self.count += 1
        return self._ending(1, record)

    def ending(self) -> bytes:
        """Return the index and the footer of the stream."""
        return self._ending(self.count, bytes(self._records))

    def _ending(self, count: int, records: bytes) -> bytes:
        index = b"\0" + _varint(count) + records
        index += bytes(-len(index) % _ALIGNED)
        index += _NUMBER.pack(zlib.crc32(index))
        footer = _NUMBER.pack(len(index) // _ALIGNED - 1) + self._flags
        return index + _NUMBER.pack(zlib.crc32(footer)) + footer + _FOOTER_MAGIC


class _Ahead:
    """Blocks that are unpacked on threads while those in front of them are used."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._threads: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[int, Future[list[bytes]]]] = deque()
        self._taken = 0

    def __len__(self) -> int:
        """Return how many blocks were not used yet."""
        return len(self._waiting)

    def take(self, block: _Block) -> bool:
        """Take the memory for a block; return whether it can be unpacked on a thread now."""
        can_be_ahead = (
            len(self._waiting) <= self._jobs > 1
            and block.packed > 0 < block.size
            and block.memory * _SHARE <= SHARED.size
        )
        is_taken = can_be_ahead and SHARED.take(block.memory)
        self._taken += block.memory if is_taken else 0
        return is_taken

    def start(self, block: _Block, stream: Stream) -> None:
        """Unpack a block whose memory was taken; `stream` contains nothing else."""
        self._threads = self._threads or ThreadPoolExecutor(self._jobs, "xz")
        self._waiting.append((block.memory, self._threads.submit(_unpacked, stream)))

    def oldest(self) -> Iterator[bytes]:
        """Yield the content of the first block that was started, and give back its memory."""
        memory, future = self._waiting.popleft()
        outputs = future.result()
        # The last first, so that each can be freed once it is used.
        outputs.reverse()
        while outputs:
            yield outputs.pop()
        self._taken -= memory
        SHARED.give_back(memory)

    def close(self) -> None:
        """Stop all threads and give back all memory."""
        if self._threads:
            self._threads.shutdown(cancel_futures=True)
        self._waiting.clear()
        SHARED.give_back(self._taken)


def decoded_blocks(packed: Stream, limits: Limits, jobs: int) -> Iterator[bytes]:
    """Yield what one xz stream unpacks to, on as many threads as there is shared memory for."""
    head = _read(packed, _STREAM_HEADER.size)
    index = _Index(_checked_flags(packed, head))
    ahead = _Ahead(jobs)
    try:
        while packed.ahead(1) != b"\0":
            block = _next_block(packed)
            check_dictionary(packed, block.dictionary, limits)
            if index.count == limits.members:
                packed.refuse(f"has more than {limits.members:,} blocks")
            is_ahead = ahead.take(block)
            while not is_ahead and ahead:
                yield from ahead.oldest()
                is_ahead = ahead.take(block)
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
    if _read(packed, len(ending)) != ending:
        packed.refuse("is no valid xz: its index is not what came before")


def _decoded(stream: Stream) -> Iterator[bytes]:
    return decoded("xz", stream, lzma.LZMADecompressor(lzma.FORMAT_XZ))


def _unpacked(stream: Stream) -> list[bytes]:
    return list(_decoded(stream))


def _alone(packed: Stream, head: bytes, block: _Block, index: _Index) -> Stream:
    """Take a block whose sizes are known, and return a stream that consists of it."""
    body = _read(packed, block.packed + -block.packed % _ALIGNED + index.check)
    ending = index.add(block.header, block.packed, block.size)
    return Stream(packed.where, [head, block.header, body, ending])


def _pieces_of(packed: Stream, head: bytes, block: _Block, index: _Index) -> Iterator[bytes]:
    """Yield a stream that consists of one block, whose end is found on the way."""
    yield head
    yield block.header
    length = size = 0
    is_end = False
    while not is_end:
        is_end = packed.ahead(1) == _END
        chunk, unpacked = _next_chunk(packed)
        yield from _pieces(packed, chunk)
        length += chunk
        size += unpacked
    yield from _pieces(packed, -length % _ALIGNED + index.check)
    yield index.add(block.header, length, size)


def _next_chunk(packed: Stream) -> tuple[int, int]:
    """Return the packed and the unpacked size of the next chunk of LZMA2, and take nothing."""
    # If the archive ends here, the chunk is longer than the rest of it.
    header = packed.ahead(_CHUNK.size).ljust(_CHUNK.size, b"\0")
    control, low, length = _CHUNK.unpack(header)
    if header[:1] == _END:
        return 1, 0
    if control in _STORED:
        return _STORED_HEADER + low + 1, low + 1
    if control < _PACKED:
        packed.refuse("is no valid xz: Corrupt input data")
    properties = 1 if control >= _NEW_PROPERTIES else 0
    return _CHUNK.size + properties + length + 1, ((control & _HIGH_BITS) << 16 | low) + 1


def _pieces(packed: Stream, count: int) -> Iterator[bytes]:
    while count:
        piece = packed.piece(min(count, INPUT))
        if not piece:
            packed.refuse("ends in the middle of its xz stream")
        count -= len(piece)
        yield piece


def _read(packed: Stream, count: int) -> bytes:
    return b"".join(_pieces(packed, count))


def _checked_flags(packed: Stream, head: bytes) -> bytes:
    """Return the flags of a stream, after verifying its header."""
    magic, _, crc = _STREAM_HEADER.unpack(head)
    flags = head[len(_MAGIC) : -_NUMBER.size]
    if magic != _MAGIC or zlib.crc32(flags) != crc or flags[0] or flags[1] > _CHECK:
        packed.refuse("is no valid xz: its header is damaged, or of another format")
    if not lzma.is_check_supported(flags[1]):
        packed.refuse(f"is no valid xz: its check is of unknown type {flags[1]}")
    return flags


def _next_block(packed: Stream) -> _Block:
    """Read the header of a block; liblzma verifies the parts that are not used here."""
    first = packed.ahead(1)
    if not first:
        packed.refuse("ends in the middle of its xz stream")
    header = _read(packed, (first[0] + 1) * _ALIGNED)
    body, crc = header[: -_NUMBER.size], header[-_NUMBER.size :]
    if zlib.crc32(body) != _NUMBER.unpack(crc)[0]:
        packed.refuse("is no valid xz: the header of a block is damaged")
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
    """Return the size of a dictionary; liblzma refuses numbers that stand for none."""
    bits = min(properties[0], _LARGEST_DICTIONARY) if properties else 0
    return (2 | bits & 1) << bits // 2 + 11


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= _CONTINUED:
        made.append(number & (_CONTINUED - 1) | _CONTINUED)
        number >>= 7
    return bytes([*made, number])


def _parsed_varint(data: bytes, start: int) -> tuple[int, int]:
    """Read a number, and the position of the next one; liblzma verifies its form later."""
    number = 0
    for index, byte in enumerate(data[start : start + _VARINT_LIMIT]):
        number |= (byte & (_CONTINUED - 1)) << 7 * index
        if byte < _CONTINUED:
            return number, start + index + 1
    return number, start + _VARINT_LIMIT
