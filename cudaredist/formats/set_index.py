"""Model of the index of a folder of package sets."""

from typing import Annotated

from pydantic import Field

from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.field_types import CapabilityName, HexSha256, InnerPath, Label
from cudaredist.formats.packageset import Status


class IndexedSet(OwnModel):
    """A package set in an index."""

    path: InnerPath = Field(description="Below the folder of the index")
    sha256: HexSha256
    cuda: Label
    platform: str
    attribute: str
    name: str | None = optional("Name of a declared set. Absent: it has no name of its own")
    capabilities: tuple[CapabilityName, ...] = Field(
        description="Requested capabilities. Empty: the default"
    )
    architecture: str | None = optional(
        "Name in nixpkgs' `pkgsForCudaArch`, such as sm_90a. Absent: the set is for several "
        "capabilities, or has portable code"
    )
    counts: dict[Status, Annotated[int, Field(ge=0)]]


class SkippedSet(OwnModel):
    """A package set that was not built."""

    cuda: Label
    platform: str
    reason: str


class PackageSetIndex(OwnFile):
    """`build/index.json`: the package sets in its folder."""

    sets: tuple[IndexedSet, ...]
    skipped: tuple[SkippedSet, ...]
