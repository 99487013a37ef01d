"""Where bytes come from: an HTTP(S) index, a folder, several of them in order.

A source knows nothing of what a manifest means: it lists names and delivers bytes, within limits of
size and time. `interface` says what every source offers, `folder`, `http` and `wheels` are the
three kinds, `index` reads a listing page, `pip` asks a package index, `chain` tries several in
order. Only `http` and the user's own pip reach the network.
"""

from cudaredist.source.chain import WHEELS, SourceChain, open_sources
from cudaredist.source.folder import FolderSource
from cudaredist.source.protocol import (
    ByteProgress,
    Delivery,
    Listing,
    NoByteProgress,
    NoProgress,
    Part,
    Progress,
    Settings,
    Source,
    without_credentials,
)

__all__ = [
    "WHEELS",
    "ByteProgress",
    "Delivery",
    "FolderSource",
    "Listing",
    "NoByteProgress",
    "NoProgress",
    "Part",
    "Progress",
    "Settings",
    "Source",
    "SourceChain",
    "open_sources",
    "without_credentials",
]
