"""The arguments of diff: files and local releases."""

import os
import re

from cudaredist.redists import CUDA


def as_release(text: str) -> str:
    """Return `cuda@12.9` for `12.9`, and another argument unchanged."""
    is_label = re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})*", text) and not os.path.lexists(text)
    return f"{CUDA}@{text}" if is_label else text


def is_local_release(text: str) -> bool:
    """Check if an argument is a local release, for example `cuda@12.9.1`."""
    return "@" in text and "//" not in text and not os.path.lexists(text)
