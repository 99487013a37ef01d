"""Model of the policy of corrected manifests."""

from typing import Annotated

from pydantic import Field

from cudaredist.formats.base import (
    Reasoned,
    optional,
)
from cudaredist.formats.names import OutputName
from cudaredist.formats.set_policy import Bounds, SetPolicy

_PLATFORM = "Platform of NVIDIA's manifests. Absent: every platform"


class Fixup(Reasoned):
    """A user's change to a package, in all sets or some."""

    package: str
    cuda: Bounds = Field(default=Bounds(), description="CUDA releases. Absent: all")
    platform: str | None = optional(_PLATFORM)
    outputs: tuple[OutputName, ...] | None = optional("The exact list of outputs, `out` first")
    broken: str | None = optional("Mark the package broken, with this reason")
    withheld: str | None = optional("Omit the package, with this reason")
    depends: tuple[str, ...] | None = optional("Additional dependencies")


class FixupPolicy(SetPolicy):
    """`policy/fixups.json`: a user's changes, and addresses of added packages."""

    fixups: tuple[Fixup, ...]
    urls: dict[str, Annotated[str, Field(pattern="^[a-z][a-z0-9+.-]*://")]] = Field(
        default={}, description="Base address of archives, by redistributable"
    )
