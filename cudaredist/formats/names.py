"""Names that our files and reports have in common. Unlike `base.py`, this module has no models."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

Channel = Literal["redist", "wheels"]
CHANNEL_TITLES: Mapping[Channel, str] = {"redist": "archives", "wheels": "wheels"}
"""Names of the channels in tables. The first one is searched first."""
CHANNEL_SUBJECTS: Mapping[Channel, str] = {"redist": "NVIDIA's archives", "wheels": "wheels"}
"""Names of the channels in sentences."""
ExtractKind: TypeAlias = Literal["host-config", "math-functions", "ptxas"]
OutputName: TypeAlias = Literal[
    "out", "bin", "dev", "doc", "include", "lib", "python", "samples", "static", "stubs"
]
ManifestStatus = Literal["written", "would-write", "unchanged", "failed"]
