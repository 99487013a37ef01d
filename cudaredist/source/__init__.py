"""Where bytes come from: an HTTP(S) index, a folder, several of them in order.

A source knows nothing of what a manifest means: it lists names and delivers bytes, within limits of
size and time. `interface` says what every source offers, `folder` and `http` are the two kinds,
`index` reads a listing page, `chain` tries several in order. Only `http` reaches the network.
"""

from cudaredist.source.chain import SourceChain, open_sources
from cudaredist.source.interface import (
    ByteProgress,
    Delivery,
    Listing,
    NoByteProgress,
    NoProgress,
    Part,
    Progress,
    Settings,
    Source,
)

__all__ = [
    "ByteProgress",
    "Delivery",
    "Listing",
    "NoByteProgress",
    "NoProgress",
    "Part",
    "Progress",
    "Settings",
    "Source",
    "SourceChain",
    "open_sources",
]
