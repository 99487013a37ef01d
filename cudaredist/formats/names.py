"""Names that our files and reports have in common. Unlike `base.py`, this module has no models."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from cudaredist.primitives import NAME_PATTERN

RedistName = Annotated[
    str,
    Field(pattern=NAME_PATTERN, description="Name of a redistributable, which is also a folder"),
]
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

Distribution: TypeAlias = Literal["listed", "conditional", "not-listed", "no-list", "unknown"]
"""Whether the license text in an archive lists a file as distributable.

A conditional file may only be distributed in applications that meet criteria of the text.
"""
DISTRIBUTION_WORDS: Mapping[Distribution, str] = {
    "listed": "listed as distributable",
    "conditional": "distributable in some applications only",
    "not-listed": "not listed as distributable",
    "no-list": "without a list of distributable files",
    "unknown": "unknown",
}
