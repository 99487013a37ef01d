"""Decompressors of xz, gzip and zstd with one face, and caps on their memory and their output.

Output comes in the decompressor's own chunks, at most 256 KiB each: joining or cutting them anew
would cost a tenth of the whole pass.
"""

import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from cudaredist.archives.members import Limits
from cudaredist.archives.memory import SHARED
from cudaredist.archives.stream import Stream
from cudaredist.errors import InvalidArchiveError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

OUTPUT = 256 << 10
"""The most bytes of one unpacked chunk."""
INPUT = 64 << 10
"""The most packed bytes taken at once: what a stream's end leaves over is copied each time."""

_DECODING_ERRORS = (lzma.LZMAError, zlib.error, zstd.ZstdError, EOFError, MemoryError)

_GZIP = 31
"""zlib's number for: a gzip header, any window."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_HEADER = 18
"""Bytes that the header of a zstd frame has at most."""
_IS_SINGLE_SEGMENT = 0x20


class Budget:
    """How many bytes an archive may unpack to: `ratio` times its packed size, or the floor.

    Where the packed size is not known beforehand, the bytes that have arrived stand for it.
    """

    def __init__(self, where: str, size: int | None, limits: Limits) -> None:
        self._where = where
        self._size = size
        self._limits = limits
        self._arrived = 0
        self._spent = 0

    def counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass packed chunks on, and count them."""
        for chunk in chunks:
            self._arrived += len(chunk)
            yield chunk

    def spent(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass unpacked chunks on, and count them."""
        for chunk in chunks:
            self.spend(len(chunk))
            yield chunk

    def spend(self, count: int) -> None:
        """Count unpacked bytes; refuses the archive when they are too many."""
        self._spent += count
        if self._spent > self._limits.floor:
            packed = self._arrived if self._size is None else self._size
            if self._spent > self._limits.ratio * packed:
                raise InvalidArchiveError(
                    self._where,
                    f"unpacks to more than {self._limits.ratio} times its {packed:,} bytes",
                )


class _GzipDecompressor:
    """One gzip member, in the manners of the other decompressors."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        inflate = self._inflate
        output = inflate.decompress(inflate.unconsumed_tail or data, max_length)
        # A full output may have more behind it although all input is taken.
        self.needs_input = not inflate.unconsumed_tail and len(output) < max_length
        return output


_Decompressor: TypeAlias = lzma.LZMADecompressor | zstd.ZstdDecompressor | _GzipDecompressor


def check_dictionary(packed: Stream, size: int, limits: Limits) -> None:
    """Refuse an archive whose decompressor would need too large a dictionary."""
    if size > limits.dictionary:
        packed.refuse(
            f"requires a dictionary of {size:,} bytes; the limit is {limits.dictionary:,}"
        )


def decoded_gzip(packed: Stream) -> Iterator[bytes]:
    """Yield what one gzip stream unpacks to; its dictionary has 32 KiB."""
    return decoded("gzip", packed, _GzipDecompressor())


def decoded_zstd(packed: Stream, limits: Limits) -> Iterator[bytes]:
    """Yield what one zstd frame unpacks to; what it calls its window is a dictionary."""
    size = _window(packed.ahead(_ZSTD_HEADER))
    check_dictionary(packed, size, limits)
    options: dict[int, int] = {
        zstd.DecompressionParameter.window_log_max: (limits.dictionary - 1).bit_length()
    }
    with SHARED.dictionary(size):
        yield from decoded("zstd", packed, zstd.ZstdDecompressor(options=options))


def _window(header: bytes) -> int:
    """Return the window that a zstd frame states; 0 if it is damaged, or to be skipped."""
    header = header.ljust(_ZSTD_HEADER, b"\0")
    if header[:4] != _ZSTD_MAGIC:
        return 0
    flags, window = header[4], header[5]
    if flags & _IS_SINGLE_SEGMENT:
        # The window is all of the content.
        start = 5 + (0, 1, 2, 4)[flags & 3]
        length = (1, 2, 4, 8)[flags >> 6]
        size = int.from_bytes(header[start : start + length], "little")
        return size + 256 if length == 2 else size  # noqa: PLR2004 - two bytes begin at 256
    base = 1 << (window >> 3) + 10
    return base + (base >> 3) * (window & 7)


def decoded(kind: str, packed: Stream, decoder: _Decompressor) -> Iterator[bytes]:
    """Yield what one stream unpacks to, and leave the bytes after its end."""
    while not decoder.eof:
        data = b""
        if decoder.needs_input:
            data = packed.piece(INPUT)
            if not data:
                packed.refuse(f"ends in the middle of its {kind} stream")
        try:
            output = decoder.decompress(data, OUTPUT)
        except _DECODING_ERRORS as error:
            packed.refuse(f"is no valid {kind}: {error}")
        if output:
            yield output
    packed.give_back(len(decoder.unused_data))
