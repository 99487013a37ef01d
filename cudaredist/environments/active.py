"""The active environments of this process."""

import os
from collections.abc import Iterator

ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables with the folder of the active environment."""


def active_environments() -> Iterator[str]:
    """Yield the folders of the active environments, a virtual environment first."""
    yield from filter(None, map(os.environ.get, ACTIVE))
