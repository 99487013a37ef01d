"""Decompressors of xz, gzip and zstd with limits.

Output is yielded in the decompressor's own chunks of at most 256 KiB. Joining or splitting them
would take a tenth of the time of the whole pass.
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
"""Maximum bytes of one unpacked chunk."""
INPUT = 64 << 10
"""Maximum packed bytes per step. At the end of a stream, the bytes that remain are copied."""

_DECODING_ERRORS = (lzma.LZMAError, zlib.error, zstd.ZstdError, EOFError, MemoryError)

_GZIP = 31
"""zlib's `wbits` for a gzip header and any window."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_HEADER = 18
"""Maximum bytes of a zstd frame's header."""
_IS_SINGLE_SEGMENT = 0x20


class Budget:
    """The limit of an archive's unpacked bytes.

    The limit is `ratio` times the packed size, but at least `floor`. If the packed size is not
    known, the number of bytes that have arrived is used instead.
    """

    def __init__(self, where: str, size: int | None, limits: Limits) -> None:
        self._where = where
        self._size = size
        self._limits = limits
        self._arrived = 0
        self._spent = 0

    def counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield packed chunks and count their bytes."""
        for chunk in chunks:
            self._arrived += len(chunk)
            yield chunk

    def spent(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield unpacked chunks and count their bytes."""
        for chunk in chunks:
            self.spend(len(chunk))
            yield chunk

    def spend(self, count: int) -> None:
        """Count unpacked bytes and enforce the limit."""
        self._spent += count
        if self._spent > self._limits.floor:
            packed = self._arrived if self._size is None else self._size
            if self._spent > self._limits.ratio * packed:
                raise InvalidArchiveError(
                    self._where,
                    f"unpacks to more than {self._limits.ratio} times its {packed:,} bytes",
                )


class GzipDecompressor:
    """Decompressor of one gzip member, with a dictionary of 32 KiB."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the end of the member was reached."""
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        """The bytes after the member."""
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most `max_length` unpacked bytes."""
        inflate = self._inflate
        output = inflate.decompress(inflate.unconsumed_tail or data, max_length)
        # If the output is full, more may follow although no input remains.
        self.needs_input = not inflate.unconsumed_tail and len(output) < max_length
        return output


_Decompressor: TypeAlias = lzma.LZMADecompressor | zstd.ZstdDecompressor | GzipDecompressor


def check_dictionary(packed: Stream, size: int, limits: Limits) -> None:
    """Refuse an archive that requires too large a dictionary."""
    if size > limits.dictionary:
        packed.refuse(
            f"requires a dictionary of {size:,} bytes; the limit is {limits.dictionary:,}"
        )


def decoded_zstd(packed: Stream, limits: Limits) -> Iterator[bytes]:
    """Decompress one zstd frame.

    Its window is called dictionary in other formats.
    """
    size = _window(packed.ahead(_ZSTD_HEADER))
    check_dictionary(packed, size, limits)
    options: dict[int, int] = {
        zstd.DecompressionParameter.window_log_max: (limits.dictionary - 1).bit_length()
    }
    with SHARED.dictionary(size):
        yield from decoded("zstd", packed, zstd.ZstdDecompressor(options=options))


def _window(header: bytes) -> int:
    """Return a zstd frame's window size.

    It is 0 if the frame is damaged or skippable.
    """
    header = header.ljust(_ZSTD_HEADER, b"\0")
    if header[:4] != _ZSTD_MAGIC:
        return 0
    flags, window = header[4], header[5]
    if flags & _IS_SINGLE_SEGMENT:
        # The window contains the whole content.
        start = 5 + (0, 1, 2, 4)[flags & 3]
        length = (1, 2, 4, 8)[flags >> 6]
        size = int.from_bytes(header[start : start + length], "little")
        return size + 256 if length == 2 else size  # noqa: PLR2004 - two bytes begin at 256
    base = 1 << (window >> 3) + 10
    return base + (base >> 3) * (window & 7)


def decoded(kind: str, packed: Stream, decoder: _Decompressor) -> Iterator[bytes]:
    """Decompress one stream, and keep the bytes after its end."""
    while not decoder.eof:
        data = b""
        if decoder.needs_input:
            data = packed.piece(INPUT)
            if not data:
                packed.refuse(f"is truncated in its {kind} stream")
        try:
            output = decoder.decompress(data, OUTPUT)
        except _DECODING_ERRORS as error:
            packed.refuse(f"is not valid {kind}: {error}")
        if output:
            yield output
    packed.give_back(len(decoder.unused_data))
