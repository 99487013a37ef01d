"""Decompression of whole xz, gzip and zstd files.

In every format, a file may contain several streams in a row. If other data follows the last stream,
the file is refused.
"""

from collections.abc import Iterator

from cudaredist.archives.decompress import INPUT, GzipDecompressor, decoded, decoded_zstd
from cudaredist.archives.members import Limits
from cudaredist.archives.stream import Stream
from cudaredist.archives.xz_blocks import decoded_blocks

_XZ_PADDING = 4


def decompressed(kind: str, packed: Stream, limits: Limits, jobs: int) -> Iterator[bytes]:
    """Decompress a whole `xz`, `gzip` or `zstd` file."""
    if not packed.ahead(1):
        packed.refuse("is empty")
    parts = 0

    def begin_part() -> None:
        nonlocal parts
        parts += 1
        if parts > limits.parts:
            packed.refuse(f"has more than {limits.parts:,} {kind} streams or blocks")

    while packed.ahead(1):
        begin_part()
        if kind == "xz":
            yield from decoded_blocks(packed, limits, jobs, begin_part)
            if _skip_padding(packed) % _XZ_PADDING:
                packed.refuse("has extra data after its end")
        elif kind == "gzip":
            yield from decoded(kind, packed, GzipDecompressor())
            if _skip_padding(packed) and packed.ahead(1):
                packed.refuse("has extra data after its end")
        else:
            yield from decoded_zstd(packed, limits)


def _skip_padding(packed: Stream) -> int:
    """Skip NULs and return their number.

    They may follow an xz stream in groups of four and, because of tapes, the last gzip stream.
    """
    count = 0
    while piece := packed.piece(INPUT):
        rest = piece.lstrip(b"\0")
        count += len(piece) - len(rest)
        if rest:
            packed.give_back(len(rest))
            break
    return count
