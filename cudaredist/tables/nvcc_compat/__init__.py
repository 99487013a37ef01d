"""Which host compilers an nvcc accepts, read from the header by which it refuses the others."""

from cudaredist.tables.nvcc_compat.compilers import (
    COMPILERS,
    VISUAL_STUDIO,
    read_header,
    visual_studio,
)
from cudaredist.tables.nvcc_compat.nvcc_table import (
    BoundFinding,
    findings,
    hold_back,
    make_compat,
    make_release,
    newest_of,
)
from cudaredist.tables.nvcc_compat.preprocessor import Header

__all__ = [
    "COMPILERS",
    "HEADER_PATH",
    "VISUAL_STUDIO",
    "BoundFinding",
    "Header",
    "findings",
    "hold_back",
    "make_compat",
    "make_release",
    "newest_of",
    "read_header",
    "visual_studio",
]

HEADER_PATH = "include/crt/host_config.h"
"""How the header's path ends; `include/host_config.h` of another package only includes it."""
