"""Decompression of whole xz, gzip and zstd files, with limits.

In every format, a file may contain several streams in a row. If other data follows the last stream,
the file is refused.
"""

import lzma
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Literal, NoReturn, Protocol, TypeAlias

from cudaredist.archives.members import Limits, file_size
from cudaredist.errors import InvalidArchiveError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression: TypeAlias = Literal["xz", "gzip", "zstd"]

_OUTPUT = 256 << 10
"""Maximum bytes of one unpacked chunk."""
_INPUT = 64 << 10
"""Maximum packed bytes per step."""
_GZIP_HEADER = 31
"""zlib's `wbits` for a gzip header and any window."""
_XZ_PADDING = 4
_OVERHEAD = 1 << 20
"""Memory of liblzma in addition to a dictionary."""

_DECODING_ERRORS = (lzma.LZMAError, zstd.ZstdError, zlib.error, EOFError, MemoryError)


class _Decoder(Protocol):
    """A decoder of one stream, as in the standard library's lzma."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _GzipDecoder:
    """zlib's decoder of one gzip stream, with the interface of lzma's decoder."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP_HEADER)

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)


class Decompressor:
    """Unpacks a whole file of one or more streams."""

    def __init__(self, name: str, kind: Compression, file: BinaryIO, limits: Limits) -> None:
        self._name, self._kind, self._file, self._limits = name, kind, file, limits

    def chunks(self) -> Iterator[bytes]:
        """Yield the unpacked bytes.

        Chunks are those of the decoder, because joining or splitting them would take a tenth of
        the time. Raises `InvalidArchiveError` if the file is damaged or exceeds a limit.
        """
        limits, size = self._limits, file_size(self._file)
        left = max(limits.floor, limits.ratio * size)
        data = self._file.read(_INPUT)
        if not data:
            self._refuse("is empty")
        streams = 0
        while data:
            streams += 1
            if streams > limits.streams:
                self._refuse(f"has more than {limits.streams:,} {self._kind} streams")
            decoder = self._new_decoder()
            for chunk in self._one_stream(decoder, data):
                left -= len(chunk)
                if left < 0:
                    self._refuse(f"unpacks to more than {limits.ratio} times its {size:,} bytes")
                yield chunk
            data = self._next_stream(decoder.unused_data)

    def _new_decoder(self) -> _Decoder:
        """Return a decoder of one stream that refuses a larger dictionary."""
        match self._kind:
            case "xz":
                return lzma.LZMADecompressor(lzma.FORMAT_XZ, self._limits.dictionary + _OVERHEAD)
            case "gzip":
                return _GzipDecoder()
            case "zstd":
                largest = self._limits.dictionary.bit_length() - 1
                options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: largest}
                return zstd.ZstdDecompressor(options=options)

    def _one_stream(self, decoder: _Decoder, data: bytes) -> Iterator[bytes]:
        """Yield the unpacked bytes of one stream. `data` is its beginning."""
        while not decoder.eof:
            is_end = False
            if decoder.needs_input:
                data = data or self._file.read(_INPUT)
                is_end = not data
            try:
                output = decoder.decompress(data, _OUTPUT)
            except _DECODING_ERRORS as error:
                # liblzma: "Memory usage limit exceeded". zstd: "requires too much memory".
                if "memory" in str(error).lower():
                    limit = self._limits.dictionary
                    self._refuse(f"requires a dictionary of more than {limit:,} bytes")
                self._refuse(f"is not valid {self._kind}: {error}")
            data = b""
            if output:
                yield output
            elif is_end and not decoder.eof:
                self._refuse(f"is truncated in its {self._kind} stream")

    def _next_stream(self, unused: bytes) -> bytes:
        """Return the beginning of the next stream, b"" at the end.

        NULs may follow an xz stream in groups of four and, because of tapes, the last gzip stream.
        """
        data = unused or self._file.read(_INPUT)
        if self._kind == "zstd":
            return data
        padding = 0
        while data:
            rest = data.lstrip(b"\0")
            padding += len(data) - len(rest)
            if rest:
                data = rest
                break
            data = self._file.read(_INPUT)
        is_incomplete = self._kind == "xz" and padding % _XZ_PADDING != 0
        is_followed = self._kind == "gzip" and padding > 0 and data != b""
        if is_incomplete or is_followed:
            self._refuse("has extra data after its end")
        return data

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidArchiveError(self._name, reason)
