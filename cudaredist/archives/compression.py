"""Decompression of whole xz, gzip and zstd files.

In every format, a file may contain several streams in a row. If other data follows the last stream,
the file is refused.
"""

from collections.abc import Iterator
from itertools import count

from cudaredist.archives.decompress import INPUT, decoded_zstd, inflated
from cudaredist.archives.members import Limits
from cudaredist.archives.stream import Stream
from cudaredist.archives.xz_blocks import decoded_blocks

_XZ_PADDING = 4


def decompressed(kind: str, packed: Stream, limits: Limits, jobs: int) -> Iterator[bytes]:
    """Decompress a whole `xz`, `gzip` or `zstd` file."""
    if not packed.ahead(1):
        packed.refuse("is empty")
    parts = count(1)

    def begin_part() -> None:
        if next(parts) > limits.parts:
            packed.refuse(f"has more than {limits.parts:,} {kind} streams or blocks")

    while packed.ahead(1):
        begin_part()
        if kind == "xz":
            yield from decoded_blocks(packed, limits, jobs, begin_part)
            if _skip_padding(packed) % _XZ_PADDING:
                packed.refuse("has extra data after its end")
        elif kind == "gzip":
            truncated = "is truncated in its gzip stream"
            yield from inflated(kind, packed, packed.refuse, truncated=truncated)
            if _skip_padding(packed) and packed.ahead(1):
                packed.refuse("has extra data after its end")
        else:
            yield from decoded_zstd(packed, limits)


def _skip_padding(packed: Stream) -> int:
    """Skip NULs and return their number.

    They may follow an xz stream in groups of four and, because of tapes, the last gzip stream.
    """
    start = packed.position
    rest = b""
    while not rest and (piece := packed.piece(INPUT)):
        rest = piece.lstrip(b"\0")
        packed.give_back(len(rest))
    return packed.position - start
