"""Decompressors of xz, gzip and zstd with one face, and caps on their memory and their output.

Output comes in the decompressor's own chunks, at most 256 KiB each: joining or cutting them anew
would cost a tenth of the whole pass.
"""

import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from cudaredist.archives.members import Limits
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

DECODING_ERRORS = (lzma.LZMAError, zlib.error, zstd.ZstdError, EOFError, MemoryError)

_GZIP = 31
"""zlib's number for: a gzip header, any window."""


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


class Decompressor(Protocol):
    """What the decompressors of lzma and zstd have in common."""

    @property
    def eof(self) -> bool:
        """Whether the stream's end was reached."""

    @property
    def needs_input(self) -> bool:
        """Whether all that was given so far is used up."""

    @property
    def unused_data(self) -> bytes:
        """Return what was given beyond the stream's end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Take packed bytes, return unpacked ones."""


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


def starter_of(kind: str, limits: Limits) -> Callable[[], Decompressor]:
    """Return what makes a decompressor for one stream of an `xz`, `gzip` or `zstd` file."""
    if kind == "xz":
        return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.dictionary)
    if kind == "gzip":
        return _GzipDecompressor
    window: dict[int, int] = {
        zstd.DecompressionParameter.window_log_max: limits.dictionary.bit_length() - 1
    }
    return lambda: zstd.ZstdDecompressor(options=window)


def decoded(kind: str, packed: Stream, decoder: Decompressor, budget: Budget) -> Iterator[bytes]:
    """Yield what one stream unpacks to; what stands behind its end is left."""
    while not decoder.eof:
        data = b""
        if decoder.needs_input:
            data = packed.piece(INPUT)
            if not data:
                packed.refuse(f"ends in the middle of its {kind} stream")
        try:
            output = decoder.decompress(data, OUTPUT)
        except DECODING_ERRORS as error:
            packed.refuse(f"is no valid {kind}: {error}")
        if output:
            budget.spend(len(output))
            yield output
    packed.give_back(len(decoder.unused_data))
