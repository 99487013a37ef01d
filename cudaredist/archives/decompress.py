"""Decompressors of xz, gzip and zstd with limits.

Output is yielded in the decompressor's own chunks of at most 256 KiB. Joining or splitting them
would take a tenth of the time of the whole pass.
"""

import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from cudaredist.archives.members import Limits
from cudaredist.archives.memory import SHARED
from cudaredist.archives.stream import Stream

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

OUTPUT = 256 << 10
"""Maximum bytes of one unpacked chunk."""
INPUT = 64 << 10
"""Maximum packed bytes per step. At the end of a stream, the bytes that remain are copied."""

_DECODING_ERRORS = (lzma.LZMAError, zstd.ZstdError, EOFError, MemoryError)

_WINDOWS = {"gzip": 31, "deflate": -zlib.MAX_WBITS}
"""zlib's `wbits`: for a gzip header and any window, and for no header."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_HEADER = 18
"""Maximum bytes of a zstd frame's header."""
_IS_SINGLE_SEGMENT = 0x20


class Budget:
    """The limit of an archive's unpacked bytes.

    The limit is `ratio` times the packed size, but at least `floor`. If the packed size is not
    known, the number of bytes that have arrived is used instead.
    """

    def __init__(self, packed: Stream, size: int | None, limits: Limits) -> None:
        self._packed, self._size, self._limits = packed, size, limits
        self._spent = 0

    def spent(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield unpacked chunks and count their bytes."""
        for chunk in chunks:
            self.spend(len(chunk))
            yield chunk

    def spend(self, count: int) -> None:
        """Count unpacked bytes and enforce the limit."""
        self._spent += count
        if self._spent > self._limits.floor:
            size = self._packed.arrived if self._size is None else self._size
            ratio = self._limits.ratio
            if self._spent > ratio * size:
                self._packed.refuse(f"unpacks to more than {ratio} times its {size:,} bytes")


def inflated(
    kind: str,
    packed: Stream,
    refuse: Callable[[str], NoReturn],
    *,
    truncated: str,
    size: int | None = None,
) -> Iterator[bytes]:
    """Decompress one `gzip` member or `deflate` stream, with a dictionary of 32 KiB.

    If `size` is None, its packed bytes end with the stream. `refuse` is called with the reason if
    it is damaged, `truncated` if it has no end.
    """
    inflate = zlib.decompressobj(_WINDOWS[kind])
    is_end = False
    while not is_end:
        data = packed.piece(INPUT if size is None else min(size, INPUT))
        try:
            output = inflate.decompress(data, OUTPUT)
        except (zlib.error, MemoryError) as error:
            refuse(f"is not valid {kind}: {error}")
        is_end = inflate.eof
        # At the end, both contain the bytes that an earlier call did not use.
        unused = len(inflate.unused_data if is_end else inflate.unconsumed_tail)
        packed.give_back(unused)
        if size is not None:
            size -= len(data) - unused
        if output:
            yield output
        elif unused == len(data) and not is_end:
            refuse(truncated)
    if size:
        refuse("ends before its packed size")


def check_dictionary(packed: Stream, size: int, limits: Limits) -> None:
    """Refuse an archive that requires too large a dictionary."""
    if size > limits.dictionary:
        reason = f"requires a dictionary of {size:,} bytes; the limit is {limits.dictionary:,}"
        packed.refuse(reason)


def decoded_zstd(packed: Stream, limits: Limits) -> Iterator[bytes]:
    """Decompress one zstd frame.

    Its window is called dictionary in other formats.
    """
    size = _window(packed.ahead(_ZSTD_HEADER))
    check_dictionary(packed, size, limits)
    largest = (limits.dictionary - 1).bit_length()
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: largest}
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


def decoded(
    kind: str, packed: Stream, decoder: lzma.LZMADecompressor | zstd.ZstdDecompressor
) -> Iterator[bytes]:
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
